#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nccl run on nodes in network namespaces: logs of all nodes come to rank 0, and a node that vanishes is said.

The judges are the nodes' own host names, logs that tests/fixtures made, and /proc: who lives.

usage: nccl.py PEERPATH PROJECT PART
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import nodes
from nodes import expect, faults, finish, until

PEERPATH, PROJECT, PART = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
TOKEN = "0123456789abcdef0123456789abcdef"
JOB = pathlib.Path("/tmp/job")


def job(text):
    JOB.write_text(f"#!/bin/sh\nH=$(hostname)\nF=$(echo $NCCL_DEBUG_FILE | sed s/%h/$H/ | sed s/%p/1$RANK/)\n{text}\n", encoding="ascii")
    JOB.chmod(0o755)


def variables(rank, all_nodes):
    return {"PEERPATH_RANK": str(rank), "PEERPATH_SIZE": str(len(all_nodes)), "PEERPATH_COORDINATOR": all_nodes[0].address,
            "PEERPATH_TOKEN": TOKEN, "RANK": str(rank)}


def start(all_nodes, *words):
    command = [PEERPATH, "nccl", "run", "-q", "--json", *words, "--", str(JOB)]
    return [n.start(command, **variables(rank, all_nodes)) for rank, n in enumerate(all_nodes)]


def arm_of(text, what):
    try:
        return json.loads(text)["runs"][0]
    except (ValueError, KeyError, IndexError) as err:
        expect(False, f"{what}: no document: {err!r} {text[-200:]!r}")
        return None


def tidy(what):
    expect(until(lambda: not nodes.named("peerpath") and not nodes.named("sleep17"), 30), f"{what}: left {nodes.named('peerpath')}")
    left = nodes.left(PEERPATH)
    expect(not left, f"{what}: left in /tmp: {left}")


def part_judged(all_nodes):
    """One rank a node; rank 0 has only its own lines, and the table."""
    what, proof = "two nodes", (PROJECT / "tests/fixtures/nccl/made-proven-peermem.log").read_text().splitlines()
    for i in range(2):
        mine = [line for line in proof if line.split(" ")[0].startswith(f"host{i}:")]
        pathlib.Path(f"/tmp/lines{i}").write_text("\n".join(mine) + "\n", encoding="ascii")
    pathlib.Path("/tmp/table").write_text("\n".join(line for line in proof if "NCCL INFO" not in line) + "\n", encoding="ascii")
    job("cp /tmp/lines$RANK $F\n[ $RANK = 0 ] && cat /tmp/table\nexit 0")
    ends = [finish(p) for p in start(all_nodes[:2])]
    arm = arm_of(ends[0][1], what)
    expect(ends[1][0] == 0 and not ends[1][1], f"{what}: rank 1 {ends[1]}")
    if not arm:
        return
    expect(arm["judgement"]["claim_gdr"] == "proven", f"{what}: {arm['judgement']}")
    expect([n["host"] for n in arm["nodes"]] == ["n1.lab", "n2.lab"], f"{what}: {[n['host'] for n in arm['nodes']]}")
    expect([s["nodes"] for s in arm["settings"] if s["name"] == "NCCL_DEBUG"] == [2], f"{what}: {arm['settings']}")
    expect(all(n["traffic"]["window_ns"] > 0 for n in arm["nodes"]), f"{what}: each node counts")
    # settings that differ are two rows, of one node each
    job("exit 0")
    command = [PEERPATH, "nccl", "run", "-q", "--json", "--", str(JOB)]
    two = [n.start(command, **variables(rank, all_nodes[:2]), NCCL_IB_TIMEOUT=str(20 + rank)) for rank, n in enumerate(all_nodes[:2])]
    ends = [finish(p) for p in two]
    arm = arm_of(ends[0][1], "unlike settings")
    seen = sorted((s["value"], s["nodes"]) for s in arm["settings"] if s["name"] == "NCCL_IB_TIMEOUT") if arm else None
    expect(seen == [("20", 1), ("21", 1)], f"unlike settings: {seen}")
    found = [f for f in json.loads(ends[0][1]).get("gate", {}).get("findings", []) if f["id"] == "settings-differ"] if arm else []
    expect(len(found) == 1 and "NCCL_IB_TIMEOUT differs: 20 on 1 of 2 nodes, 21 on others" in found[0]["text"] and found[0]["reverse"], f"unlike settings: {found}")
    tidy(what)


def part_vanished(all_nodes):
    what = "a node vanishes"
    job("[ $RANK = 2 ] && exec sleep 600\nsleep 4\nexit 0")
    processes = start(all_nodes[:3])
    expect(until(lambda: nodes.named("sleep")), f"{what}: it does not begin")
    time.sleep(1.5)
    began = time.monotonic()
    all_nodes[2].cut()
    status, out, err = finish(processes[0])
    arm = arm_of(out, what)
    print(f"{what}: {status} {arm and arm['missing_why']} [{time.monotonic() - began:.1f} s]", flush=True)
    if arm:
        expect(arm["nodes_missing"] == 1 and "n3.lab" in (arm["missing_why"] or ""), f"{what}: {arm['nodes_missing']} {arm['missing_why']}")
        expect([n["host"] for n in arm["nodes"]] == ["n1.lab", "n2.lab"], f"{what}: {[n['host'] for n in arm['nodes']]}")
    expect(status in (1, 2), f"{what}: exit {status} {err[-200:]}")
    expect(finish(processes[1])[0] == 0, f"{what}: rank 1")
    # the vanished node's own process runs its command on; who started it ends it
    processes[2].terminate()
    finish(processes[2])
    tidy(what)


def main():
    nodes.alone()
    if not pathlib.Path(PEERPATH).is_relative_to("/tmp") and not PROJECT.absolute().is_relative_to("/tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)
    began = time.monotonic()
    globals()[f"part_{PART}"](nodes.make(3))
    print(f"{len(faults)} faults, {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


sys.exit(main())
