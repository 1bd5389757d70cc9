#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the recorded /sys/class/infiniband of an H100 node (8 ConnectX-7 and one RoCE bond).

Usage: infiniband.py PROGRAM

devices.tsv holds what the recording's files say. The recording has the class directory only: each
device is given a PCI function here, and what the recording lacks must come out unknown.
"""
import pathlib
import sys
import tarfile
import tempfile

import shared

LACKING = ("port.lid", "port.gids", "hca.node_guid", "hca.uverbs", "hca.uverbs_access")


def build(top: pathlib.Path, archive: pathlib.Path, names: list) -> dict:
    """The tree of a node; returns the PCI address of each device."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = pathlib.PurePosixPath(member.name).parts
            if parts[:1] != ("h100-class",) or len(parts) < 2 or ".." in parts:
                continue
            slot = names.index(parts[1]) + 1
            function = top / f"sys/devices/pci0000:00/0000:00:{slot:02x}.0"
            target = function.joinpath("infiniband", *parts[1:])
            if member.isfile():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tar.extractfile(member).read())
    for folder in ("sys/class/infiniband", "sys/bus/pci/devices"):
        (top / folder).mkdir(parents=True)
    bdfs = {}
    for slot, name in enumerate(names, 1):
        bdf = f"0000:00:{slot:02x}.0"
        function = f"/sys/devices/pci0000:00/{bdf}"
        for attribute, value in (("class", "0x020700"), ("vendor", "0x15b3"),
                                 ("device", "0x1021")):
            (top / function[1:] / attribute).write_text(value + "\n")
        (top / "sys/bus/pci/devices" / bdf).symlink_to(function)
        (top / "sys/class/infiniband" / name).symlink_to(f"{function}/infiniband/{name}")
        bdfs[name] = bdf
    return bdfs


def expectations(row: dict, bdf: str):
    """(object, fact, value) of one row."""
    gigabits = float(row["rate"].split()[0])
    yield bdf, "hca.name", row["dev"]
    yield bdf, "hca.rdma_device", True
    yield bdf, "hca.board_id", row["board_id"]
    yield bdf, "hca.firmware", row["fw_ver"]
    yield bdf, "hca.type", row["hca_type"]
    yield bdf, "hca.active_ports", int(row["state"].startswith("4:"))
    yield bdf, "hca.bond", "bond" in row["dev"]
    port = f"{bdf}/1"
    yield port, "port.state", row["state"].split(": ")[1]
    yield port, "port.physical_state", row["phys_state"].split(": ")[1]
    yield port, "port.rate_mbps", int(gigabits * 1000)
    yield port, "port.link_layer", row["link_layer"]
    yield port, "port.counter.link_downed", int(row["link_downed"])
    yield port, "port.counter.symbol_error", int(row["symbol_error"])


def main() -> int:
    program = sys.argv[1]
    folder = shared.data("topology/infiniband")
    rows = shared.table(folder / "devices.tsv")
    wrong = checked = 0
    with tempfile.TemporaryDirectory() as work:
        top = pathlib.Path(work)
        bdfs = build(top, folder / "gpud-h100-class.tar.gz", [row["dev"] for row in rows])
        _, doc, err = shared.document(program, "peerpath.identity/1", "identity", "--facts",
                                      "--replay", work)
    if not doc:
        print(err)
        return 1
    facts = {(f["of"], f["fact"]): f for f in doc["facts"]}
    want = [("node", "rdma.devices", len(rows)), ("node", "node.active_ports", len(rows)),
            ("node", "rdma.functions_without_device", [])]
    for row in rows:
        want += expectations(row, bdfs[row["dev"]])
    for of, fact, value in want:
        got = facts.get((of, fact), {}).get("value")
        checked += 1
        if got != value or isinstance(got, bool) != isinstance(value, bool):
            wrong += 1
            print(f"{of} {fact}: {got!r}, want {value!r}")
    for bdf in bdfs.values():
        for fact in LACKING:
            of = bdf if fact.startswith("hca.") else f"{bdf}/1"
            checked += 1
            if facts[of, fact]["value"] is not None or not facts[of, fact]["unknown"]:
                wrong += 1
                print(f"{of} {fact}: {facts[of, fact]['value']!r}, want unknown")
    print(f"{len(rows)} devices, {checked} facts, {wrong} wrong")
    return 1 if wrong or checked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
