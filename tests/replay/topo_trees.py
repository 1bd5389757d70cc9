#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distances in trees drawn from public descriptions, against the class that each names."""
import re
import sys
import tempfile

import topo_lib as lib


def expected(file):
    rows = {}
    for line in file.read_text().splitlines()[2:]:
        a, b, cell = line.split("\t")
        if (a, b) != ("dev_a", "dev_b"):
            rows[a, b] = cell
    return rows


def main():
    files = sorted((lib.shared() / "paired" / "trees").glob("*.lspci-tv.txt"))
    cells = wrong = 0
    for file in files:
        table = file.with_name(file.name.replace(".lspci-tv.txt", ".expected.tsv"))
        head = table.read_text().splitlines()[1]
        numa = {f"pci0000:{bus}": int(node)
                for bus, node in re.findall(r"\b([0-9a-f]{2})=(-?\d+)", head)}
        want = expected(table)
        with tempfile.TemporaryDirectory() as top:
            tree = lib.Tree(top)
            tree.nodes(2)
            lib.sysfs_of_lspci(tree, lib.lspci_tree(file.read_text()), numa)
            names = sorted({bdf for pair in want for bdf in pair})
            got = lib.distances(lib.run(top, *lib.devices(names)))
        for pair, cell in want.items():
            cells += 1
            if got.get(pair) != cell:
                wrong += 1
                print(f"{file.name}: {pair[0]} {pair[1]}: {got.get(pair)}, want {cell}")
    print(f"{len(files)} trees, {cells} cells, {wrong} wrong")
    return 1 if wrong or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
