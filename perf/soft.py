#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The software RDMA device beside UCX: over UDP beside UCX over TCP, and by the same-host link beside UCX's
cma and posix: bandwidth, latency, CPU, in one run.

usage: soft.py PEERPATH [--rounds N] [--quick] [--same-host | --wire] [--both SOFT_BOTH]

Two processes on loopback, one a processor, ICRC on, in a network namespace of their own where that is allowed;
what the peer does and what the device does alternate, N rounds; medians. The device is measured by perftest's
ib_write_bw and ib_write_lat, whose receiver polls memory and never the library: a thread must be woken. The peer
is measured twice: UCX as applications use it (ucp_put_bw, ucp_put_lat) and its bare TCP transport (put_bw with zcopy,
am_lat), which is its best. On the same-host link its peer is UCX's bare cma (put_bw, one process writes into the other's
memory) and posix (am_lat, both poll); of small sizes, where a copy through shared memory is UCX's way, posix. CPU seconds are both processes' together, start-up included.
--both (perf/soft_both) measures nothing else: both directions at once as a collective of two ranks has them, by the wire with
threads of its own and without, beside TCP by one thread a process as NCCL's sockets have it; on all processors that there are.
Needs perftest, ucx_perftest and idle (tests/soft). Exit 1 outside the bounds, which are ratios to ucp.
"""
import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

SIZES = (65536, 262144, 1048576)
DEVICE, GID = "soft0", "0"
CONFIG = "name=soft0,address=127.0.0.1,address=::1"
WIRE = CONFIG + ",same-host=no"
PORT = [25000 + os.getpid() % 20000]


def pair(server, client, env):
    """The client's output; both have ended."""
    env = {**os.environ, **env}
    first = subprocess.Popen(["taskset", "-c", "0", *server], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=env)
    time.sleep(0.4)
    try:
        done = subprocess.run(["taskset", "-c", "1", *client], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=env, text=True, timeout=120, check=False)
        if done.returncode == 0:
            first.wait(timeout=20)
    finally:
        first.kill()
        first.wait()
    if done.returncode:
        sys.exit(f"{' '.join(client)}: exit {done.returncode}\n{done.stdout[-1500:]}")
    return done.stdout


def run(server, client, env):
    before = os.times()
    out = pair(server, client, env)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return out, cpu


def soft(peerpath, tool, *args, config=WIRE):
    PORT[0] += 1
    base = [peerpath, "soft", "-c", config, "--", tool, "-d", DEVICE, "-x", GID, "-F", "-p", str(PORT[0]), *args]
    return run(base, [*base, "127.0.0.1"], {})


TCP = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
BARE = ("-x", "tcp", "-d", "lo")


def ucx(test, size, n, more=(), prefix=(), env=None):
    PORT[0] += 1
    base = [*prefix, "ucx_perftest", "-p", str(PORT[0])]
    return run(base, [*base, "127.0.0.1", "-t", test, "-s", str(size), "-n", str(n), "-w", "100", "-f", *more],
               {"UCX_WARN_UNUSED_ENV_VARS": "n", **(env or {})})


def ucx_row(out):
    """(latency us overall, bandwidth MiB/s overall) of the last line of figures."""
    rows = re.findall(r"^\s*(?:Final:)?\s*\d+(?:\s+[\d.]+){7}\s*$", out, re.M)
    if not rows:
        sys.exit("no figures of ucx_perftest:\n" + out[-1500:])
    words = rows[-1].split()
    return float(words[-5]), float(words[-3])


def ucx_typical(out):
    """The median latency, us, as perftest's typical one is."""
    rows = re.findall(r"^\s*(?:Final:)?\s*\d+((?:\s+[\d.]+){7})\s*$", out, re.M)
    if not rows:
        sys.exit("no figures of ucx_perftest:\n" + out[-1500:])
    return float(rows[-1].split()[0])


def perftest_bw(out):
    row = re.findall(r"^\s*\d+\s+\d+\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$", out, re.M)
    return float(row[-1])  # MiB/s, average


def perftest_lat(out):
    row = re.findall(r"^ *8 +\d+ +[\d.]+ +[\d.]+ +([\d.]+)", out, re.M)
    return float(row[-1])  # us, typical


class Series:
    """What was measured in each round: ours, UCX as used, its bare transport."""

    def __init__(self):
        self.ours, self.ucp, self.bare = [], [], []

    def row(self, name, bound=""):
        ours, ucp, bare = (statistics.median(x) for x in (self.ours, self.ucp, self.bare))
        print(f"{name:36} {ours:9.2f} {ucp:9.2f} {bare:9.2f} {ours / ucp:6.2f} {ours / bare:6.2f}  {bound}")
        return ours / ucp


def bandwidth(peerpath, size, total, speed, cpu):
    n, gb = total // size, total / 1e9
    for test, more, env, into, used in (("ucp_put_bw", (), TCP, speed.ucp, cpu.ucp),
                                        ("put_bw", (*BARE, "-D", "zcopy"), {}, speed.bare, cpu.bare)):
        out, seconds = ucx(test, size, n, more, env=env)
        into.append(ucx_row(out)[1])
        used.append(seconds / gb)
    out, seconds = soft(peerpath, "ib_write_bw", "-s", str(size), "-n", str(n))
    speed.ours.append(perftest_bw(out))
    cpu.ours.append(seconds / gb)


def latency(peerpath, series):
    ucp = ucx_row(ucx("ucp_put_lat", 8, 20000, env=TCP)[0])[0]
    bare = ucx_row(ucx("am_lat", 8, 20000, (*BARE, "-D", "short"))[0])[0]
    for tool, s in series.items():
        s.ours.append(perftest_lat(soft(peerpath, tool, "-s", "8", "-n", "20000")[0]))
        s.ucp.append(ucp)
        s.bare.append(bare)


class Near:
    """The same-host link and its peer in each round."""

    def __init__(self, name, ours, theirs, bound):
        self.name, self.ours, self.theirs, self.bound = name, ours, theirs, bound
        self.pairs = []

    def measure(self):
        self.pairs.append((self.ours(), self.theirs()))

    def row(self):
        """Outside its bound? The median of each, and of the rounds' ratios: what slows a round slows both."""
        ours, theirs = (statistics.median(x) for x in zip(*self.pairs))
        ratio = statistics.median(a / b for a, b in self.pairs)
        print(f"{self.name:44} {ours:9.2f} {theirs:9.2f} {ratio:6.2f}  {self.bound[0]}")
        return self.bound[1] is not None and not self.bound[1](ours, ratio)


def near_series(peerpath, total):
    """Rows of the same-host link: name, how ours is measured, how the peer is, bound."""
    def bw(tool, size):
        return lambda: perftest_bw(soft(peerpath, tool, "-s", str(size), "-n", str(total // size), config=CONFIG)[0])

    def lat(tool):
        return lambda: perftest_lat(soft(peerpath, tool, "-s", "8", "-n", "20000", config=CONFIG)[0])

    def cma(test, size):
        return lambda: ucx_row(ucx(test, size, total // size, ("-x", "cma", "-d", "memory", "-D", "zcopy"))[0])[1]

    def posix():
        return ucx_typical(ucx("am_lat", 8, 20000, ("-x", "posix", "-d", "memory", "-D", "short"))[0])

    none = ("", None)
    return [
        Near("RC WRITE 64 KiB, MiB/s, beside cma put", bw("ib_write_bw", 65536), cma("put_bw", 65536), none),
        Near("RC WRITE 1 MiB, MiB/s, beside cma put", bw("ib_write_bw", 1 << 20), cma("put_bw", 1 << 20),
             (">= 0.9", lambda ours, ratio: ratio >= 0.9)),
        Near("RC READ 1 MiB, MiB/s, beside cma get", bw("ib_read_bw", 1 << 20), cma("get", 1 << 20), none),
        Near("RC SEND 1 MiB, MiB/s, beside cma put", bw("ib_send_bw", 1 << 20), cma("put_bw", 1 << 20), none),
        Near("8 B, us, ib_send_lat, beside posix am", lat("ib_send_lat"), posix,
             ("<= 2 us", lambda ours, ratio: ours <= 2)),
        Near("8 B, us, ib_write_lat, beside posix am", lat("ib_write_lat"), posix, none),
    ]


def same_host(peerpath, rounds, total):
    series = near_series(peerpath, total)
    for _ in range(rounds):
        for s in series:
            s.measure()
    print(f"{'':44} {'device':>9} {'UCX':>9} {'ratio':>6}")
    return any([s.row() for s in series])


def socket_bytes():
    """What the kernel grants a receiving socket; a quarter of it is the device's window."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for name in (33, socket.SO_RCVBUF):  # SO_RCVBUFFORCE
            try:
                s.setsockopt(socket.SOL_SOCKET, name, 16 << 20)
                break
            except PermissionError:
                pass
        return s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2


def both(peerpath, program, rounds, messages):
    """Both directions at once: the wire beside TCP. Outside its bound?"""
    base = [peerpath, "soft", "-c"]
    ways = {
        "TCP, one thread a process": [program, "tcp"],
        "wire-threads = no": [*base, WIRE + ",wire-threads=no", "--", program, "verbs"],
        "wire-threads = auto": [*base, WIRE, "--", program, "verbs"],
        "wire-threads = yes": [*base, WIRE + ",wire-threads=yes", "--", program, "verbs"],
    }
    rows = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            done = subprocess.run([*command, str(messages)], capture_output=True, text=True, timeout=300, check=False)
            found = re.match(r"(\d+) MB/s each way, ([\d.]+) CPU s/GB; CPU s of one: (.*)", done.stdout)
            if done.returncode or not found:
                sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
            rows[name].append((float(found[1]), float(found[2]), found[3]))
    first = rows["TCP, one thread a process"]
    print(f"{len(os.sched_getaffinity(0))} processors, {socket_bytes() >> 10} KiB granted to a receiving socket")
    print(f"{'both directions at once':28} {'MB/s':>6} {'/TCP':>6} {'s/GB':>6}  CPU seconds of one rank, by thread")
    ratio = {}
    for name, row in rows.items():
        ratio[name] = statistics.median(a[0] / b[0] for a, b in zip(row, first))
        speed, cpu = (statistics.median(x[i] for x in row) for i in (0, 1))
        print(f"{name:28} {speed:6.0f} {ratio[name]:6.2f} {cpu:6.2f}  {row[-1][2]}")
    return ratio["wire-threads = auto"] < 1


def idle(peerpath, program):
    done = subprocess.run([peerpath, "soft", "-c", CONFIG, "--", program, "1000", "2"], capture_output=True,
                          text=True, check=True)
    print(done.stdout.strip().replace("\n", ", "), "(1000 idle RC queue pairs; bounds 24 MiB without them, 64 KiB, 0)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peerpath")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the bytes")
    parser.add_argument("--same-host", action="store_true", help="the same-host link alone")
    parser.add_argument("--wire", action="store_true", help="the wire alone")
    parser.add_argument("--both", metavar="SOFT_BOTH", help="both directions at once alone; the program perf/soft_both")
    parser.add_argument("--idle", help="the program tests/soft/idle: measures memory and CPU of idle queue pairs too")
    args = parser.parse_args()
    for tool in () if args.both else ("ib_write_bw", "ucx_perftest", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    if os.environ.get("PEERPATH_PERF_APART") is None and os.geteuid() == 0:
        os.environ["PEERPATH_PERF_APART"] = "1"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable,
                              *sys.argv])
    if args.both:
        return int(both(args.peerpath, args.both, args.rounds, 500 if args.quick else 2000))
    total = (1 << 30) if args.quick else (4 << 30)
    bad = not args.wire and same_host(args.peerpath, args.rounds, total // 2)
    if not args.same_host:
        bad |= wire(args.peerpath, args.rounds, total)
    if args.idle:
        idle(args.peerpath, args.idle)
    return int(bad)


def wire(peerpath, rounds, total):
    speed = {size: Series() for size in SIZES}
    cpu = {size: Series() for size in SIZES}
    lat = {"ib_write_lat": Series(), "ib_send_lat": Series()}
    for _ in range(rounds):
        for size in SIZES:
            bandwidth(peerpath, size, total, speed[size], cpu[size])
        latency(peerpath, lat)
    bad = False
    print(f"{'':36} {'device':>9} {'UCX ucp':>9} {'UCX bare':>9} {'/ucp':>6} {'/bare':>6}")
    for size in SIZES:
        bad |= speed[size].row(f"RC WRITE {size >> 10} KiB, MiB/s", ">= 0.6") < 0.6
        cpu[size].row("  CPU s/GB")
    for name, s in lat.items():
        bad |= s.row(f"8 B, us, {name}", "<= 1.5") > 1.5
    return bad


if __name__ == "__main__":
    sys.exit(main())
