#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every public matrix of `nvidia-smi topo -m` and compares with what another parser read.

Usage: smi_matrix.py PROGRAM

pairs.tsv holds one row a pair, made by a reference parser of its own; index.tsv says which files
are whole ("ok") and which are not: those must be refused.
"""
import sys

import shared


def main() -> int:
    program = sys.argv[1]
    folder = shared.data("topology/nvidia-smi")
    want: dict = {}
    for row in shared.table(folder / "pairs.tsv"):
        want.setdefault(row["file"], []).append((row["dev_a"], row["dev_b"], row["cell"]))
    wrong = cells = files = refused = 0
    for row in shared.table(folder / "index.tsv"):
        name = row["file"]
        code, doc, err = shared.document(program, "peerpath.topo-smi/1", "topo", "--smi",
                                         str(folder / name))
        files += 1
        if row["parse"] != "ok":
            refused += 1
            if code != 65 or err.count("\n") != 1:
                wrong += 1
                print(f"{name}: exit {code}, want 65 and one line: {err!r}")
            continue
        if code != 0:
            wrong += 1
            print(f"{name}: exit {code}: {err}")
            continue
        got = {}
        for pair in doc["pairs"]:
            got[pair["a"], pair["b"]] = got[pair["b"], pair["a"]] = pair["cell"]
        n = doc["gpus"] + doc["nics"]
        if (doc["gpus"], doc["nics"]) != (int(row["n_gpu"]), int(row["n_nic"])):
            wrong += 1
            print(f"{name}: {doc['gpus']} GPUs and {doc['nics']} NICs")
        if len(doc["pairs"]) != n * (n - 1) // 2:
            wrong += 1
            print(f"{name}: {len(doc['pairs'])} pairs of {n} devices")
        for a, b, cell in want.pop(name, []):
            cells += 1
            if got.get((a, b)) != cell:
                wrong += 1
                print(f"{name}: {a} {b}: {got.get((a, b))}, want {cell}")
    for name in want:
        wrong += 1
        print(f"{name}: has pairs but is not in the index")
    print(f"{files} files, {refused} refused, {cells} cells, {wrong} wrong")
    return 1 if wrong or cells < 3000 or refused < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
