#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that were watched on two H200 (docs/results/nccl-h200-*.json), judged again.

Expected is what each job was told to do: tests/gpu/nccl_bundles.py. usage: nccl_results.py PEERPATH
"""
import json
import pathlib
import subprocess
import sys

RESULTS = pathlib.Path(__file__).resolve().parents[2] / "docs/results"
faults = []


def need(good, *what):
    if not good:
        faults.append(" ".join(str(w) for w in what))


def judged(program, name, status):
    file = RESULTS / f"nccl-h200-{name}.json"
    done = subprocess.run([program, "nccl", "run", "--json", "--join", file], capture_output=True, text=True, timeout=60, check=False)
    need(done.returncode == status, name, "status", done.returncode, done.stderr)
    document = json.loads(done.stdout)
    return document["gate"], document["runs"]


def main():
    program = sys.argv[1]
    gate, runs = judged(program, "device", 0)
    need(gate["simulation"] == "passed" and gate["sentence"] == "chain exercised in simulation", gate["sentence"])
    need(gate["claim_gdr"] == "unproven" and gate["simulated"], "a software device proves nothing")
    need(gate["mechanism"] == "dmabuf", gate["mechanism"])
    need([c["state"] for c in gate["controls"]][:3] == ["expected"] * 3, gate["controls"])
    need([r["judgement"]["path"] for r in runs] == ["gdr", "host-staged", "host-staged", "mixed"], "paths of the arms")
    node = runs[0]["nodes"][0]
    need(node["library"]["registered"]["dmabuf"]["regions"] == 40 and node["observed"][0]["exporter"] == "nv_dmabuf"
         if isinstance(node["observed"], list) else node["observed"]["exporter"] == "nv_dmabuf", "the observer's registrations")
    sent = [sum(p["sent_bytes"] for p in r["nodes"][0]["traffic"]["ports"]) for r in runs]
    need(max(sent) <= 1.05 * min(sent) and min(sent) > 12e9, "bytes of the arms", sent)
    listed = (RESULTS / "nccl-h200-bufinfo.txt").read_text().count("nv_dmabuf")
    need(listed == 40, "the kernel's list", listed)
    # In the order in which a job may be wrong: without an hca, within a host, through host memory.
    for name, path, simulated in (("socket", "socket", False), ("shm", "undetermined", False), ("host", "host-staged", True),
                                  ("ddp-socket", "socket", False)):
        gate, runs = judged(program, name, 1)
        need(gate["claim_gdr"] == "refuted", name, gate["claim_gdr"])
        need(runs[0]["judgement"]["path"] == path and runs[0]["simulated"] == simulated, name, runs[0]["judgement"]["path"])
    # A training tells nobody how many bytes it moves.
    gate, runs = judged(program, "ddp-device", 1)
    need(gate["claim_gdr"] == "unproven" and gate["mechanism"] == "dmabuf", gate)
    need(runs[0]["judgement"]["path"] == "gdr", runs[0]["judgement"]["path"])
    print("\n".join(faults) or "all as they were told to be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
