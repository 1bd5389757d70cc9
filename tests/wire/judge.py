#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packets of soft/wire before others: tshark's decoder, scapy's, an independent sum of ICRCs.

usage: judge.py PACKETS PART

Parts:
  tshark  every field of own packets and of a capture of Linux's rdma_rxe, as tshark and as soft/wire see it
  icrc    own packets under the checker of the shared folder
  scapy   own packets over IPv4 recomputed by scapy's contrib.roce (2.5 knows no ICRC over IPv6)

Exit 77 with the reason where the judge, or a capture, is not there.
"""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = pathlib.Path(os.environ.get("PEERPATH_SHARED", TOP / ".." / "shared"))
RXE = SHARED / "data" / "wire" / "rxe-6.1-perftest.pcap"
CHECKER = SHARED / "tools" / "icrc-check"

BOOLEAN = {"True": "1", "False": "0"}
# Our name of a field, tshark's.
FIELDS = (
    ("op", "infiniband.bth.opcode"),
    ("se", "infiniband.bth.se"),
    ("m", "infiniband.bth.m"),
    ("pad", "infiniband.bth.padcnt"),
    ("pkey", "infiniband.bth.p_key"),
    ("qp", "infiniband.bth.destqp"),
    ("a", "infiniband.bth.a"),
    ("psn", "infiniband.bth.psn"),
    ("va", "infiniband.reth.va"),
    ("rkey", "infiniband.reth.r_key"),
    ("len", "infiniband.reth.dmalen"),
    ("swap", "infiniband.atomiceth.swapdt"),
    ("cmp", "infiniband.atomiceth.cmpdt"),
    ("syndrome", "infiniband.aeth.syndrome"),
    ("msn", "infiniband.aeth.msn"),
    ("original", "infiniband.atomicacketh.origremdt"),
    ("imm", "infiniband.immdt"),
    ("ieth", "infiniband.ieth"),
    ("qkey", "infiniband.deth.q_key"),
    ("srcqp", "infiniband.deth.srcqp"),
)
# Guesses of what a payload holds: random bytes make them see malformed packets.
GUESSES = (
    "eth_over_ib",
    "fc_infiniband",
    "iser_infiniband",
    "lnet_ib",
    "mellanox_eoib",
    "rpcrdma_infiniband",
    "sdp_infiniband",
    "smb_direct_infiniband",
    "smcr_infiniband",
)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def ip_packets(path):
    """The IP packets to UDP port 4791 of a classic Ethernet capture."""
    raw = path.read_bytes()
    at = 24
    while at + 16 <= len(raw):
        size = struct.unpack("<I", raw[at + 8 : at + 12])[0]
        frame = raw[at + 16 : at + 16 + size]
        at += 16 + size
        kind = frame[12:14]
        ip = frame[14:]
        if kind == b"\x08\x00" and ip[9] == 17 and ip[22:24] == b"\x12\xb7":
            yield ip[: struct.unpack(">H", ip[2:4])[0]]
        elif kind == b"\x86\xdd" and ip[6] == 17 and ip[42:44] == b"\x12\xb7":
            yield ip[: 40 + struct.unpack(">H", ip[4:6])[0]]


def read_by_us(packets, path):
    rows = "".join(ip.hex() + "\n" for ip in ip_packets(path))
    text = subprocess.run([packets, "read"], input=rows, text=True, capture_output=True, check=True).stdout
    return [dict(word.split("=") for word in line.split()) if "=" in line else {} for line in text.splitlines()]


def number(column, text):
    if column in ("imm", "ieth"):  # bytes to tshark
        return int(text.replace(":", ""), 16)
    return int(BOOLEAN.get(text, text), 0)


def read_by_tshark(path):
    command = ["tshark", "-r", path]
    for guess in GUESSES:
        command += ["--disable-heuristic", guess]
    command += ["-Y", "udp.dstport == 4791", "-T", "fields", "-E", "occurrence=f"]
    for field in [field for _, field in FIELDS] + ["infiniband.invariant.crc", "_ws.malformed", "_ws.expert.message"]:
        command += ["-e", field]
    p = subprocess.run(command, text=True, capture_output=True, check=False)
    if p.returncode:
        skip(f"tshark: {p.stderr.strip()}")
    return [line.split("\t") for line in p.stdout.splitlines()]


def compare(packets, path, least):
    ours = read_by_us(packets, path)
    theirs = read_by_tshark(path)
    faults = []
    compared = 0
    if len(ours) != len(theirs) or len(ours) < least:
        faults.append(f"{path.name}: {len(ours)} packets read by us, {len(theirs)} by tshark")
    for index, (mine, row) in enumerate(zip(ours, theirs)):
        name = f"{path.name}: packet {index}: {mine}"
        if mine.get("icrc") != "right":
            faults.append(f"{name}: ICRC")
        if row[len(FIELDS) + 1] or row[len(FIELDS) + 2]:
            faults.append(f"{name}: tshark says {row[len(FIELDS) + 1 :]}")
        for (column, _), text in zip(FIELDS, row):
            have = mine.get(column)
            if text == "" and have is None:
                continue
            compared += 1
            if text == "" or have is None or number(column, text) != int(have):
                faults.append(f"{name}: {column}: tshark '{text}'")
    print(f"{path.name}: {len(ours)} packets, {compared} fields compared")
    return faults


def part_tshark(packets, own):
    if not shutil.which("tshark"):
        skip("no tshark")
    faults = compare(packets, own, 300)
    if RXE.exists():
        faults += compare(packets, RXE, 460)
    else:
        print("no capture of rdma_rxe in the shared folder: own packets only")
    return faults


def part_icrc(packets, own):
    if not CHECKER.exists():
        skip("no tools/icrc-check in the shared folder")
    p = subprocess.run([sys.executable, CHECKER, own], text=True, capture_output=True, check=False)
    print(p.stdout.strip())
    wanted = f"packets {len(list(ip_packets(own)))} "
    return [] if p.returncode == 0 and wanted in p.stdout else [f"icrc-check: {p.stdout}{p.stderr}"]


def part_scapy(packets, own):
    try:
        from scapy.contrib.roce import BTH  # noqa: F401
        from scapy.layers.inet import IP
    except ImportError as err:
        skip(f"no scapy with contrib.roce: {err}")
    faults = []
    count = 0
    for ip in ip_packets(own):
        if ip[0] >> 4 != 4:
            continue
        packet = IP(ip)
        packet[BTH].icrc = None  # computed when it is built again
        built = bytes(packet)
        count += 1
        if built[-4:] != ip[-4:]:
            faults.append(f"packet {count}: {ip[-4:].hex()}, scapy {built[-4:].hex()}")
    print(f"{count} ICRCs recomputed by scapy")
    return faults if count >= 250 else faults + [f"only {count} packets"]


def main():
    packets, part = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder) / "own.pcap"
        subprocess.run([packets, "write", own], check=True)
        faults = {"tshark": part_tshark, "icrc": part_icrc, "scapy": part_scapy}[part](packets, own)
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
