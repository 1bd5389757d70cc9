#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A machine of which lspci and nvidia-smi's matrix are both public: all cells must agree."""
import re
import sys
import tempfile

import topo_lib as lib

CELL = re.compile(r"NV\d+|PIX|PXB|PHB|NODE|SYS|X")


def matrix(text):
    """{(row, column): cell} of a matrix that is whole."""
    lines = text.splitlines()
    names = re.findall(r"(?:GPU|NIC)\d+", lines[0])
    cells = {}
    for line in lines[1:1 + len(names)]:
        row, *words = line.split()
        assert len(words) >= len(names) and all(CELL.fullmatch(w) for w in words[:len(names)]), line
        cells.update({(row, column): word for column, word in zip(names, words)})
    return names, cells


def numa_by_bridge(functions, verbose):
    """lspci -vvv holds some functions only; the host bridge of one tells the others' node."""
    numa, bdf = {}, None
    for line in verbose.splitlines():
        head = re.match(r"([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", line)
        bdf = f"0000:{head[1]}" if head else bdf
        node = re.search(r"NUMA node: (\d+)", line)
        if node and bdf in functions:
            numa[functions[bdf][0][0]] = int(node[1])
    return numa


def main():
    top = lib.shared() / "paired" / "asus-esc8000a-e12"
    functions = lib.lspci_tree((top / "lspci-tv.txt").read_text())
    numa = numa_by_bridge(functions, (top / "lspci-vvv.txt").read_text())
    names, want = matrix((top / "nvidia-smi-topo-m.txt").read_text())
    gpus = [b for b in sorted(functions) if re.search(r"NVIDIA.*RTX", functions[b][1])]
    nics = [b for b in sorted(functions) if "ConnectX" in functions[b][1]]
    address = dict(zip([n for n in names if n[0] == "G"], gpus))
    address.update(zip([n for n in names if n[0] == "N"], nics))
    with tempfile.TemporaryDirectory() as place:
        tree = lib.Tree(place)
        tree.nodes(2)
        lib.sysfs_of_lspci(tree, functions, numa)
        document = lib.run(place, *lib.devices(gpus + nics))
    got = lib.distances(document)
    cells = wrong = 0
    for (row, column), cell in want.items():
        if row == column:
            continue
        cells += 1
        mine = got.get((address[row], address[column]))
        if mine != cell:
            wrong += 1
            print(f"{row} {column}: {mine}, nvidia-smi says {cell}")
    print(f"{len(functions)} functions, {cells} cells, {wrong} wrong")
    return 1 if wrong or cells != 56 else 0


if __name__ == "__main__":
    sys.exit(main())
