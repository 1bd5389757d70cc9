#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded logs of NCCL as arms of nccl run, judged with their controls.

What was run is written beside the recordings (index.tsv), and each row below is one of its statements. The logs come from
the shared recordings, or from the project's own copies (tests/fixtures/nccl); without the former the test is skipped.
The logs say nothing of registrations or bytes, so that no claim may rest on them alone.

usage: nccl_arms.py PEERPATH shared|own
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import shared

PEERPATH, WHICH = os.path.abspath(sys.argv[1]), sys.argv[2]
OWN = pathlib.Path(__file__).resolve().parent.parent / "fixtures/nccl"
FAULTS = []
TWO = ("rank0.log", "rank1.log")
# what the job was started with -> path, claim of GDR, network between hosts, on a software device, in the root cause
ROWS = (
    ("socket.log", "exit 0", "socket", "refuted", "Socket", False, None),
    ("ib-gdrdma.log", "exit 0", "gdr", "unproven", "IB", True, None),
    ("ib-gdrdma-p2p-shared.log", "exit 0", "gdr", "unproven", "IB", True, None),
    ("ib-dmabuf-disabled.log", "exit 0", "host-staged", "refuted", "IB", True, None),
    ("ib-gdr-level-loc.log", "exit 0", "host-staged", "refuted", "IB", True, None),
    ("fail-gin-segfault.log", "kill -SEGV $$", "undetermined", "unproven", None, True, None),
    ("fail-no-ib-device.log", "exit 5", "undetermined", "refuted", None, False, "Failed to initialize any NET plugin"),
    ("fail-duplicate-gpu.log", "exit 5", "undetermined", "refuted", None, True, "Duplicate GPU detected"),
    ("fail-completion-error.log", "exit 6", "undetermined", "refuted", "IB", True, "IBV_WC_LOC_QP_OP_ERR"),
    ("shm", "exit 0", "undetermined", "refuted", None, False, None),
    ("p2p-nvlink", "exit 0", "nvlink", "refuted", None, False, None),
    ("two-ranks-socket", "exit 0", "socket", "refuted", "Socket", False, None),
    ("two-ranks-ib-gdrdma", "exit 0", "gdr", "unproven", "IB", True, None),
)


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def files(where, name):
    return [where / name] if name.endswith(".log") else [where / f"{name}.{rank}" for rank in TWO]


class Arms:
    """Each arm's command leaves what NCCL left: it is one job, whichever log that is."""

    def __init__(self, where, work):
        self.where, self.work = where, pathlib.Path(work)
        self.job = self.work / "all_reduce_perf"
        self.job.write_text('#!/bin/sh\ni=0\nfor f in $LOGS; do i=$((i+1)); cp "$f" "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/h/; s/%p/$i/")"; done\neval "$END"\n',
                            encoding="ascii")
        self.job.chmod(0o755)

    def run(self, arm, name, end="exit 0"):
        """(exit status, the run, the file that holds it)"""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_", "OMPI_", "PMI"))}
        env = {**kept, "LOGS": " ".join(map(str, files(self.where, name))), "END": end, "TMPDIR": str(self.work)}
        out = self.work / f"{arm}.json"
        done = subprocess.run([PEERPATH, "nccl", "run", "-q", "--json", "--no-observer", "--busy-ok", "--force", "--arm", arm, "-o", str(out), "--", str(self.job)],
                              capture_output=True, text=True, env=env, check=False, timeout=60)
        try:
            return done.returncode, json.loads(done.stdout)["runs"][0], str(out)
        except (ValueError, KeyError, IndexError):
            need(False, f"{arm} {name}: no document: {done.returncode} {done.stderr[-300:]}")
            return done.returncode, {}, str(out)

    def gate(self, *documents):
        done = subprocess.run([PEERPATH, "nccl", "run", "--join", "--json", *documents], capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, json.loads(done.stdout)["gate"]


def each(arms):
    for name, end, path, claim, network, simulated, root in ROWS:
        status, run, out = arms.run("unchanged", name, end)
        judgement = run.get("judgement", {})
        need((judgement.get("path"), judgement.get("claim_gdr")) == (path, claim), f"{name}: {judgement.get('path')} {judgement.get('claim_gdr')}")
        need(run.get("networks") == network and run.get("simulated") is simulated, f"{name}: {run.get('networks')} {run.get('simulated')}")
        need(root is None or root in (run.get("root_error") or ""), f"{name}: root {run.get('root_error')}")
        need("SEGV" not in end or "SEGV" in (run["nodes"][0]["died"] or ""), f"{name}: {run['nodes'][0]['died']}")
        code, gate = arms.gate(out)
        # refuted by the logs alone; nothing else stands on them
        need(gate["verdict"] == ("fail" if claim == "refuted" else "unknown"), f"{name}: gate {gate['verdict']}")
        need("proven" not in (gate["claim_gdr"], gate["claim_mechanism"]) and not gate.get("simulation") == "passed", f"{name}: {gate}")
        need(code == 1 or (code == 2 and claim == "unproven"), f"{name}: exit {code}")
        need(status == 1, f"{name}: exit {status} of the run")


def control(gate, arm):
    return next(c for c in gate["controls"] if c["arm"] == arm)


def check(gate, arm, what):
    return next((c for c in control(gate, arm)["checks"] if c["what"] == what), {})


def controls(arms):
    _, _, whole = arms.run("unchanged", "ib-gdrdma.log")
    _, _, a = arms.run("A", "ib-gdr-level-loc.log")
    _, _, b = arms.run("B", "ib-dmabuf-disabled.log")
    _, gate = arms.gate(whole, a, b)
    # the marker is gone on the ends that there are lines of; of the other rank there are none
    for arm in ("A", "B"):
        need(control(gate, arm)["state"] == "unknown", f"{arm}: {control(gate, arm)}")
    need("0 ends with, 4 without GDRDMA; lines of 1 of 2 ranks" in check(gate, "A", "marker").get("seen", ""), f"A: {control(gate, 'A')}")
    need(control(gate, "C")["state"] == "not run", f"C: {control(gate, 'C')}")
    # a run that fell to TCP is no control, and is told apart
    _, _, a = arms.run("A", "socket.log")
    _, gate = arms.gate(whole, a)
    need(control(gate, "A")["state"] == "other" and "TCP" in control(gate, "A")["says"], f"A by TCP: {control(gate, 'A')}")
    # a control that still has GDR
    _, _, a = arms.run("A", "ib-gdrdma.log")
    _, gate = arms.gate(whole, a)
    need(control(gate, "A")["state"] == "other" and check(gate, "A", "marker").get("state") == "other", f"A with GDR: {control(gate, 'A')}")
    # a control that died
    _, _, a = arms.run("A", "fail-completion-error.log", "exit 6")
    _, gate = arms.gate(whole, a)
    need(control(gate, "A")["state"] != "expected" and check(gate, "A", "end").get("state") != "expected", f"A that died: {control(gate, 'A')}")


def in_network(arms):
    """Collectives that a switch reduces are named, since the hcas then send less."""
    _, run, out = arms.run("unchanged", "made-collnet.log")
    need(run.get("in_network") == "COLLNET, SHARP", f"collnet: {run.get('in_network')}")
    _, gate = arms.gate(out)
    finding = next((f for f in gate["findings"] if f["id"] == "in-network"), {})
    need("COLLNET, SHARP" in finding.get("text", "") and finding.get("fix") and finding.get("reverse"), f"collnet: {finding}")
    # NCCL 2.28's line of channels, with some of the NVLink switch
    lines = (arms.where / "made-proven.log").read_text(encoding="utf-8").replace(" 0 nvls channels", " 16 nvls channels")
    (arms.work / "nvls.log").write_text(lines, encoding="utf-8")
    need("16 nvls channels" in lines, "the fixture has no line of channels")
    _, run, _ = arms.run("unchanged", str(arms.work / "nvls.log"))
    need(run.get("in_network") == "NVLS", f"nvls: {run.get('in_network')}")


def main():
    where = OWN if WHICH == "own" else shared.data("nccl-logs")
    with tempfile.TemporaryDirectory(prefix="test-nccl-arms-") as work:
        arms = Arms(where, work)
        each(arms)
        controls(arms)
        if WHICH == "own":
            in_network(arms)
    print(f"{len(ROWS)} jobs, 4 controls: {len(FAULTS)} faults")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
