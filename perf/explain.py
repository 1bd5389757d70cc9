#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of peerpath explain: a log in which every line complains, and one of prose.

usage: explain.py PEERPATH [MEGABYTES]

Times are of the CPU: others may use the machine; the best of three runs. Exit 1 below 100 MB/s or
above 64 MiB.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

LIMIT_MBPS, LIMIT_MIB = 100, 64


def complaint(n):
    host, pid, gpu = n % 64, 10000 + n * 7 % 50000, n % 8
    return (
        b"node%03d:%d:%d [%d] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.%d<%d> "
        b"with status=12 opcode=0 len=0 vendor err 129 (Recv)\n" % (host, pid, pid + 3, gpu, host, pid),
        b"node%03d:%d:%d [%d] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address "
        b"errno 14\n" % (host, pid, pid + 3, gpu),
        b"[%d.123456] [node%d:%d:0] ib_mlx5_log.c:170 UCX  ERROR Transport retry count exceeded on mlx5_%d:1/RoCE "
        b"(synd 0x15 vend 0x81 hw_synd 0/0)\n" % (1700000000 + n, host, pid, gpu),
        b"[%d.123456] infiniband mlx5_%d: create_qp:3206:(pid %d): Create QP type 2 failed\n" % (n, gpu, pid),
    )[n % 4]


def prose(n):
    return b"step %d | loss 2.3456 | lr 1.0e-4 | tokens/s 123456 | the quick brown fox jumps\n" % n


def write(path, size, line):
    n = 0
    with path.open("wb") as out:
        while out.tell() < size:
            out.write(b"".join(line(n + k) for k in range(1000)))
            n += 1000


def run(program, path):
    """(CPU seconds, MiB at most)"""
    child = subprocess.Popen([program, "explain", "--no-node", str(path)], stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(child.pid, 0)
    child.returncode = 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    size = int(sys.argv[2]) * 1_000_000 if len(sys.argv) > 2 else 64_000_000
    bad = False
    with tempfile.TemporaryDirectory() as work:
        for line in (complaint, prose):
            path = pathlib.Path(work, line.__name__)
            write(path, size, line)
            runs = [run(sys.argv[1], path) for _ in range(3)]
            speed, memory = size / 1e6 / min(r[0] for r in runs), max(r[1] for r in runs)
            bad |= speed < LIMIT_MBPS or memory > LIMIT_MIB
            print(f"{line.__name__}: {speed:.0f} MB/s, {memory:.0f} MiB")
            path.unlink()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
