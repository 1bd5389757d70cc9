# SPDX-License-Identifier: Apache-2.0
"""Judges of a capture that others made: the shared folder's icrc-check, tshark, tcpdump. And ours."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

from soft import SHARED, Fault

# Guesses of what a payload holds: random bytes make them see malformed packets.
GUESSES = (
    "eth_over_ib", "fc_infiniband", "iser_infiniband", "lnet_ib", "mellanox_eoib", "rpcrdma_infiniband",
    "sdp_infiniband", "smb_direct_infiniband", "smcr_infiniband",
)
FIELDS = ("udp.dstport", "udp.srcport", "infiniband.bth.opcode", "ip.src", "ipv6.src", "udp.checksum", "_ws.malformed",
          "_ws.expert.severity")
ERROR = 8388608  # tshark's number of an expert item's severity


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def icrc(path):
    """Opcode: packets, all with a right ICRC. None where the checker is not here."""
    checker = SHARED / "tools" / "icrc-check"
    if not checker.exists():
        print("ICRCs were not judged: no tools/icrc-check in the shared folder (PEERPATH_SHARED)")
        return None
    status, said, err = run([sys.executable, checker, path])
    print(said.strip())
    if status:
        raise Fault(f"icrc-check: {said}{err}")
    return {int(op, 16): int(n) for op, n in re.findall(r"\b([0-9a-f]{2}):(\d+)", said)}


def tshark(path, zero=()):
    """Opcode: packets, none malformed and all to UDP 4791 from 49152 and above; from the addresses of zero
    they may come without a UDP checksum, an error over IPv6. None without tshark."""
    if not shutil.which("tshark"):
        print("no tshark: nothing was dissected")
        return None
    status, said, err = run(["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=f",
                             *(word for guess in GUESSES for word in ("--disable-heuristic", guess)),
                             *(word for field in FIELDS for word in ("-e", field))])
    if status:
        raise Fault(f"tshark: {err}")
    ops = collections.Counter()
    for number, line in enumerate(said.splitlines(), 1):
        to, source, op, four, six, checksum, malformed, severity = line.split("\t")
        if to != "4791" or int(source or 0) < 49152:
            raise Fault(f"{path}: packet {number} goes from port {source} to {to}")
        bare = int(checksum, 0) == 0
        if malformed or not op or (bare or int(severity or 0) >= ERROR) and not (bare and (four or six) in zero):
            raise Fault(f"{path}: packet {number} is wrong for tshark: {line}")
        ops[int(op, 0)] += 1
    return dict(ops)


def udp_packets(path):
    """The IP packets that carry UDP of a classic Ethernet capture."""
    raw, at = pathlib.Path(path).read_bytes(), 24
    while at + 16 <= len(raw):
        size = int.from_bytes(raw[at + 8:at + 12], "little")
        frame, at = raw[at + 16:at + 16 + size], at + 16 + size
        kind, ip = frame[12:14], frame[14:]
        if kind == b"\x08\x00" and ip[9] == 17:
            yield ip[:int.from_bytes(ip[2:4], "big")]
        elif kind == b"\x86\xdd" and ip[6] == 17:
            yield ip[:40 + int.from_bytes(ip[4:6], "big")]


def decoder(packets, path):
    """Opcode: packets as soft/wire reads them, and takes them (packets: tests/wire's program)."""
    rows = "".join(ip.hex() + "\n" for ip in udp_packets(path))
    done = subprocess.run([packets, "read"], input=rows, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != rows.count("\n"):
        raise Fault(f"soft/wire: {len(lines)} of {rows.count(chr(10))} packets read: {done.stderr}")
    ops = collections.Counter()
    for number, line in enumerate(lines, 1):
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if words.get("icrc") != "right":
            raise Fault(f"{path}: packet {number} for soft/wire: {line}")
        ops[int(words["op"])] += 1
    return dict(ops)


def capture(path, packets, opcodes, zero=()):
    """All judges are content, agree about what was seen, and saw these opcodes."""
    sums = {"icrc-check": icrc(path), "tshark": tshark(path, zero), "soft/wire": decoder(packets, path)}
    sums = {name: ops for name, ops in sums.items() if ops is not None}
    if len({tuple(sorted(ops.items())) for ops in sums.values()}) != 1:
        raise Fault(f"{path}: the judges count different packets: {sums}")
    ops = sums["soft/wire"]
    missing = sorted(op for op in opcodes if op not in ops)
    if missing:
        raise Fault(f"{path}: no packets of opcodes {' '.join(f'{op:02x}' for op in missing)}; seen: {ops}")
    return sum(ops.values())
