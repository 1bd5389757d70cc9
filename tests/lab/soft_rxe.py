#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: soft_rxe.py TESTS-SOFT LAB-DIR PEERPATH RDMA_CHECK PACKETS PART

The software device on the host side of the lab and Linux's rdma_rxe in a guest: rdma_check looks at
every byte with either end requesting and either end serving, perftest runs in both directions, and
every packet of the link is judged by others (judge.py). Parts 1500 and 4200 are Ethernet's MTU; with 4200 it is a
half of that.
"""
import os
import re
import sys
import tempfile

sys.path[:0] = [sys.argv[1], sys.argv[2]]
import judge  # noqa: E402
from lab import Lab, LabError, status_of  # noqa: E402
from soft import CASES, PART, Fault, checked, not_sanitized, on  # noqa: E402

PEERPATH, CHECK, PACKETS = map(os.path.abspath, sys.argv[3:6])
CONFIG = "name=soft0,address=10.77.0.254,address=fd77::fe"
HOST = "10.77.0.254"
GUEST = ("10.77.0.1", "fd77::1")  # rxe sends no UDP checksums

# Tool and what the link must carry because of it (opcodes of the BTH). -o: perftest asks of each end as
# many open READs as the other offers; rxe has 128.
PERFTEST = (
    ("ib_write_bw -s 65536", (0x06, 0x07, 0x08, 0x11)),
    ("ib_read_bw -s 65536 -o 16", (0x0c, 0x0d, 0x0e, 0x0f)),
    ("ib_send_bw -s 65536", (0x00, 0x01, 0x02)),
    ("ib_atomic_bw -A FETCH_AND_ADD -o 16", (0x14, 0x12)),
    ("ib_atomic_bw -A CMP_AND_SWAP -o 16", (0x13,)),
    ("ib_send_bw -c UD -s 1024", (0x64,)),
    ("ib_write_lat -s 8", (0x0a,)),
)
# What rdma_check adds: immediates, one packet answers, UD with an immediate, UC, SEND with invalidate.
CHECKED = (0x03, 0x04, 0x05, 0x09, 0x0b, 0x10, 0x17, 0x20, 0x22, 0x23, 0x24, 0x25, 0x26, 0x29, 0x2b, 0x65)


def soft(words, config=CONFIG):
    return on(PEERPATH, config, words)


def check(lab, six, qps, seed, guest_serves, way=""):
    """Both ends' results."""
    guest = f"rdma_check -d rxe0 -g {'$GID6' if six else '$GID4'}"
    host = [CHECK, "-d", "soft0", "-g", "1" if six else "0", *way.split()]
    client = f" -q {qps} -S {seed} "
    if guest_serves:
        server = lab.guest(0).start(guest)
        result = lab.host(soft([*host, *client.split(), "10.77.0.1"]), 100)
    else:
        server = lab.host_start(soft(host))
        result = lab.guest(0).run(guest + client + HOST, 100)
    if result.status:
        server = server.kill()
        raise LabError(f"{result.what}: exit {result.status}\n{result.text}\n{server.what}: {server.text}")
    return result, server.wait(70)


def right(lab, mtu, *how):
    for result in check(lab, *how):
        result.check()
        checked(result.what, result.text, mtu)


def perftest(lab, port, tool, six, guest_serves, config=CONFIG):
    options = f"-n 20 -u 18 -F -p {port}"
    guest = f"{tool} -d rxe0 -x {'$GID6' if six else '$GID4'} {options}"
    host = f"{tool} -d soft0 -x {1 if six else 0} {options}".split()
    if guest_serves:
        server = lab.guest(0).start(guest)
        lab.guest(0).wait_port(port)
        client = lab.host(soft([*host, "10.77.0.1"], config), 60)
    else:
        server = lab.host_start(soft(host, config))
        lab.host_wait_port(port)
        client = lab.guest(0).run(f"{guest} {HOST}", 60)
    try:
        for result in (client, server.wait(20)):
            result.check()
    finally:
        server.kill()
    # Sizes of two: atomics print 8.
    if not re.search(r"^ *\d+ +20 +[\d.]+ +[\d.]+", client.text, re.M):
        raise LabError(f"{client.what}: no row of figures:\n{client.text}")


def bytes_part(lab, mtu):
    seed = 1
    for six in (False, True):
        for guest_serves in (True, False):
            for qps, way in ((1, ""), (4, "-w")):
                if mtu != 1024 and (six + guest_serves + qps) % 2:
                    continue  # large packets: a half, in which each two of the three still meet
                right(lab, mtu, six, qps, seed, guest_serves, way)
                seed += 1
    print(f"rdma_check: {seed - 1} runs of {CASES[mtu]} cases, path MTU {mtu}: every byte right")


def perftest_part(lab, mtu):
    runs = 0
    for tool, _ in PERFTEST:
        # Large packets: one way a tool, by turns.
        for guest_serves in (True, False) if mtu == 1024 else (runs % 2 == 0,):
            # Both families and both ways of posting, not their product.
            perftest(lab, 18515 + runs, tool, runs // 2 % 2 == 1, guest_serves,
                     CONFIG + (PART if runs % 4 in (1, 2) else ""))
            runs += 1
    print(f"perftest: {runs} runs right")


def part(ethernet, mtu):
    with tempfile.TemporaryDirectory() as work:
        pcap = os.path.join(work, "link.pcap")
        with Lab(nodes=1, mtu=ethernet, pcap=pcap, put=[(CHECK, "bin/rdma_check")]) as lab:
            bytes_part(lab, mtu)
            perftest_part(lab, mtu)
            lab.capture_stop()
        opcodes = {code for _, codes in PERFTEST for code in codes} | set(CHECKED)
        print(f"{judge.capture(pcap, PACKETS, opcodes, zero=GUEST)} packets judged")


def tested():
    part(*{"1500": (1500, 1024), "4200": (4200, 4096)}[sys.argv[6]])


def main():
    not_sanitized()
    # meson names the built libibverbs there: the guest must get the system's.
    os.environ.pop("LD_LIBRARY_PATH", None)
    return status_of(tested, Fault)


if __name__ == "__main__":
    sys.exit(main())
