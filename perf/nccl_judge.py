#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of peerpath nccl judge, with grep -c over the same file beside it.

usage: nccl_judge.py PEERPATH [MEGABYTES]

A long log with few lines of NCCL (an application's own output), the same with one line in eight
from NCCL, one long line; and hostile ones, LOGS says of which lines. Times are of the CPU: others
may use the machine; the median of three runs. Exit 1 below 200 MB/s or above 64 MiB on any.
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
    """A log of lines made from their number, few at once: a child's memory begins with this script's."""
    def make(path, size):
        n = 0
        with path.open("wb") as out:
            while out.tell() < size:
                out.write(b"".join(line(n + k) for k in range(100)))
                n += 100
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


def mixed(n):
    """Another host, rank and form in each line."""
    return (b"node%d:%d:%d [%d] NCCL INFO Channel %02d : %d[%d] -> %d[%d] [receive] via NET/AWS Libfabric/%d(%d)/Shared\n"
            % (n % 977, n % 8, n % 64, n & 7, n & 63, n % 8191, n & 7, n * 7 % 8191, n & 7, n & 7, n & 63))


def fresh(n):
    return b"node0:1:2 [0] NCCL INFO Channel %02d/0 : %d[0] -> %d[0] via P2P/CUMEM\n" % (n & 31, n, n + 1)


def coloured(n):
    line = connection(n).rstrip().replace(b"NCCL", b"\x1b[1;31mNCCL\x1b[0m")
    return b"\x1b[32m%s\x1b[0m\n" % line


def dead(n):
    """A process with as many dead communicators as are looked at, then connections of none."""
    if n < 128:
        member = b"n0:1:2 [0] NCCL INFO comm 0x%x rank 2 nranks 8 cudaDev 0 busId 1b000 - " % n
        return member + b"Init COMPLETE\n" + member + b"Destroy COMPLETE\n"
    return b"n0:1:2 [0] NCCL INFO Channel %02d/0 : %d[0] -> 1[0] [send] via NET/IB/0\n" % (n & 31, n & 3)


def row(n):
    if not n:
        return b"# nThread 1 nGpus 1 minBytes 8\n#       size         count      type   redop\n"
    return b"%12d %12d float sum -1 61.56 17.03 17.03 0 60.01 17.47 17.47 0\n" % (n * 4, n)


def docker(n):
    return (b'{"log":"%s\\n","stream":"stdout","time":"2026-11-29T15:05:14.123456789Z"}\n'
            % connection(n).rstrip().replace(b">", b"\\u003e"))


def prefix(n):
    return b"node%d:%d:%d [%d] NCCL INFO .\n" % (n & 63, n & 511, n & 511, n & 7)


def run_together(n):
    return b"".join(b"n%d:1:1 [0] NCCL INFO . " % (n + k & 7) for k in range(500)) + b"\n"


def crlf(n):
    return connection(n).replace(b"\n", b"\r\n")


def short(n):
    return b"n:1:2 [0] NCCL INFO %d\n" % (n % 10)


def letter(n):
    return b"%c\n" % b"xN#/G"[n % 5]


def near(n):
    return b"NCC NCCL#NNNN##/GDRD NCCL NCCL# # # nThread\n"


def heads(n):
    """What messages begin with, in none of them."""
    return (b"n%d:1:2 [0] NCCL INFO comm 0 Failed to x Error: net Successfully x failed to x NET reuse Got async comm 1\n"
            % (n & 7))


def again(n):
    """One line that begins a message hundreds of times."""
    return b"n%d:1:2 [0] NCCL INFO " % (n & 7) + b"comm 0x1 rank 1 nranks 2 cudaDev 0 " * 400 + b"\n"


def trace(n):
    """The same in one word."""
    return b"n:1:2 [0] NCCL TRACE " + b"regAddr=" * 1900 + b"\n"


def living(n):
    """A process with more living communicators than are looked at, and ranks that are alike modulo 64."""
    if n < 200:
        return (b"n0:1:2 [0] NCCL INFO comm 0x%x rank %d nranks 800 cudaDev 0 busId 1b000 - Init COMPLETE\n"
                % (n, 2 + 64 * (n & 1)))
    return b"n0:1:2 [0] NCCL INFO Channel %02d/0 : 130[0] -> %d[0] [send] via NET/IB/0\n" % (n & 31, n % 4000)


LOGS = {"few": few, "many": many, "one line": one_line}
LOGS |= {name: repeat(line) for name, line in {
    "dense": connection, "unknown": other, "warnings": warning, "members": member, "mixed": mixed,
    "fresh": fresh, "dead": dead, "rows": row, "coloured": coloured, "crlf": crlf,
    "docker": docker, "prefixes": prefix, "together": run_together, "short": short,
    "letters": letter, "newlines": lambda n: b"\n", "near": near, "heads": heads,
    "again": again, "trace": trace, "living": living}.items()}


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
            print(f"{name:10} {speed:10.0f} {size / 1e6 / grep:10.0f} {memory:10.1f}", flush=True)
            bad |= memory > LIMIT_MIB or speed < LIMIT_MBPS
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
