#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves that #include goes downward only: docs/ARCHITECTURE.md, "Layers".

Exit 0 when every include of src/ names its own layer or one below it, 1 with one line a fault.
"""
import pathlib
import re
import sys

# What each layer may include besides itself.
BELOW = {
    "cli": {"soft", "daemon", "store", "profile", "bundle", "judge", "bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "daemon": {"store", "bundle", "judge", "bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "store": {"bundle", "judge", "bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "profile": {"bundle", "judge", "bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "bundle": {"judge", "bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "judge": {"bench", "nccl", "trace", "mem", "rdma", "node", "base"},
    "bench": {"trace", "mem", "rdma", "node", "base"},
    "nccl": {"trace", "mem", "rdma", "node", "base"},
    "trace": {"mem", "rdma", "node", "base"},
    "mem": {"rdma", "node", "base"},
    "rdma": {"node", "base"},
    "node": {"base"},
    "soft": {"base"},
    "plugin": {"base"},
    "base": set(),
}


def main() -> int:
    top = pathlib.Path(__file__).resolve().parent.parent / "src"
    faults = files = 0
    for path in sorted(top.rglob("*")):
        if path.suffix not in (".c", ".h", ".def"):
            continue
        files += 1
        layer = path.relative_to(top).parts[0]
        if layer not in BELOW:
            print(f"{path}: no layer of this name")
            faults += 1
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match[1].split("/")[0]
            if "/" not in match[1] or (target != layer and target not in BELOW[layer]):
                print(f"{path}:{number}: {layer}/ may not include {match[1]}")
                faults += 1
    if not files:
        print("no sources found")
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
