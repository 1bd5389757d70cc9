#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example of docs/soft.md: its bug is seen under every one of ten seeds and, to the packet, by the
fault that names it; not on a sound wire; and not in the repaired program under the same seeds.

usage: two_qps.py PEERPATH PROGRAM
"""
import subprocess
import sys

from soft import alone, on

PEERPATH, PROGRAM = sys.argv[1:3]
LO = "name=a,address=127.0.0.1"


def run(fault, *args):
    config = LO + (f",fault={fault}" if fault else "")
    done = subprocess.run(on(PEERPATH, config, [PROGRAM, *args]), text=True, capture_output=True, timeout=120, check=False)
    return done.returncode, done.stdout.strip()


def main():
    alone()
    wrong = []
    tries = [("", (), 0), ("", ("-f",), 0)]
    tries += [(f"loss=1% seed={seed}", args, code) for seed in range(1, 11) for args, code in (((), 1), (("-f",), 0))]
    for fault, args, want in tries:
        code, said = run(fault, *args)
        print(fault or "sound", *args, "->", code, said, flush=True)
        if code != want:
            wrong.append(fault)
    # Each round writes twice, of one packet each: the data of the third round is the fifth.
    code, said = run("loss=write_only@5")
    print("loss=write_only@5 ->", code, said)
    if (code, said) != (1, "round 3: the flag is there, its data is not"):
        wrong.append("the fifth packet")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
