#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""500 GPUs and 500 NICs: no machine, but a tree that somebody may hand over. It must be listed
whole, in bounded memory, and say that its pairs were left out."""
import os
import resource
import sys
import tempfile

import topo_lib as lib

EACH = 500
# A sanitizer's own memory is in it, where there is one.
LIMIT_KIB = (96 if os.environ.get("PEERPATH_SANITIZED") else 32) << 10


def main():
    with tempfile.TemporaryDirectory() as top:
        tree = lib.Tree(top)
        tree.nodes(2)
        for number in range(2 * EACH):
            domain = f"{1 + number // 256:04x}"
            klass, vendor = (("0x030200", "0x10de") if number < EACH else ("0x020000", "0x15b3"))
            tree.function(f"pci{domain}:00/{domain}:{number % 256:02x}:00.0", **{
                "class": klass, "vendor": vendor, "device": "0x1021", "numa_node": "0",
            })
        document = lib.run(top)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{len(document['pci'])} functions, {len(document['rails'])} rails, {used} KiB")
    whys = {rail["why"] for rail in document["rails"]}
    good = (len(document["pci"]) == 2 * EACH and len(document["rails"]) == EACH
            and not document["pairs"] and document["pairs_why"]
            and all("too many" in why for why in whys) and used <= LIMIT_KIB)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
