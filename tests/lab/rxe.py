#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: rxe.py LAB-DIR RDMA_CHECK WRONG_VERBS PART

Two guests talk over the kernel's rdma_rxe: perftest runs, rdma_check's bytes are right, and every
packet of the link has a right ICRC by an independent checker (PEERPATH_SHARED or ../shared, where
it is there). So what a later test finds wrong between a guest and the software device is not the
lab's or the checker's fault. Part 'wrong' is the checker's own control: each fault that is put in
between it and the device must be found.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
from lab import Lab, LabError, status_of  # noqa: E402

CHECK, WRONG = sys.argv[2], sys.argv[3]

# rdma_check's, of both directions, by path MTU: tests/soft/soft.py says which.
CASES = {1024: 220, 4096: 234}

# Tool and what the link must carry because of it (opcodes of the BTH).
PERFTEST = (
    ("ib_write_bw -s 4096", ("06", "08")),
    ("ib_write_bw -s 65536", ("07",)),
    ("ib_read_bw -s 4096", ("0c", "0d", "0f")),
    ("ib_read_bw -s 65536", ("0e",)),
    ("ib_send_bw -s 4096", ("00", "02")),
    ("ib_send_bw -s 65536", ("01",)),
    ("ib_atomic_bw -A FETCH_AND_ADD", ("14", "12")),
    ("ib_atomic_bw -A CMP_AND_SWAP", ("13",)),
    ("ib_send_bw -c UD -s 1024", ("64",)),
)


def perftest(lab, gid):
    for number, (tool, _) in enumerate(PERFTEST):
        command = f"{tool} -d rxe0 -x {gid} -n 20 -u 18 -F -p {18515 + number}"
        server = lab.guest(0).start(command)
        lab.guest(0).wait_port(18515 + number)
        lab.guest(1).run(f"{command} 10.77.0.1").check()
        server.wait(20).check()


def check(lab, options, more=""):
    """Both ends' results; the server is guest 0."""
    server = lab.guest(0).start(f"rdma_check -d rxe0 {options}")
    client = lab.guest(1).run(f"{more} rdma_check -d rxe0 {options} 10.77.0.1", 100)
    return server.wait(70), client


def right(lab, options, cases):
    for result in check(lab, options):
        result.check()
        found = re.search(r"^(\d+) ok, 0 bad, \d+ skipped$", result.text, re.M)
        if not found or int(found[1]) != cases:
            raise LabError(f"{result.what}: not {cases} cases:\n{result.text}")


def judged(lab, path, opcodes):
    lab.capture_stop()
    shared = pathlib.Path(os.environ.get("PEERPATH_SHARED") or
                          pathlib.Path(__file__).resolve().parents[3] / "shared")
    judge = shared / "tools" / "icrc-check"
    if not judge.exists():
        print("the capture was not judged: no shared/tools/icrc-check")
        return
    run = subprocess.run([sys.executable, str(judge), path], capture_output=True, text=True, check=False)
    print(run.stdout.strip())
    seen = set(re.findall(r"\b([0-9a-f]{2}):\d+", run.stdout))
    if run.returncode or not set(opcodes) <= seen:
        raise LabError(f"{run.stdout}{run.stderr}missing opcodes: {sorted(set(opcodes) - seen)}")


def part_tap(work):
    """Ethernet's MTU, IPv4 and IPv6, on the bridge."""
    pcap = os.path.join(work, "link.pcap")
    with Lab(nodes=2, mtu=1500, pcap=pcap, put=[(CHECK, "bin/rdma_check")]) as lab:
        perftest(lab, "$GID4")
        right(lab, "-g $GID4", CASES[1024])
        right(lab, "-g $GID6 -S 2", CASES[1024])
        judged(lab, pcap, {code for _, codes in PERFTEST for code in codes} | {"03", "05", "09", "0b"})


def part_socket(work):
    """Large packets, several QPs, on QEMU's own wire."""
    pcap = os.path.join(work, "link.pcap")
    with Lab(nodes=2, mtu=4200, link="socket", pcap=pcap, put=[(CHECK, "bin/rdma_check")]) as lab:
        right(lab, "-g $GID4 -q 4 -S 3", CASES[4096])
        judged(lab, pcap, ("07", "0e", "01"))


# What a user-space engine does: one call, three datagrams of 1000 bytes. Unconnected and DO, so that
# the IP identifications are known beforehand; the port's first bytes tell the datagrams apart.
TRAIN = """
import socket, sys
four = sys.argv[1] == "4"
s = socket.socket(socket.AF_INET if four else socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(*((socket.IPPROTO_IP, 10, 2) if four else (socket.IPPROTO_IPV6, 23, 2)))
s.setsockopt(socket.IPPROTO_UDP, 103, 1000)
s.sendto(b"".join(bytes([i]) * 1000 for i in range(3)), ("10.77.0.1" if four else "fd77::1", 4791))
"""


def datagrams(path):
    """IP identification (IPv4) and payload of the UDP packets of a capture of Ethernet frames."""
    raw, at = pathlib.Path(path).read_bytes(), 24
    while at < len(raw):
        size = int.from_bytes(raw[at + 8:at + 12], "little")
        ip, at = raw[at + 16 + 14:at + 16 + size], at + 16 + size
        four = ip[0] >> 4 == 4
        end = int.from_bytes(ip[2:4], "big") if four else 40 + int.from_bytes(ip[4:6], "big")
        yield int.from_bytes(ip[4:6], "big") if four else None, ip[28 if four else 48:end]


def part_host(work):
    """The link from the host side: both families, and a capture of what is on the wire."""
    pcap = os.path.join(work, "link.pcap")
    with Lab(nodes=1, mtu=1500, pcap=pcap) as lab:
        for host in ("10.77.0.254", "fd77::fe"):
            lab.guest(0).run(f"ping -c 1 -W 5 {host}").check()
        for family in "46":
            lab.host([sys.executable, "-c", TRAIN, family]).check()
        lab.capture_stop()
        seen = list(datagrams(pcap))
    want = [(i if family == "4" else None, bytes([i]) * 1000) for family in "46" for i in range(3)]
    if seen != want:
        raise LabError(f"on the wire: {[(i, len(body), body[:1]) for i, body in seen]}")


def part_wrong(_work):
    with Lab(nodes=2, put=[(CHECK, "bin/rdma_check"), (WRONG, "lib/wrong.so")]) as lab:
        for fault, ops, said in WRONGS:
            more = f"WRONG={fault} LD_PRELOAD=/lib/wrong.so"
            for result in check(lab, f"-g $GID4 -o {ops} -s 3000", more):
                if result.status != 1 or not re.search(said, result.text):
                    raise LabError(f"fault {fault} not found by {result.what}: exit {result.status}\n"
                                   f"{result.text}")


# Fault of wrong_verbs.c, the op that shows it, what both ends must say.
WRONGS = (
    ("byte", "write", r"BAD +client write 3000: .*byte 2000 is"),
    ("byte", "send", r"BAD +client send 3000: .*byte 2000 is"),
    ("short", "write", r"BAD +client write 3000: .*byte 2999 is"),
    ("short", "send", r"BAD +client send 3000: .*2999 bytes received"),
    ("beyond", "write", r"BAD +client write 3000: .*byte 3000 is .*outside the message"),
    ("twice", "fetch_add", r"BAD +client fetch_add 8: .*value"),
    ("imm", "write_imm", r"BAD +client write_imm 3000: .*immediate"),
    ("imm", "send_imm", r"BAD +client send_imm 3000: .*immediate"),
    ("key", "bad_key_write", r"BAD +client bad_key_write 64: .*success, not remote access error"),
    ("empty", "write", r"BAD +client write 3000: .*byte 0 is"),
)


def tested():
    with tempfile.TemporaryDirectory() as work:
        globals()[f"part_{sys.argv[4]}"](work)


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a sanitizer's memory does not fit into the guests; the plain build runs this")
        return 77
    return status_of(tested)


if __name__ == "__main__":
    sys.exit(main())
