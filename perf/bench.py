#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The timed loops of bench beside perftest's on the software device, and what they cost alone.

usage: bench.py PEERPATH BENCH_TRAFFIC [--rounds N] [--quick] [--wire] [--qps N] [--mtu BYTES]

Two processes on loopback, one a processor, in a network namespace of their own where that is allowed. ib_write_bw
and perf/bench_traffic alternate, N rounds, with the same size, count, queue pairs, depth and MTU; medians, and the
median of the rounds' ratios, since what slows a round slows both. CPU is both processes' together, start-up
taken off (a run of the fewest messages, of each, in each round). ib_send_lat and the ping-pong of SEND, 8 bytes, likewise. Then the loop on a provider
that only counts. Exit 1 outside the bounds: bandwidth >= 1.0 of perftest's and CPU <= 1.0 of its, 50 ns a message.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

SIZES = (4096, 16384, 65536, 262144, 1048576)
CONFIG = "name=soft0,address=127.0.0.1,address=::1"
DEPTH = 128
PORT = [25000 + os.getpid() % 20000]


def cpu():
    now = os.times()
    return now.children_user + now.children_system


def perftest(peerpath, config, tool, *words):
    """(output of the client, CPU seconds of both)"""
    PORT[0] += 1
    line = [peerpath, "soft", "-c", config, "--", tool, "-d", "soft0", "-x", "0", "-F", "-u", "18", "-p", str(PORT[0]),
            *map(str, words)]
    before = cpu()
    server = subprocess.Popen(["taskset", "-c", "0", *line], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.4)
    try:
        done = subprocess.run(["taskset", "-c", "1", *line, "127.0.0.1"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        server.wait(timeout=20 if done.returncode == 0 else 1)
    except subprocess.TimeoutExpired:
        sys.exit(f"no end: {' '.join(line)}")
    finally:
        server.kill()
        server.wait()
    if done.returncode:
        sys.exit(f"{' '.join(line)}: exit {done.returncode}\n{done.stdout[-1500:]}")
    return done.stdout, cpu() - before


def ours(peerpath, program, config, *words):
    line = [peerpath, "soft", "-c", config, "--", program, "soft0", *map(str, words), "1,0"]
    before = cpu()
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(line)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, cpu() - before


def measured(args, config, size, n):
    """((MB/s, CPU seconds) of ours, of perftest)"""
    out, used = perftest(args.peerpath, config, "ib_write_bw", "-s", size, "-n", n // args.qps, "-q", args.qps,
                         "-t", DEPTH, "-m", args.mtu)
    row = re.findall(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$", out, re.M)
    theirs = float(row[-1]) * 1.048576, used
    out, used = ours(args.peerpath, args.program, config, "write", size, n, args.qps, DEPTH, args.mtu, 1)
    return (float(out.split()[0]), used), theirs


def bandwidth(args, config, size, total, started):
    """((MB/s, CPU us a message) of ours, of perftest); started: CPU seconds of the two that are no message's."""
    n = max(total // size // args.qps, 100) * args.qps
    return tuple((speed, max(used - none, 0) / n * 1e6)
                 for (speed, used), none in zip(measured(args, config, size, n), started))


def latency(args, config):
    out, _ = perftest(args.peerpath, config, "ib_send_lat", "-s", 8, "-n", 20000, "-m", args.mtu)
    theirs = float(re.findall(r"^ *8 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)", out, re.M)[-1])
    out, _ = ours(args.peerpath, args.program, config, "ping-send", 8, 20000, 1, DEPTH, args.mtu, 1)
    return float(out.split()[0]), theirs


def row(name, pairs, bound):
    """Prints medians and the median ratio; is it outside its bound?"""
    mine, theirs = (statistics.median(x) for x in zip(*pairs))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{name:34} {mine:10.2f} {theirs:10.2f} {ratio:6.2f}  {bound or ''}")
    return (bound.startswith(">=") and ratio < 1.0) or (bound.startswith("<=") and ratio > 1.0)


def null(program):
    bad = False
    for line in subprocess.run([program, "null"], capture_output=True, text=True, check=True).stdout.splitlines():
        print(line, "(bound 50)")
        bad |= float(re.search(r"([\d.]+) ns", line)[1]) > 50
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peerpath")
    parser.add_argument("program", help="perf/bench_traffic")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the bytes")
    parser.add_argument("--wire", action="store_true", help="by UDP instead of the same-host link")
    parser.add_argument("--qps", type=int, default=1)
    parser.add_argument("--mtu", type=int, default=4096)
    args = parser.parse_args()
    for tool in ("ib_write_bw", "ib_send_lat", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    if os.environ.get("PEERPATH_PERF_APART") is None and os.geteuid() == 0:
        os.environ["PEERPATH_PERF_APART"] = "1"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable,
                              *sys.argv])
    config = CONFIG + (",same-host=no" if args.wire else "")
    total = (1 << 30) if args.quick else (4 << 30)
    speed, used = {s: [] for s in SIZES}, {s: [] for s in SIZES}
    lat = []
    for _ in range(args.rounds):
        started = [used for _, used in measured(args, config, SIZES[0], 5 * args.qps)]
        for size in SIZES:
            mine, theirs = bandwidth(args, config, size, min(total, size << 17), started)
            speed[size].append((mine[0], theirs[0]))
            used[size].append((mine[1], theirs[1]))
        lat.append(latency(args, config))
    print(f"{'':34} {'bench':>10} {'perftest':>10} {'ratio':>6}")
    bad = False
    for size in SIZES:
        bad |= row(f"WRITE {size >> 10} KiB, MB/s", speed[size], ">= 1.0")
        bad |= row("  CPU us a message, both", used[size], "<= 1.0")
    row("SEND 8 B, us, half round trip", lat, "")
    bad |= null(args.program)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
