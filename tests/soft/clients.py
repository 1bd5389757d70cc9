#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of rdma-core and UCX, unmodified, between two processes on the software device.

usage: clients.py PEERPATH PART [SUBSTRING-OF-A-CASE...]

Parts: ibverbs (ibv_devices, ibv_devinfo, the pingpongs with their check of the bytes), ucx (ucx_perftest
over rc_verbs and ud_verbs).
"""
import os
import re
import subprocess
import sys

from soft import LOOP, Fault, alone, both_right, cases, need, not_sanitized, on, pair, port

PEERPATH, PART = sys.argv[1:3]


def says(words, *wanted):
    done = subprocess.run(on(PEERPATH, LOOP, words), capture_output=True, text=True, check=False)
    missing = [want for want in wanted if not re.search(want, done.stdout, re.M)]
    if done.returncode or missing:
        raise Fault(f"exit {done.returncode}, without {missing}:\n{done.stdout}{done.stderr}")


def pingpong(tool, gid, options):
    number = port()
    words = [tool, "-d", "soft0", "-g", gid, "-p", number, *options.split()]
    texts = both_right(tool, pair(on(PEERPATH, LOOP, words), on(PEERPATH, LOOP, [*words, "127.0.0.1"]), number))
    for text in texts:
        # -c: the tool says where a page holds a wrong byte, and goes on.
        if not re.search(r"^\d+ iters in ", text, re.M) or "invalid data" in text:
            raise Fault(text[-2000:])


def ucx(transport, test, size, gid):
    number = port()
    words = ["ucx_perftest", "-t", test, "-n", "500", "-w", "50", "-s", size, "-p", number, "-f"]
    env = {"UCX_TLS": transport, "UCX_NET_DEVICES": "soft0:1", "UCX_IB_GID_INDEX": str(gid), "UCX_LOG_LEVEL": "error"}
    results = pair(on(PEERPATH, LOOP, words), on(PEERPATH, LOOP, [*words, "127.0.0.1"]), number, 60, env)
    _, said = both_right(test, results)
    if "ERROR" in said or not re.search(r"^(Final:)? +500( +[\d.]+){7}$", said, re.M):
        raise Fault(said[-2000:])


def ibverbs():
    need("ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong")
    table = [
        ("ibv_devices", says, ["ibv_devices"], r"^ +soft0\s+[0-9a-f]{16}$"),
        ("ibv_devinfo -v", says, ["ibv_devinfo", "-v"], r"hca_id:\s+soft0", r"state:\s+PORT_ACTIVE \(4\)",
         r"active_mtu:\s+4096 \(5\)", r"link_layer:\s+Ethernet", r"GID\[ +0\]:\s+::ffff:127.0.0.1, RoCE v2",
         r"GID\[ +1\]:\s+::1, RoCE v2"),
    ]
    for gid, family in enumerate(("IPv4", "IPv6")):
        for tool, options in (("ibv_rc_pingpong", "-c"), ("ibv_rc_pingpong", "-c -e -m 1024 -s 65536 -n 200"),
                              ("ibv_rc_pingpong", "-c -N"), ("ibv_ud_pingpong", "-c -s 1024"),
                              ("ibv_ud_pingpong", "-c -e -s 1024"), ("ibv_srq_pingpong", "-c -q 4"),
                              ("ibv_srq_pingpong", "-c -e")):
            table.append((f"{tool} {options}, {family}", pingpong, tool, gid, options))
    return table


def ucx_cases():
    need("ucx_perftest")
    table = []
    for gid, (transport, name) in enumerate((("rc_verbs,ud_verbs:aux", "rc_verbs"), ("ud_verbs", "ud_verbs"))):
        for test in ("tag_lat", "tag_bw", "stream_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_am_bw"):
            for size in (8, 65536):
                table.append((f"{test} of {size} bytes over {name}, {'IPv6' if gid else 'IPv4'}", ucx, transport,
                              test, size, gid))
        for test in ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"):
            table.append((f"{test} over {name}", ucx, transport, test, 8, gid))
    return table


def main():
    not_sanitized()
    alone()
    os.environ.pop("UCX_TLS", None)
    return cases({"ibverbs": ibverbs, "ucx": ucx_cases}[PART](), sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
