#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evidence of registrations that bench and prove take, on the software device: a record for each region that processes of the run
hold, of the right process, marked as simulated. `peerpath soft show`, asked meanwhile, says which regions there are.

usage: evidence.py PEERPATH
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import soft
from soft import Fault, alone, cases

PEERPATH = os.path.abspath(sys.argv[1])
LIMIT_S = 120
QUICK = ("-s", "64K", "--repeats", "3", "-D", "50ms", "-n", "20")
# Regions of each end's process: staging has one for each direction.
REGIONS = {"host": ["host"], "dmabuf": ["dmabuf"], "staged": ["host", "host"]}


def expect(good, *what):
    if not good:
        raise Fault(" ".join(map(str, what)))


def clean():
    return {**{k: v for k, v in os.environ.items() if not k.startswith(("PEERPATH_TOKEN", "SLURM_", "PMI", "OMPI_"))},
            "PEERPATH_SOFT": "name=soft0,address=127.0.0.1"}


def shown(seen):
    """Adds what the device's processes hold now."""
    done = subprocess.run([PEERPATH, "soft", "show", "-j"], stdout=-1, stderr=-1, text=True, timeout=LIMIT_S, check=False)
    for p in json.loads(done.stdout)["processes"] if done.stdout else ():
        for device in p["devices"]:
            for r in device["memory_regions"]:
                seen.add((p["pid"], r["lkey"], r["length_bytes"], r["registration"]))


def run(*words, watch=None):
    """A run's document, and what was seen on the device meanwhile."""
    argv = [PEERPATH, *words]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True, env=clean()) as process:
        end = time.monotonic() + LIMIT_S
        while watch is not None and process.poll() is None and time.monotonic() < end:
            shown(watch)
            time.sleep(0.02)
        out, err = process.communicate(timeout=LIMIT_S)
    expect(out, f"exit {process.returncode}: {err[-500:]}")
    return process.returncode, out


def records(document):
    return [(r["rung"], e) for p in document["pairs"] for r in p["rungs"] for e in r["evidence"]]


def marked(record):
    expect((record["about"], record["witness"], record["state"], record["simulated"]) ==
           ("registration", "library", "unproven", True), record)
    expect(record["looked"] and record["why"], record)


def of_bench():
    """One record a region and one a process, of each rung and end; pid, key, length and way are what the process says itself."""
    seen = set()
    code, out = run("bench", "--simulate", "--rungs", "tcp,host,dmabuf,staged", "--json", *QUICK, watch=seen)
    document = json.loads(out)
    expect(code == 0 and document["whole"], document["ended"])
    found = records(document)
    pids = set()
    for name, ways in REGIONS.items():
        for end in range(2):
            mine = [e for r, e in found if r == name and e["end"] == end]
            regions = [e for e in mine if e["scope"] == "mr"]
            expect([e["registration"] for e in regions] == ways and len(mine) == len(ways) + 1, name, mine)
            expect(len({e["pid"] for e in mine}) == 1, name, mine)
            pids.add(mine[0]["pid"])
            for e in regions:
                expect((e["pid"], e["lkey"], e["length_bytes"], e["registration"]) in seen, "not of the device:", e)
                expect(not e["other_memory"], e)
    expect(len(pids) == 6, "of each rung and end a process of its own:", pids)
    for _, e in found:
        marked(e)
    expect(not [r for r, _ in found if r not in REGIONS], "rungs that hold nothing", found)
    for row in document["transfer"]["rows"]:
        if row["rung"] in REGIONS:
            expect((row["registration_state"], row["registration_witness"]) == ("unproven", "measurement"), row)
            expect(row["registration_seen"] == f"software device, at both ends: {REGIONS[row['rung']][0]} (simulated)", row)
            expect(row["mechanism"] == ("dmabuf" if row["rung"] == "dmabuf" else "n/a"), row)


def of_text():
    """One line below each rung."""
    _, out = run("bench", "--simulate", "--rungs", "host,dmabuf", *QUICK)
    for way in ("host", "dmabuf"):
        expect(f"software device, at both ends: {way} (simulated)" in " ".join(out.split()), out)


def of_pattern():
    """Whatever the pattern: one look of each rung, a record of each of its ends."""
    for words in (("--pattern", "ring"), ("--rails", "all")):
        _, out = run("bench", "--simulate", "--rungs", "host", "--json", *QUICK, *words)
        document = json.loads(out)
        for pair in document["pairs"]:
            host = next(r for r in pair["rungs"] if r["rung"] == "host")
            expect([e["end"] for e in host["evidence"] if e["scope"] == "mr"] == [0, 1], words, host["evidence"])


def of_prove():
    """The bundle has them with gate 2, and apart for each node; it verifies."""
    with tempfile.TemporaryDirectory() as d:
        bundle = pathlib.Path(d) / "bundle"
        _, out = run("prove", "--simulate", "--json", "-o", str(bundle), *QUICK[:-2])
        document = json.loads(out)
        bench = json.loads((bundle / "bench.json").read_text())
        expect(records(document["memory"]) == records(bench), "result and bench.json differ")
        nodes = {n["id"]: i for i, n in enumerate(bench["nodes"])}
        apart = {p.parent.name: json.loads(p.read_text()) for p in bundle.glob("nodes/*/evidence.json")}
        expect(set(apart) == set(nodes), "nodes", set(apart))
        for name, evidence in apart.items():
            expect((evidence["schema"], evidence["node"]) == ("peerpath.evidence/1", name), evidence)
            pair = bench["pairs"][0]
            end = next(i for i, e in enumerate(pair["ends"]) if e["node"] == nodes[name])
            mine = [{"pair": pair["name"], "rung": r, **e} for r, e in records(bench) if e["end"] == end]
            expect(mine and evidence["evidence"] == mine, name)
            for e in evidence["evidence"]:
                marked(e)
        done = subprocess.run([PEERPATH, "bundle", "verify", str(bundle)], stdout=-1, stderr=-1, text=True, timeout=LIMIT_S, check=False)
        expect(done.returncode == 0, "verify", done.stdout, done.stderr)
        gate = next(g for g in document["gates"] if g["name"] == "memory")
        expect(gate["claim_state"] != "proven", gate)


TABLE = [
    ("of bench", of_bench),
    ("in its text", of_text),
    ("patterns and rails", of_pattern),
    ("of prove, and in its bundle", of_prove),
]

if __name__ == "__main__":
    soft.not_sanitized()
    alone(needed=True)
    sys.exit(cases(TABLE, sys.argv[2:]))
