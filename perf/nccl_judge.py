#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of peerpath nccl judge, with grep -c over the same file beside it.

usage: nccl_judge.py PEERPATH [MEGABYTES]

A long log with few lines of NCCL (an application's own output), the same with one line in eight
from NCCL, one long line; and hostile ones: nothing but connections, nothing but lines of NCCL that
fit no format, warnings of ever new hosts, ever new communicators. Times are of the CPU: others may
use the machine; the median of three runs. Exit 1 below 200 MB/s on the first or above 64 MiB on
any.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT_MBPS, LIMIT_MIB = 200, 64
PROSE = b"step 1234 | loss 2.3456 | lr 1.0e-4 | tokens/s 123456 | the quick brown fox jumps\n"


def few(path, size):
    log = (pathlib.Path(__file__).parent.parent / "tests/fixtures/nccl/made-proven.log").read_bytes()
    block = PROSE * (1_000_000 // len(PROSE))
    with path.open("wb") as out:
        out.write(log)
        while out.tell() < size:
            out.write(block)


def many(path, size):
    n = 0
    with path.open("wb") as out:
        while out.tell() < size:
            lines = [PROSE * 7 + b"node%d:%d:77 [0] NCCL INFO Channel %02d/0 : %d[0] -> %d[0] [send] via "
                     b"NET/IB/0/GDRDMA\n" % (n + k & 1023, n + k & 4095, k & 31, n + k & 8191, (n + k + 1) & 8191)
                     for k in range(1000)]
            n += 1000
            out.write(b"".join(lines))


def one_line(path, size):
    with path.open("wb") as out:
        while out.tell() < size:
            out.write(b"x" * 1_000_000)


def repeat(line):
    """A log of lines made from their number."""
    def make(path, size):
        n = 0
        with path.open("wb") as out:
            while out.tell() < size:
                out.write(b"".join(line(n + k) for k in range(10000)))
                n += 10000
    return make


def connection(n):
    return (b"node%d:%d:77 [0] NCCL INFO Channel %02d/0 : %d[0] -> %d[0] [send] via NET/IB/0/GDRDMA\n"
            % (n & 1023, n & 4095, n & 31, n & 8191, (n + 1) & 8191))


def other(n):
    return b"node%d:1:77 [0] NCCL INFO %d Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n" % (n & 7, n)


def warning(n):
    return b"host%d:%d:7 [0] graph/xml.cc:77 NCCL WARN could not read %d\n" % (n, n & 65535, n)


def member(n):
    return (b"node0:1:%d [0] NCCL INFO comm 0x%x rank %d nranks 4096 cudaDev 0 busId 1b000 commId 0x%x - Init "
            b"COMPLETE\n" % (n, n, n & 4095, n))


LOGS = {"few": few, "many": many, "one line": one_line, "dense": repeat(connection),
        "unknown": repeat(other), "warnings": repeat(warning), "members": repeat(member)}


def timed(argv):
    # a pipe: grep stops at the first match when it writes to /dev/null
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    process.stdout.read()
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    program, size = sys.argv[1], int(sys.argv[2] if len(sys.argv) > 2 else 400) * 1_000_000
    bad = 0
    print(f"{'log':10} {'judge MB/s':>10} {'grep MB/s':>10} {'judge MiB':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in LOGS.items():
            path = pathlib.Path(folder) / "log"
            make(path, size)
            runs = [timed([program, "nccl", "judge", "--json", str(path)]) for _ in range(3)]
            grep = min(timed(["grep", "-c", "NCCL INFO", str(path)])[0] for _ in range(3))
            speed, memory = size / 1e6 / sorted(r[0] for r in runs)[1], max(r[1] for r in runs)
            print(f"{name:10} {speed:10.0f} {size / 1e6 / grep:10.0f} {memory:10.1f}")
            bad |= memory > LIMIT_MIB or (name == "few" and speed < LIMIT_MBPS)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
