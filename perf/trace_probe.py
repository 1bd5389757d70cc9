#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `peerpath trace` costs the one who registers, and how long it takes itself, in a guest.

usage: trace_probe.py PEERPATH REGISTRAR [--rounds N] [--loop N] [--processors N] [--sizes KIB,...]

The registrar registers and gives back host memory of each size N times (fewer where it is large), alone and under
`peerpath trace -- CMD`, in turn; of each pair the ratio of the middle registration, and the median of the pairs. A
registration pins its pages, and the probes do not know how many there are: sizes that jobs register tell another
thing than the smallest (NCCL's are 0.5 to 10 MiB). One empty kprobe and two, by hand,
stand beside it: less no tracer of that kind can cost there. Then, with 1000 regions held, the time of `trace` without
probes and with them.

The guest is emulated (QEMU's TCG): what a kernel does between functions, to enter a probe or to copy from a pointer,
costs many times what it does on a processor, beside a registration that does no DMA. Ratios are an upper bound.
"""
import argparse
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from lab import Lab, Unavailable  # noqa: E402

TRACING = "/sys/kernel/tracing"


def middle(result):
    return int(re.search(r"middle_ns (\d+)", result.check().text)[1])


def empty(guest, functions, work):
    """The work beside kprobes that fetch nothing."""
    probes = "; ".join(f"echo 'p:byhand/e{i} ib_core:{name}' >>{TRACING}/kprobe_events" for i, name in enumerate(functions))
    guest.run(f"{probes}; mkdir {TRACING}/instances/byhand && echo 1 >{TRACING}/instances/byhand/events/byhand/enable").check()
    try:
        return work()
    finally:
        guest.run(f"cd {TRACING}; echo 0 >instances/byhand/events/byhand/enable; rmdir instances/byhand; echo >kprobe_events").check()


def registering(guest, rounds, loop, kib):
    loop = max(200, min(loop, loop * 64 // kib))
    command = f"registrar rxe0 loop={loop} hold=0 size={kib << 10}"
    cases = {"one empty kprobe": lambda: empty(guest, ["rdma_restrack_add"], lambda: middle(guest.run(command, 120))),
             "two empty kprobes": lambda: empty(guest, ["rdma_restrack_add", "rdma_restrack_del"],
                                                lambda: middle(guest.run(command, 120))),
             "trace -- CMD": lambda: middle(guest.run(f"peerpath trace --json -- {command}", 240))}
    ratios = {name: [] for name in cases}
    bare = []
    for _ in range(rounds):
        for name, case in cases.items():
            alone = middle(guest.run(command, 120))
            bare.append(alone)
            ratios[name].append(case() / alone)
    print(f"a registration of {kib} KiB and its end, {loop} times, {rounds} rounds, alone {statistics.median(bare) / 1000:.0f} us:")
    for name, seen in ratios.items():
        print(f"  {name:20} {statistics.median(seen) - 1:+7.1%}   ({min(seen) - 1:+.1%} to {max(seen) - 1:+.1%})", flush=True)


def seconds(guest, words):
    shown = guest.run(f"time peerpath trace --json {words} >/dev/null", 120).text
    minutes, rest = re.search(r"real\s+(\d+)m ([\d.]+)s", shown).groups()
    return int(minutes) * 60 + float(rest)


def listing(guest, rounds):
    for regions in (1, 1000):
        job = guest.start(f"registrar rxe0 host={regions} size=4096")
        guest.run(f"until grep -q ready {job.dir_there}/out; do usleep 50000; done", 60).check()
        for words in ("--no-probes", ""):
            took = [seconds(guest, words) for _ in range(rounds)]
            print(f"  {regions:5} regions, trace {words or '(with probes)':13} {statistics.median(took):.2f} s", flush=True)
        job.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peerpath")
    parser.add_argument("registrar")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--loop", type=int, default=5000)
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--sizes", default="64,1024,4096,16384")
    words = parser.parse_args()
    put = [(words.peerpath, "bin/peerpath"), (words.registrar, "bin/registrar")]
    try:
        with Lab(put=put, processors=words.processors) as lab:
            guest = lab.guest(0)
            guest.run(f"mount -t debugfs debug /sys/kernel/debug && mount -t tracefs trace {TRACING}").check()
            for kib in words.sizes.split(","):
                registering(guest, words.rounds, words.loop, int(kib))
            listing(guest, words.rounds)
    except Unavailable as err:
        sys.exit(str(err))


if __name__ == "__main__":
    main()
