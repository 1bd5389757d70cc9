#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The software RDMA device beside UCX over TCP: bandwidth, latency, CPU, in one run.

usage: soft.py PEERPATH [--rounds N] [--quick]

Two processes on loopback, ICRC on; what the peer does and what the device does alternate, N rounds;
medians. CPU seconds are both processes' together. ib_write_lat's receiver polls memory and never the
library (the hard case: a thread must be woken); ucx_perftest over rc_verbs polls.
Needs perftest and ucx_perftest. Exit 1 below the bounds of BOUNDS (ratios, not times).
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

SIZES = (65536, 262144, 1048576)
DEVICE, GID = "soft0", "0"
CONFIG = "name=soft0,address=127.0.0.1,address=::1"
PORT = [25000 + os.getpid() % 20000]


def pair(server, client, env):
    """Client's output, CPU seconds of both, and the larger resident memory in MiB."""
    env = {**os.environ, **env}
    first = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    time.sleep(0.4)
    second = subprocess.Popen(client, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, text=True)
    try:
        out, _ = second.communicate(timeout=120)
    finally:
        second.kill()
    _, status, used = os.wait4(first.pid, 0) if second.returncode == 0 else (0, 0, None)
    first.kill()
    if second.returncode or used is None:
        sys.exit(f"{' '.join(client)}: exit {second.returncode}\n{out[-1500:]}")
    # communicate() waited: the client's usage is in the children's sum, taken as a difference
    return out, used


def run(server, client, env):
    before = os.times()
    out, _ = pair(server, client, env)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return out, cpu


def soft(peerpath, tool, *args):
    PORT[0] += 1
    base = [peerpath, "soft", "-c", CONFIG, "--", tool, "-d", DEVICE, "-x", GID, "-F", "-p", str(PORT[0]), *args]
    return run(base, [*base, "127.0.0.1"], {})


def ucx(test, size, n, prefix=(), env=None):
    PORT[0] += 1
    base = [*prefix, "ucx_perftest", "-p", str(PORT[0])]
    env = env or {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
    return run(base, [*base, "127.0.0.1", "-t", test, "-s", str(size), "-n", str(n), "-w", "100", "-f"],
               {**env, "UCX_WARN_UNUSED_ENV_VARS": "n"})


def ucx_row(out):
    """(latency us overall, bandwidth MiB/s overall) of the last line of figures."""
    rows = re.findall(r"^\s*(?:Final:)?\s*\d+(?:\s+[\d.]+){7}\s*$", out, re.M)
    if not rows:
        sys.exit("no figures of ucx_perftest:\n" + out[-1500:])
    words = rows[-1].split()
    return float(words[-5]), float(words[-3])


def perftest_bw(out):
    row = re.findall(r"^ *\d+ +\d+ +[\d.]+ +([\d.]+) +[\d.]+ *$", out, re.M)
    return float(row[-1])  # MiB/s, average


def perftest_lat(out):
    row = re.findall(r"^ *8 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)", out, re.M)
    return float(row[-1])  # us, typical


class Series:
    def __init__(self):
        self.ours, self.peers = [], []

    def ratio(self):
        return statistics.median(self.ours) / statistics.median(self.peers)


def bandwidth(peerpath, size, total):
    n = total // size
    out, cpu = ucx("ucp_put_bw", size, n)
    peer, peer_cpu = ucx_row(out)[1], cpu / (total / 1e9)
    out, cpu = soft(peerpath, "ib_write_bw", "-s", str(size), "-n", str(n))
    return peer, peer_cpu, perftest_bw(out), cpu / (total / 1e9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peerpath")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the bytes")
    args = parser.parse_args()
    for tool in ("ib_write_bw", "ucx_perftest"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    total = (1 << 30) if args.quick else (4 << 30)
    bw = {size: Series() for size in SIZES}
    cpu = {size: Series() for size in SIZES}
    lat = {"ib_write_lat": Series(), "ucx_perftest rc_verbs": Series()}
    rc = {"UCX_TLS": "rc_verbs", "UCX_NET_DEVICES": f"{DEVICE}:1", "UCX_IB_GID_INDEX": GID}
    for _ in range(args.rounds):
        for size in SIZES:
            peer, peer_cpu, ours, our_cpu = bandwidth(args.peerpath, size, total)
            bw[size].peers.append(peer)
            bw[size].ours.append(ours)
            cpu[size].peers.append(peer_cpu)
            cpu[size].ours.append(our_cpu)
        peer = ucx_row(ucx("ucp_put_lat", 8, 50000)[0])[0]
        out, _ = soft(args.peerpath, "ib_write_lat", "-s", "8", "-n", "20000")
        lat["ib_write_lat"].ours.append(perftest_lat(out))
        lat["ib_write_lat"].peers.append(peer)
        out, _ = ucx("ucp_put_lat", 8, 50000, (args.peerpath, "soft", "-c", CONFIG, "--"), rc)
        lat["ucx_perftest rc_verbs"].ours.append(ucx_row(out)[0])
        lat["ucx_perftest rc_verbs"].peers.append(peer)
    bad = False
    print(f"{'':34} {'device':>9} {'UCX tcp':>9} {'ratio':>6}   bound")
    for size in SIZES:
        s = bw[size]
        bad |= s.ratio() < 0.6
        print(f"RC WRITE {size >> 10:5} KiB, MiB/s            {statistics.median(s.ours):9.0f} "
              f"{statistics.median(s.peers):9.0f} {s.ratio():6.2f}   >= 0.6")
        s = cpu[size]
        print(f"RC WRITE {size >> 10:5} KiB, CPU s/GB         {statistics.median(s.ours):9.2f} "
              f"{statistics.median(s.peers):9.2f} {s.ratio():6.2f}")
    for name, s in lat.items():
        bad |= s.ratio() > 1.5
        print(f"WRITE 8 B, us, {name:21} {statistics.median(s.ours):7.2f} "
              f"{statistics.median(s.peers):9.2f} {s.ratio():6.2f}   <= 1.5")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
