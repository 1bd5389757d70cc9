#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong command lines, unreadable inputs, outputs that cannot be written.

Usage is 64 with one line that names the nearest word; an input that cannot be read is 65; an
output that cannot be written is 70 and leaves nothing behind.
"""
import os
import subprocess
import sys

import machines
from checks import fail, finish, no_control_bytes, one_line, run


def usage(work):
    tree = machines.make(f"{work}/s", "good2")
    wrong = [
        (("idntity",), b"identity"),
        (("tpoo",), b"topo"),
        (("chekc",), b"check"),
        (("porve",), b"prove"),
        (("frobnicate",), b""),
        (("topo", "--sgv", "x"), b"svg"),
        (("topo", "--svg"), b"svg"),
        (("identity", "--jsno"), b"json"),
        (("identity", "--replay"), b"replay"),
        (("identity", "operand"), b""),
        (("prove", "--through", "5"), b""),
        (("prove", "--through", "librray"), b"library"),
        (("topo", "--color", "mauve"), b""),
        (("topo", "--expect"), b"expect"),
        (("topo", "--smi", "x", "--nccl-xml", "y"), b"--smi excludes --nccl-xml"),
        (("topo", "--smi", "x", "--replay", "y"), b"--smi excludes --replay"),
        (("topo", "--nccl-xml", "x", "--root", "/"), b"--nccl-xml excludes --root"),
        (("topo", "--nccl-xml", "x", "--svg", "y"), b"--nccl-xml excludes --svg"),
        (("topo", "--expect", "x", "--device", "0:0.0"), b"--expect excludes --device"),
        (("topo", "--svg", "-", "--expect-write", "-"), b"only one"),
        (("topo", "--svg", "-", "--json"), b"--json"),
        (("topo", "--force"), b"--svg"),
        (("--nosuch",), b""),
        (("-Z",), b""),
        (("\x1b[31mred",), b""),
        (("topo", "--\x1b[31mred"), b""),
        (("topo", "--color", "\x1b[31mred"), b""),
    ]
    for args, near in wrong:
        got = run(f"usage {args}", *args)
        if not got:
            continue
        status, out, err = got
        if status != 64 or out:
            fail(f"usage {args}", f"exit status {status}, {len(out)} bytes of output")
        one_line(f"usage {args}", err)
        no_control_bytes(f"usage {args}", err)
        if near not in err:
            fail(f"usage {args}", f"'{near.decode()}' is not in {err!r}")
    for args in (
        ("topo", "--expect", f"{work}/absent"),
        ("topo", "--expect", work),
        ("topo", "--expect", "/dev/null"),
        ("topo", "--smi", f"{work}/absent"),
        ("topo", "--smi", "/dev/null"),
    ):
        source = () if "--smi" in args else ("--replay", tree)
        got = run(f"input {args}", *args, *source)
        if got and got[0] != 65:
            fail(f"input {args}", f"exit status {got[0]}: {got[2]!r}")
        if got:
            one_line(f"input {args}", got[2])
    for bad in (b"[node]\ngpus = 2\x00\n", b"[nodes]\n", b"gpus = 2\n", b"[" + b"x" * 9000, b"\xff" * 100):
        with open(f"{work}/layout", "wb") as f:
            f.write(bad)
        got = run("layout", "topo", "--expect", f"{work}/layout", "--replay", tree)
        if got and got[0] != 65:
            fail("layout", f"{bad[:40]!r}: exit status {got[0]}")
        if got:
            one_line("layout", got[2])
    output_places(work, tree)


def output_places(work, tree):
    """What cannot be written is said, and nothing half-written stays."""
    for place in (f"{work}/absent/x.svg", work, "/dev/null"):
        got = run("svg", "topo", "--svg", place, "--replay", tree)
        if got and (got[0] == 0 or got[0] > 70):
            fail("svg", f"{place}: exit status {got[0]}")
    left = [n for n in os.listdir(work) if ".svg" in n]
    if left:
        fail("svg", f"left behind: {left}")
    with open("/dev/full", "wb") as full:
        p = subprocess.run(
            [machines.PROGRAM, "topo", "--replay", tree], stdout=full, stderr=-1, check=False
        )
    if p.returncode != 70:
        fail("full disk", f"exit status {p.returncode}")


def main():
    machines.need_program()
    with machines.scratch() as work:
        usage(work)
    return finish("usage")


if __name__ == "__main__":
    sys.exit(main())
