#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges every public NCCL topology file and compares each cell with another implementation.

Usage: nccl_xml.py PROGRAM

expected/*.tsv was made by a reading of NCCL's sources that searches paths over the whole graph,
where the program climbs a tree. Files without an expectation (no GPU in them) must be read.
"""
import sys

import shared

VERDICTS = {0: "pass", 1: "degraded", 2: "unknown"}
CELLS = ("nets", "raw", "flat")


def main() -> int:
    program = sys.argv[1]
    folder = shared.data("topology/nccl-xml")
    wrong = cells = files = bare = 0
    for path in sorted(folder.glob("*.xml")):
        code, doc, err = shared.document(program, "peerpath.topo-nccl/1", "topo", "--nccl-xml",
                                         str(path))
        files += 1
        if code not in VERDICTS or doc["verdict"] != VERDICTS[code]:
            wrong += 1
            print(f"{path.name}: exit {code}: {err}")
            continue
        expected = folder / "expected" / (path.stem + ".tsv")
        if not expected.exists():
            bare += 1
            continue
        want = shared.table(expected)
        if len(want) != len(doc["pairs"]):
            wrong += 1
            print(f"{path.name}: {len(doc['pairs'])} pairs, want {len(want)}")
            continue
        for row, got in zip(want, doc["pairs"]):
            mine = [got["gpu"], got["nic"]] + [got[c] for c in CELLS]
            mine += [f"{got['bandwidth_gbytes']:.1f}", str(int(got["local"]))]
            other = [row["gpu"], row["nic"]] + [row[c] for c in CELLS]
            other += [row["bw_GBps"], row["local"]]
            cells += len(mine) - 2
            for a, b in zip(mine, other):
                if a != b:
                    wrong += 1
                    print(f"{path.name}: {got['gpu']} {got['nic']}: {a}, want {b}")
    print(f"{files} files, {bare} without expectation, {cells} cells, {wrong} wrong")
    return 1 if wrong or cells < 4000 else 0


if __name__ == "__main__":
    sys.exit(main())
