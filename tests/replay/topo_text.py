#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`topo --smi` and `topo --nccl-xml` as a person meets them: exit codes, messages, pipes.

Usage: topo_text.py PROGRAM

Only files of this project; needs no other data.
"""
import pathlib
import subprocess
import sys
import tempfile

import shared

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "smi"
# The two hosts differ in the NIC's class alone.
MATRIX = "\tGPU0\tmlx5_0\tCPU Affinity\nGPU0\t X \tPIX\t0-7\nmlx5_0\tPIX\t X \t\n"
TOPOLOGY = """<system version="1"><cpu numaid="0">
<pci busid="0000:10:00.0" class="0x060400" link_speed="{speed}" link_width="{width}">
<pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
<gpu dev="0" gdr="1"/></pci>
<pci busid="0000:12:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
<nic><net name="mlx5_0" speed="400000" gdr="{gdr}"/></nic></pci></pci></cpu></system>
"""


class Checks:
    def __init__(self, program):
        self.program, self.done, self.failed = program, 0, 0

    def check(self, what, ok, detail=""):
        self.done += 1
        if not ok:
            self.failed += 1
            print(f"{what}: {detail}")

    def refused(self, what, word, *args):
        code, out, err = shared.run(self.program, "topo", *args)
        one_line = err.count("\n") == 1 and err.startswith("peerpath topo: ")
        self.check(what, code == 65 and not out and one_line and word in err, (code, out, err))


def smi(c):
    for name in ("plain-tabs", "escapes", "escapes-lost", "log-prefixed", "glued"):
        code, doc, err = shared.document(c.program, "peerpath.topo-smi/1", "topo", "--smi",
                                         str(FIXTURES / f"{name}.txt"))
        cells = {(p["a"], p["b"]): p["cell"] for p in doc["pairs"]}
        c.check(name, (code, err) == (0, "") and cells["GPU3", "mlx5_bond_0"] == "PIX" and
                cells["GPU0", "mlx5_bond_0"] == "SYS" and cells["GPU0", "GPU3"] == "NV6", doc)
        c.check(f"{name} rails", [(r["gpu"], r["class"], r["nics"], r["only_one"])
                                  for r in doc["rails"]][2:] ==
                [("GPU2", "PIX", "mlx5_bond_0", True), ("GPU3", "PIX", "mlx5_bond_0", True)], doc)
        c.check(f"{name} affinity", [a["cpus"] for a in doc["affinity"]] ==
                ["0-31", "0-31", "32-63", "32-63"], doc["affinity"])
    code, doc, err = shared.document(c.program, "peerpath.topo-smi/1", "topo", "--smi",
                                     str(FIXTURES / "asymmetric.txt"))
    found = {f["finding"]: f["text"] for f in doc["findings"]}
    c.check("asymmetric", code == 65 and "GPU0-GPU2 NV6/SYS" in found["asymmetric"], (code, doc))
    code, doc, err = shared.document(c.program, "peerpath.topo-smi/1", "topo", "--smi",
                                     str(FIXTURES / "scraps.txt"))
    found = {f["finding"] for f in doc["findings"]}
    c.check("scraps", code == 0 and {"nics-not-shown", "nics-without-name"} <= found, found)
    c.refused("cut rows", "row NIC0 is missing", "--smi", str(FIXTURES / "cut-rows.txt"))
    c.refused("cut cells", ":6: row NIC0 has 2 cells", "--smi", str(FIXTURES / "cut-cells.txt"))
    c.refused("absent", "No such file", "--smi", "/nonexistent/matrix")
    c.refused("directory", "EISDIR", "--smi", "/")
    c.refused("device", "longer than 4096 KiB", "--smi", "/dev/zero")
    done = subprocess.run([c.program, "topo", "--smi", "-"], input=MATRIX, text=True,
                          capture_output=True, timeout=60, check=False)
    c.check("pipe", done.returncode == 0 and "PIX" in done.stdout, done)


def nccl(c, folder):
    cases = [("good", "32.0 GT/s PCIe", 16, 1, 0, None),
             ("virtual", "2.5 GT/s PCIe", 1, 1, 1, "slow-switch"),
             ("unable", "32.0 GT/s PCIe", 16, 0, 1, "gdr-off"),
             ("word", "32 GT/s PCIe/s", 16, 1, 0, "speed-unknown")]
    for name, speed, width, gdr, want, finding in cases:
        path = folder / f"{name}.xml"
        path.write_text(TOPOLOGY.format(speed=speed, width=width, gdr=gdr))
        code, doc, _ = shared.document(c.program, "peerpath.topo-nccl/1", "topo", "--nccl-xml",
                                       str(path))
        pair = doc["pairs"][0]
        c.check(name, code == want and pair["flat"] == "PIX" and
                (not finding or finding in [f["finding"] for f in doc["findings"]]), (code, doc))
        c.check(f"{name} gdr", pair["gdr"] == ("yes" if gdr else "no: not able"), pair)
    bomb = folder / "bomb.xml"
    levels = "".join(f"<!ENTITY {b} '&{a};&{a};&{a};&{a};'>"
                     for a, b in zip("abcdefgh", "bcdefghi"))
    bomb.write_text(f"<!DOCTYPE s [<!ENTITY a 'aaaaaaaa'>{levels}]>"
                    "<system version='1'>&i;</system>")
    c.refused("entities", "document type", "--nccl-xml", str(bomb))
    c.refused("no xml", ":1: ", "--nccl-xml", str(FIXTURES / "plain-tabs.txt"))
    escape = folder / "escape.xml"
    escape.write_text('<system version="1"><cpu numaid="0"><pci busid="&#x7f;&#10;&#x9b;31m" '
                      'class="0x030000"/></cpu></system>')
    code, out, _ = shared.run(c.program, "topo", "--nccl-xml", str(escape))
    c.check("terminal", code == 2 and not {"\x7f", "\x9b"} & set(out), (code, out))


def main() -> int:
    c = Checks(sys.argv[1])
    smi(c)
    with tempfile.TemporaryDirectory() as folder:
        nccl(c, pathlib.Path(folder))
    print(f"{c.done} checks, {c.failed} failed")
    return 1 if c.failed or c.done < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
