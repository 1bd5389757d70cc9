#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that Slurm itself starts, on a cluster of this machine alone: they find each other, and are gone
when Slurm ends them. The judges are Slurm (its variables, its host lists, its statuses) and /proc.

What the program itself makes of it, too: one document of one run, of which the other ranks say nothing.

usage: slurm.py LAB PARTY PEERPATH
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../party"))
from nodes import named

LAB, PARTY, PEERPATH = (os.path.abspath(path) for path in sys.argv[1:4])
LIMIT = 60
faults = 0


def expect(true, what):
    global faults
    if not true:
        print(f"FAULT: {what}", flush=True)
        faults += 1


def run(*words, **variables):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False,
                          env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


def party_of(text):
    """Ids of the one party that was there; None when it was not one."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return [node["id"] for node in json.loads(lines[0])["nodes"]] if len(lines) == 1 else None


def nobody_left(what, name="party"):
    end = time.monotonic() + LIMIT
    while named(name) and time.monotonic() < end:
        time.sleep(0.05)
    expect(not named(name), f"{what}: left {named(name)}")
    for pid in named(name):
        os.kill(pid, signal.SIGKILL)


def starts(host):
    two, four = [host, f"{host}-2"], [host] + [f"{host}-{n}" for n in (2, 3, 4)]
    for what, words, ids, variables in (
            ("one node, two tasks", ["srun", "-N1", "-n2"], two, {}),
            ("two nodes", ["srun", "-N2", "--ntasks-per-node=1"], two, {}),
            ("two nodes, four tasks", ["srun", "-N2", "-n4"], four, {}),
            ("cyclic", ["srun", "-N2", "-n4", "--distribution=cyclic"], four, {}),
            ("a token", ["srun", "-N2", "-n2"], two, {"PEERPATH_TOKEN": "0123456789abcdef"}),
            ("PMI 2", ["srun", "-N2", "-n2", "--mpi=pmi2"], two, {}),
            ("one task", ["srun", "-N1", "-n1"], [host], {}),
            ("the shell of an allocation", ["salloc", "--quiet", "-n4"], [host], {})):
        status, out, err = run(*words, PARTY, "rank", **variables)
        expect(status == 0 and party_of(out) == ids, f"{what}: {status} {out[-300:]} {err[-300:]}")
        nobody_left(what)

    with open("batch.sh", "w", encoding="ascii") as script:
        script.write(f"#!/bin/sh\n{PARTY} rank\n")
    status, _, err = run("sbatch", "--wait", "--quiet", "-n4", "--output=batch.out", "--error=batch.err", "batch.sh")
    with open("batch.out", encoding="utf-8") as text:
        out = text.read()
    expect(status == 0 and party_of(out) == [host], f"a batch script: {status} {out[-300:]} {err[-300:]}")

    # Two steps of one job at once: neither takes the other's ranks.
    both = f"srun --exact -n2 {PARTY} rank >a.out & srun --exact -n2 {PARTY} rank >b.out; wait $! && cat a.out b.out"
    status, out, err = run("salloc", "--quiet", "-n4", "sh", "-c", both)
    found = [party_of(line) for line in out.splitlines() if line.startswith("{")]
    expect(status == 0 and found == [two, two], f"two steps: {status} {out[-600:]} {err[-300:]}")
    nobody_left("two steps")


def held(*words):
    program = subprocess.Popen(["srun", "-N2", "-n4", "--job-name=held", PARTY, "rank", "--hold"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    expect(party_of(program.stdout.readline()) is not None, "the party is there")
    expect(program.stdout.readline() == "held\n", "the party goes on")
    # Four ranks, a keeper of rank 0's own node, four agents.
    expect(len(named("party")) == 9, f"9 processes: {named('party')}")
    if words:
        expect(subprocess.run(words, check=False).returncode == 0, f"{words}")
    else:
        os.kill(max(pid for pid in named("party") if is_rank(pid, "2")), signal.SIGKILL)
    _, err = program.communicate(timeout=LIMIT)
    return program.returncode, err


def is_rank(pid, rank):
    with open(f"/proc/{pid}/environ", "rb") as text, open(f"/proc/{pid}/status", encoding="ascii") as status:
        mine = f"SLURM_PROCID={rank}".encode() in text.read().split(b"\0")
        # Rank and agent have the same variables; a rank leads no group of its own making.
        parent = int(next(line.split()[1] for line in status if line.startswith("PPid")))
    return mine and parent not in named("party")


def ends():
    status, err = held("scancel", "--name=held")
    expect(status != 0, f"scancel: {status} {err[-300:]}")
    nobody_left("scancel")
    status, err = held("scancel", "--name=held", "--signal=INT")
    expect(status != 0 and "interrupted" in err, f"SIGINT to all: {status} {err[-300:]}")
    nobody_left("SIGINT to all")
    status, err = held()
    expect(status != 0 and "node has ended its connection" in err, f"a rank killed: {status} {err[-300:]}")
    nobody_left("a rank killed")


def host_lists():
    """What Slurm says each list means; what it calls no list may only be more than it takes: a name that goes on
    behind its last bracket. Left out is what it lets pass as it is or mends: brackets that do not pair."""
    chance, compared, refused = random.Random(11), 0, 0
    pieces = ["[1-3]", "[07-11]", "[1,4-5,009]", "[3-1]", "[]", "[x]", "a", "gpu-", "n0", ",", ".lab"]
    lists = ["".join(chance.choice(pieces) for _ in range(chance.randint(1, 5))) for _ in range(100)]
    for text in lists + ["a[1-2]b[3-4],c", "rack[01-02]n[9-10]"]:
        if text.count("[") > 2 or not text.strip(","):
            continue
        _, told, _ = run("scontrol", "show", "hostnames", text)
        ours, names, _ = run(PARTY, "hosts", text)
        invalid = not told.split() or "Invalid hostlist" in told
        more = re.search(r"\][^\[\],]+(,|$)", text)
        compared += not invalid
        refused += bool(invalid and ours)
        expect(names.split() == told.split() if not invalid else ours or more,
               f"{text}: Slurm {told.split()}, here {names.split()}")
    print(f"{compared} host lists alike, {refused} refused by both")
    expect(compared > 20 and refused > 10, "too few lists were compared")


PROVE = [PEERPATH, "prove", "--simulate", "-j", "--size", "4K", "--duration", "10ms", "--repeats", "2"]


def proof(what, words, ids):
    """srun labels each line with its task: only task 0 speaks."""
    status, out, err = run("srun", "--label", *words)
    lines = [line.split(": ", 1) for line in out.splitlines() if ": " in line]
    expect(status == 0 and {line[0].strip() for line in lines} == {"0"}, f"{what}: {status} {out[-300:]} {err[-300:]}")
    try:
        d = json.loads("\n".join(line[1] for line in lines))
    except json.JSONDecodeError as error:
        expect(False, f"{what}: no document: {error}")
        return {}
    memory = d.get("memory", {})
    expect(d.get("simulation") == "passed" and memory.get("whole"), f"{what}: {d.get('simulation')} {d.get('not_measured')}")
    expect([n["id"] for n in memory.get("nodes", [])] == ids and len(memory.get("pairs", [])) == 1, f"{what}: nodes {memory.get('nodes')}")
    cells = [c for p in memory.get("pairs", []) for c in p["cells"] if c["state"] == "run"]
    expect(cells and all(c["checked_bytes"] > 0 and c["wrong_bytes"] == 0 for c in cells), f"{what}: cells")
    nobody_left(what, "peerpath")
    return d


def proofs(host):
    two = [host, f"{host}-2"]
    proof("prove, one node", ["-N1", "-n2", *PROVE, "--no-bundle"], two)
    proof("prove, two nodes", ["-N2", "--ntasks-per-node=1", *PROVE, "--no-bundle"], two)
    d = proof("prove with a bundle", ["-N1", "-n2", *PROVE, "-o", "proof.tar.zst"], two)
    expect(d.get("complete") is True and os.path.basename(d.get("bundle") or "") == "proof.tar.zst", f"bundle: {d.get('bundle')}")
    status, _, err = run(PEERPATH, "bundle", "verify", "proof.tar.zst")
    expect(status == 0, f"bundle verify: {status} {err}")
    held = subprocess.run(["tar", "--zstd", "-tf", "proof.tar.zst"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    found = sorted(name.split("/")[-2] for name in held if name.endswith("/capture.tar.zst"))
    expect(found == sorted(two), f"bundle: nodes {found}")


def inside():
    os.chdir(os.environ["HOME"])
    host = os.uname().nodename.split(".")[0]
    proofs(host)
    starts(host)
    ends()
    host_lists()
    print(f"{faults} faults")
    return 1 if faults else 0


def main():
    if "PEERPATH_TEST_SLURM" in os.environ:
        return inside()
    if os.environ.get("PEERPATH_SANITIZED"):
        print("Slurm and a shell between change nothing for a sanitizer: party and bench run under it in e2e-party and e2e-nodes")
        return 77
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([LAB, "--nodes", "2", "--", sys.executable, *sys.argv], check=False,
                              env={**os.environ, "HOME": home, "PEERPATH_TEST_SLURM": "1"})
    return done.returncode if done.returncode >= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
