#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the monitor costs at its own periods: on this node, and on a recorded one beside it.

usage: monitor.py PEERPATH [SECONDS [MACHINE]]

SECONDS is 900 unless given, MACHINE a recording for --replay (tests/fixtures/machines has one).
Time is of the CPU, of the monitor and of every helper that it started; memory is resident, sampled
each second, with what the processes that stay beside it (logs of jobs, an application's file) have
of their own. At rest nothing may be written: so it is asked of the kernel, from the first minute on and
until the end, which writes the last numbers. A live node is not at rest while its kernel's log grows. Exit
1 above 0.1 % of one processor, above 20 MiB, or when of the recording something was written without a signal.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LIMIT_RATIO, LIMIT_MIB = 0.001, 20
HERE = pathlib.Path(__file__).resolve().parent


def status(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def written(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    return int(dict(line.split(": ") for line in text.splitlines())["write_bytes"])


def beside(pid):
    """KiB that the monitor's children share with nobody."""
    own = 0
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            text = pathlib.Path(f"/proc/{child}/smaps_rollup").read_text()
        except OSError:
            continue
        own += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))
    return own


class Run:
    def __init__(self, peerpath, name, seconds, extra, where):
        self.name, self.begin, self.seconds = name, time.monotonic(), seconds
        self.rests = "--replay" in extra
        self.out = open(f"{where}/{name}.out", "wb")
        self.process = subprocess.Popen(
            [peerpath, "monitor", "--json", "--state", f"{where}/{name}.db", "--for", f"{seconds}s", *extra],
            stdout=self.out, stderr=open(f"{where}/{name}.err", "wb"))
        self.rss, self.resident, self.early, self.last = 0, [], None, None
        self.usage, self.wall = None, None

    def sample(self):
        if self.usage:
            return
        pid = self.process.pid
        try:
            rss = status(pid, "VmRSS")
            if rss:
                rss += beside(pid)
            if time.monotonic() - self.begin < self.seconds - 5:
                self.last = written(pid)
        except OSError:
            rss = 0
        if rss:
            self.resident.append(rss)
            self.rss = max(self.rss, rss)
        if self.early is None and time.monotonic() - self.begin > 60:
            self.early = self.last
        done, code, usage = os.wait4(pid, os.WNOHANG)
        if done:
            self.usage, self.wall = usage, time.monotonic() - self.begin
            self.process.returncode = os.waitstatus_to_exitcode(code)
            self.out.close()

    def report(self, where):
        cpu = self.usage.ru_utime + self.usage.ru_stime
        told = [json.loads(line) for line in pathlib.Path(f"{where}/{self.name}.out").read_text().splitlines()]
        after = self.last - self.early if self.early is not None and self.last is not None else None
        ratio = cpu / self.wall
        print(f"{self.name}: {cpu:.2f} s of CPU in {self.wall:.0f} s: {100 * ratio:.4f} % of a processor, "
              f"{3600 * ratio:.2f} s an hour; resident {self.rss / 1024:.1f} MiB at most, "
              f"{sorted(self.resident)[len(self.resident) // 2] / 1024:.1f} MiB in the middle; "
              f"{len(told)} tellings; written after the first minute: {after} bytes; exit {self.process.returncode}")
        for line in told:
            print(f"  {line['level']} {line['what']}: {line['text']}")
        quiet = after in (0, None) or told or not self.rests
        return ratio <= LIMIT_RATIO and self.rss <= LIMIT_MIB * 1024 and quiet and self.process.returncode in (0, 1, 2)


def main():
    peerpath = sys.argv[1]
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 900
    machine = sys.argv[3] if len(sys.argv) > 3 else str(HERE.parent / "tests/fixtures/machines/h200-2gpu.tar.zst")
    with tempfile.TemporaryDirectory() as where:
        log, figures = pathlib.Path(where) / "job.log", pathlib.Path(where) / "slo.prom"
        log.write_text("node7:811:902 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n" * 10000)
        figures.write_text("tokens_per_second 1000\n")
        runs = [Run(peerpath, "live", seconds, ["--log", f"{where}/job*.log", "--slo", str(figures)], where),
                Run(peerpath, "replayed", seconds, ["--replay", machine], where)]
        while not all(run.usage for run in runs):
            time.sleep(1)
            for run in runs:
                run.sample()
        good = [run.report(where) for run in runs]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
