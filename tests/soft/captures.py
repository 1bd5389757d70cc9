#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the software device puts on the wire: two processes under rdma_check on the loopback of a network
namespace of their own, captured by tcpdump and judged by others (judge.py), once over IPv4, once over IPv6.

usage: captures.py PEERPATH RDMA_CHECK PACKETS
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import judge
from soft import LOOP, alone, both_right, cases, checked, need, on, pair, port, skip

PEERPATH, CHECK, PACKETS = sys.argv[1:4]

# The GSO train of a bridge or loopback is one frame in a capture, longer than any that is on a wire, and its
# lengths are not those of the packets that the ICRC is of: without trains loopback shows what a NIC would. Processes
# of one host would not send anything by it, but for same-host=no.
SINGLE = LOOP + ",trains=no,same-host=no"
# All of RC that rdma_check asks for, and UD's two.
OPCODES = (0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
           0x12, 0x13, 0x14, 0x17, 0x20, 0x22, 0x23, 0x24, 0x25, 0x26, 0x29, 0x2b, 0x64, 0x65)


def captured(path, gid, mtu, seed):
    sniffer = subprocess.Popen(["tcpdump", "-i", "lo", "-s", "0", "-B", "32768", "-U", "--immediate-mode", "-Z", "root",
                                "-w", path, "udp"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        said = sniffer.stderr.readline()
        if b"listening on" not in said:
            # In a user namespace it cannot set its groups.
            skip(f"tcpdump does not listen: {said.decode().strip()}")
        number = port()
        words = [CHECK, "-d", "soft0", "-g", gid, "-p", number]
        config = f"{SINGLE},mtu={mtu}"
        for text in both_right("rdma_check", pair(
                on(PEERPATH, config, words), on(PEERPATH, config, [*words, "-q", 2, "-S", seed, "127.0.0.1"]), number)):
            checked("rdma_check", text, mtu)
        size = -1
        while size != os.path.getsize(path):
            size = os.path.getsize(path)
            time.sleep(0.3)
    finally:
        sniffer.send_signal(signal.SIGINT)
        sniffer.stderr.close()
        sniffer.wait()


def case(folder, gid, mtu, seed):
    path = os.path.join(folder, f"{gid}-{mtu}.pcap")
    captured(path, gid, mtu, seed)
    return f"{judge.capture(path, PACKETS, OPCODES)} packets judged"


def main():
    alone(needed=True)
    need("tcpdump")
    with tempfile.TemporaryDirectory() as folder:
        return cases([(f"{'IPv6' if gid else 'IPv4'}, path MTU {mtu}", case, folder, gid, mtu, gid * 10 + mtu)
                      for gid in (0, 1) for mtu in (1024, 4096)])


if __name__ == "__main__":
    sys.exit(main())
