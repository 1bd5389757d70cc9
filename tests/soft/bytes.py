#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two processes on the software device under rdma_check, which looks at every byte: IPv4 and IPv6,
one and four QPs, the old way of posting and the new, small path MTU and large.

usage: bytes.py PEERPATH RDMA_CHECK [SUBSTRING-OF-A-CASE...]
"""
import itertools
import os
import sys

from soft import LOOP, alone, both_right, cases, checked, on, pair, port

PEERPATH, CHECK = sys.argv[1:3]


def check(gid, qps, ways, mtu, seed):
    number = port()
    config = LOOP + (f",mtu={mtu}" if mtu != 4096 else "")
    server, client = ([CHECK, "-d", "soft0", "-g", gid, "-p", number, *way] for way in ways)
    texts = both_right("rdma_check", pair(
        on(PEERPATH, config, server),
        on(PEERPATH, config, [*client, "-q", qps, "-S", seed, "127.0.0.1"]), number, 120))
    for text in texts:
        checked("rdma_check", text, mtu)


def main():
    alone()
    new, old = ["-w"], []
    table = []
    for seed, (gid, qps, ways, mtu) in enumerate(itertools.product(
            (0, 1), (1, 4), ((old, old), (new, new), (old, new)), (4096, 1024))):
        # A sanitizer looks for crashes, which half of the combinations show: each value with each other.
        if os.environ.get("PEERPATH_SANITIZED") and (gid + (qps == 4) + (mtu == 1024)) % 2:
            continue
        name = (f"{'IPv6' if gid else 'IPv4'}, {qps} QPs, {'new' if ways[0] else 'old'} with "
                f"{'new' if ways[1] else 'old'} posting, path MTU {mtu}")
        table.append((name, check, gid, qps, ways, mtu, seed))
    return cases(table, sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
