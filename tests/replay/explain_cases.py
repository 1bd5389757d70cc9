#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thirty public failures with a confirmed cause: the right one must stand first.

Usage: explain_cases.py PROGRAM

The cases are read from the shared reference; each block is given as it stands, then again with
the sentence of facts that the report also gave. Nothing may be `certain` in the negative ones,
and no careless answer may stand above the right one.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import shared

EXPECTED = {
    "E01": "mlx5-ib-not-loaded", "E02": "legacy-nv-peer-mem", "E03": "ionic-no-peer-client",
    "E04": "efa-old-libfabric", "E05": "memlock-small", "E06": "memlock-not-honoured",
    "E07": "wc-length-mtu", "E08": "gid-moved", "E09": "tc-on-infiniband",
    "E10": "peer-uses-lossy-class", "E11": "rnr-timer-zero", "E12": "loopback-flush-flags",
    "E13": "acs-redirect", "E14": "aer-uncorrected", "E15": "nccl-size-variable",
    "E16": "link-rate-low", "E17": "spark-slow-build-or-half", "E18": "nccl-topo-file",
    "E19": "bond-one-member", "E20": "nccl-device-sets-differ", "E21": "ib-plugin-ignores-disable",
    "E22": "mixed-rdma-cores", "E23": "nccl-version-mismatch", "E24": "vf-link-disabled",
    "E25": "stale-source-buffer", "E26": "cq-in-gpu-memory", "E27": "perftest-old-cuda",
    "E28": "nccl-plugin-probing", "E29": "ucx-memlock-unused", "E30": "leftover-provider",
}
NEGATIVE = ("E26", "E27", "E28", "E29", "E30")
HARMLESS = ("E28", "E29", "E30")


def cases(text: str):
    """(id, text of the report, its facts)"""
    for part in re.split(r"^### ", text, flags=re.M)[1:]:
        block = re.search(r"^```\n(.*?)^```", part, re.S | re.M)
        facts = re.search(r"^facts: (.*?)(?: · cause:.*)?$", part, re.M)
        yield part[:3], block[1], facts[1] if facts else ""


def explain(program: str, text: str):
    done = subprocess.run([program, "explain", "-", "--no-node", "--json"], input=text.encode(),
                          capture_output=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout)


def faults(case: str, code: int, doc: dict):
    rules = [d["rule"] for d in doc["diagnoses"]]
    if rules[:1] != [EXPECTED[case]]:
        yield f"{rules[:3]}, want {EXPECTED[case]} first"
    if code != (0 if case in HARMLESS else 1):
        yield f"exit {code}"
    if case in NEGATIVE:
        for d in doc["diagnoses"]:
            if d["certainty"] == "certain":
                yield f"{d['rule']} is certain"


def main() -> int:
    top = pathlib.Path(__file__).resolve().parent.parent.parent
    base = pathlib.Path(os.environ.get("PEERPATH_SHARED", top.parent / "shared"))
    page = base / "reference" / "explain-cases.md"
    if not page.is_file():
        print(f"skipped: {page} is not here (PEERPATH_SHARED names its folder)")
        return shared.SKIP
    wrong = n = 0
    for case, text, facts in cases(page.read_text()):
        n += 1
        for given, what in ((text, "text"), (text + facts + "\n", "text and facts")):
            for fault in faults(case, *explain(sys.argv[1], given)):
                print(f"{case}, {what}: {fault}")
                wrong += 1
    if n != len(EXPECTED):
        print(f"{n} cases were read, {len(EXPECTED)} are known")
        wrong += 1
    print(f"{n} cases, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
