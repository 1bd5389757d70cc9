#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of the reading verbs, beside lspci and lstopo on the same made machine.

    bench.py [--program build/src/cli/peerpath] [--runs 11]

Prints medians and ratios; judges nothing: times belong to the machine they were taken on.
Runs of all programs are interleaved, so that a busy moment hits all of them alike.
"""
import argparse
import dataclasses
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TOP, "tests", "fixtures"))

import make_machine  # noqa: E402
from machine.plan import PRESETS  # noqa: E402

GNU_TIME = shutil.which("time")
READING = ("identity", "topo", "check")


@dataclasses.dataclass
class Task:
    name: str
    commands: list  # each an argv; their times are added, their memory is the largest
    env: dict = dataclasses.field(default_factory=dict)
    wall: list = dataclasses.field(default_factory=list)
    cpu: list = dataclasses.field(default_factory=list)
    kib: int = 0
    size_file: object = dataclasses.field(default_factory=tempfile.NamedTemporaryFile)

    def run(self):
        wall = cpu = 0.0
        for command in self.commands:
            if GNU_TIME:  # a child of this process would inherit its size
                command = [GNU_TIME, "-q", "-f", "%M", "-o", self.size_file.name, *command]
            begin = time.perf_counter()
            p = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **self.env},
            )
            _, status, usage = os.wait4(p.pid, 0)
            wall += time.perf_counter() - begin
            cpu += usage.ru_utime + usage.ru_stime
            p.returncode = os.waitstatus_to_exitcode(status)
            if p.returncode < 0 or p.returncode > 2:
                raise SystemExit(f"{' '.join(command)}: exit status {p.returncode}")
            if GNU_TIME:
                self.size_file.seek(0)
                self.kib = max(self.kib, int(self.size_file.read()))
        self.wall.append(wall)
        self.cpu.append(cpu)

    @property
    def median_ms(self):
        return statistics.median(self.wall) * 1000

    @property
    def cpu_ms(self):
        return statistics.median(self.cpu) * 1000


def machine(work, preset, **changes):
    plan = dataclasses.replace(PRESETS[preset], **changes)
    out = os.path.join(work, preset + "".join(f"-{v}" for v in changes.values()))
    make_machine.recording(plan).write(out)
    return out


def functions(tree):
    return len(os.listdir(f"{tree}/raw/sys/bus/pci/devices"))


def reading(program, tree, label):
    return Task(label, [[program, verb, "--replay", tree] for verb in READING])


def lstopo_command():
    return shutil.which("lstopo-no-graphics") or shutil.which("lstopo")


def others(tree, label):
    """Programs that read the same tree, where they are installed."""
    tasks = []
    if shutil.which("lspci"):
        command = ["lspci", "-O", f"sysfs.path={tree}/raw/sys/bus/pci", "-vv"]
        tasks.append(Task(f"lspci -vv, {label}", [command]))
    if lstopo_command():
        env = {"HWLOC_FSROOT": f"{tree}/raw", "HWLOC_COMPONENTS": "-x86"}
        command = [lstopo_command(), "--whole-io", "--of", "console"]
        tasks.append(Task(f"lstopo --of console, {label}", [command], env))
    return tasks


def live(program):
    tasks = [Task("identity + topo + check, live", [[program, verb] for verb in READING])]
    if shutil.which("lspci"):
        tasks.append(Task("lspci -vv, live", [["lspci", "-vv"]]))
    if lstopo_command():
        tasks.append(Task("lstopo --of console, live", [[lstopo_command(), "--of", "console"]]))
    return tasks


def measure(tasks, runs):
    for task in tasks:
        task.run()
        task.wall.clear()
        task.cpu.clear()
    for _ in range(runs):
        for task in tasks:
            task.run()


def table(title, tasks, base):
    print(f"\n{title}")
    print(f"  {'':<40}{'median ms':>10}{'min':>8}{'max':>8}{'CPU ms':>8}{'KiB':>8}{'ratio':>7}")
    for t in tasks:
        low, high = min(t.wall) * 1000, max(t.wall) * 1000
        print(
            f"  {t.name:<40}{t.median_ms:>10.1f}{low:>8.1f}{high:>8.1f}{t.cpu_ms:>8.1f}"
            f"{t.kib or '-':>8}{t.median_ms / base.median_ms:>7.2f}"
        )


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--program", default=os.path.join(TOP, "build", "src", "cli", "peerpath"))
    p.add_argument("--runs", type=int, default=11)
    args = p.parse_args()
    program = os.path.abspath(args.program)
    if args.runs < 3 or not os.access(program, os.X_OK):
        raise SystemExit("needs a built program and at least 3 runs")
    with tempfile.TemporaryDirectory(prefix="peerpath-bench-") as work:
        good8 = machine(work, "good8")
        tasks = [reading(program, good8, "identity + topo + check")]
        tasks += [Task(v, [[program, v, "--replay", good8]]) for v in READING]
        tasks.append(Task("topo --svg", [[program, "topo", "--svg", "-", "--replay", good8]]))
        tasks += others(good8, "same tree")
        measure(tasks, args.runs)
        table(f"8 GPUs, 40 NICs, {functions(good8)} PCI functions, replayed", tasks, tasks[0])

        sizes = [machine(work, "big4000", extra=n) for n in (900, 1900, 3900)]
        grown = [reading(program, t, f"{functions(t)} PCI functions") for t in sizes]
        beside = others(sizes[-1], "largest tree")
        measure(grown + beside, args.runs)
        table("identity + topo + check by size, replayed", grown + beside, grown[-1])
        each = [t.cpu_ms / functions(s) * 1000 for t, s in zip(grown, sizes)]
        print("  microseconds of CPU a function: " + ", ".join(f"{x:.0f}" for x in each))

        here = live(program)
        measure(here, args.runs)
        table("this machine, live", here, here[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
