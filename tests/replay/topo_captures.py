#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded sysfs trees: the class of each pair of accelerator and NIC, and what the files say of
each bridge, accelerator and NIC."""
import bz2
import collections
import csv
import gzip
import os
import re
import subprocess
import sys
import tempfile

import topo_lib as lib

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of files, for a moment


def unpack(archive, top):
    """By tar: Python takes a minute for 35000 small files. Returns the tree's root."""
    plain = (bz2 if archive.name.endswith("bz2") else gzip).decompress(archive.read_bytes())
    subprocess.run(["tar", "--extract", "--file=-", "--directory", top, "--no-same-owner"], input=plain, check=True)
    for place, folders, _ in os.walk(top):
        if "sys" in folders or "proc" in folders:
            return place
    sys.exit(f"{archive}: no tree in it")


def table(file):
    """Rows by capture."""
    rows = collections.defaultdict(list)
    with open(file, newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows[row["capture"]].append(row)
    return rows


def speed(text):
    number = re.match(r"([0-9.]+) GT/s", text)
    return int(float(number[1]) * 1000) if number else None


def width(text):
    return int(text) if text and 0 < int(text) <= 32 else None


def functions_wrong(rows, document):
    """Files of functions, as the table holds them, against what was read."""
    got = {f["bdf"]: f for f in document["pci"]}
    wrong = 0
    for row in rows:
        f = got.get(row["bdf"], {})
        pairs = [
            (f.get("path"), "/sys/devices/" + row["path"]),
            (f.get("class"), row["class"]),
            (f.get("vendor"), row["vendor"]),
            (f.get("device"), row["device"]),
            (f.get("numa_node"), int(row["numa"]) if row["numa"] else None),
            (f.get("driver"), row["driver"] or None),
            (f.get("config_bytes"), int(row["config_bytes"]) if row["config_bytes"] else None),
            (f.get("speed_mts"), speed(row["cur_speed"])),
            (f.get("width"), width(row["cur_width"])),
            (f.get("max_speed_mts"), speed(row["max_speed"])),
            (f.get("max_width"), width(row["max_width"])),
        ]
        for mine, want in pairs:
            if mine != want:
                wrong += 1
                print(f"  {row['bdf']}: {mine}, want {want}")
    return wrong


def main():
    data = lib.shared()
    functions = table(data / "hwloc" / "devices.tsv")
    want = collections.defaultdict(dict)
    for line in (data / "hwloc" / "pairs-by-rule.tsv").read_text().splitlines()[1:]:
        capture, a, b, cell = line.split("\t")
        want[capture][a, b] = cell
    archives = sorted((data / "hwloc").glob("*.tar.bz2")) + sorted((data / "ghw").glob("*.tar.gz"))
    cells = checked = wrong = 0
    for archive in archives:
        pairs = want.pop(archive.name, {})
        with tempfile.TemporaryDirectory(dir=MEMORY) as top:
            root = unpack(archive, top)
            names = sorted({bdf for pair in pairs for bdf in pair})
            document = lib.run(root, *lib.devices(names))
            got = lib.distances(document)
        rows = functions[archive.name]
        print(f"{archive.name}: {len(document['pci'])} functions, {len(rows)} checked, "
              f"{len(pairs)} pairs")
        checked += len(rows)
        wrong += functions_wrong(rows, document)
        for pair, cell in pairs.items():
            cells += 1
            if got.get(pair) != cell:
                wrong += 1
                print(f"  {pair[0]} {pair[1]}: {got.get(pair)}, want {cell}")
    for capture in want:
        wrong += 1
        print(f"{capture}: in the table, but not there")
    print(f"{cells} cells, {checked} functions, {wrong} wrong")
    return 1 if wrong or not cells or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
