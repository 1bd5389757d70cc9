#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gate 3 of prove over nodes in network namespaces: each lies on a made machine with GPUs, and runs its rank of NCCL
(tests/fake), which moves its bytes over TCP and says so in its lines.

The judges are what was made: the host names, how often and with which settings NCCL was begun on each node (its own lines
in the logs), and that bytes over TCP are no direct path.

usage: library.py PEERPATH PROJECT PART FAKE...
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import nodes
from nodes import expect, faults, finish, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import as_live  # noqa: E402

PEERPATH, PROJECT, PART = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute(), sys.argv[3]
FAKES = {"nccl": sys.argv[4], "cuda": sys.argv[5], "nvml": sys.argv[6]}
TOKEN = "0123456789abcdef0123456789abcdef"
ARMS = ("unchanged", "A", "B", "C")
# no node here has an RDMA device that works, and the fake NVML has processes on its GPUs
WORDS = ["prove", "--json", "--keep-going", "--busy-ok", "--duration", "50ms", "--repeats", "1", "--size", "8,64K"]


def variables(node, without=(), **more):
    path = ":".join(FAKES[name] for name in FAKES if name not in without)
    return {"PEERPATH_TOKEN": TOKEN, "LD_LIBRARY_PATH": path, "PP_FAKE_NCCL_ADDRESS": node.address, **more}


def listen(node, *words, **more):
    program = node.start([PEERPATH, "bench", "--listen", *words], **variables(node, **more))
    expect("listening" in program.stderr.readline(), "no listener")
    return program


def end(program):
    program.terminate()
    finish(program)


def prove(node, *words, **more):
    status, out, err = finish(node.start([PEERPATH, *WORDS, *words], **variables(node, **more)))
    try:
        return status, json.loads(out), err
    except ValueError:
        expect(False, f"no document: {status} {out[-300:]} {err[-600:]}")
        return status, {}, err


def gate(document):
    return next((g for g in document.get("gates", []) if g["gate"] == 3), {})


def tidy(what):
    expect(until(lambda: not nodes.named("peerpath"), 30), f"{what}: left {nodes.named('peerpath')}")
    left = nodes.left(PEERPATH)
    expect(not left, f"{what}: left in /tmp: {left}")


def right(document, status, hosts, what, bundle=None):
    """TCP between hosts: the claim is refuted, on the lines of every node."""
    library = document.get("library", {}).get("gate", {})
    expect(document.get("through") == "library", f"{what}: through {document.get('through')}")
    expect(gate(document).get("verdict") == "fail" and library.get("claim_gdr") == "refuted", f"{what}: {gate(document)}")
    expect("Socket" in gate(document).get("claim", ""), f"{what}: {gate(document)}")
    expect(status == 1 and document.get("verdict") == "fail", f"{what}: {status} {document.get('verdict')}")
    if not bundle:
        return
    runs = json.loads((pathlib.Path(bundle) / "nccl.json").read_text(encoding="utf-8"))["runs"]
    expect(tuple(r["arm"] for r in runs) == ARMS, f"{what}: {[r['arm'] for r in runs]}")
    for r in runs:
        expect(sorted(n["host"] for n in r["nodes"]) == sorted(hosts), f"{what}: {r['arm']} {[n['host'] for n in r['nodes']]}")
        expect(all(n["ranks"] == 1 for n in r["nodes"]) and not r["nodes_missing"], f"{what}: {r['arm']} {r['missing_why']}")
        own = {s["name"]: s["value"] for s in r["settings"] if s["from"] == "arm"}
        expect(own == {"unchanged": {}, "A": {"NCCL_NET_GDR_LEVEL": "LOC"}, "B": {"NCCL_DMABUF_ENABLE": "0"},
                       "C": {"NCCL_NET_GDR_READ": "0"}}[r["arm"]], f"{what}: {r['arm']} {own}")
    # every rank's logs, and what rank 0 printed; the token is nowhere
    for a in ARMS:
        expect(len(list(pathlib.Path(bundle, "nccl", a).glob("*.log"))) >= len(hosts) + 1, f"{what}: logs of {a}")
    held = b"".join(p.read_bytes() for p in pathlib.Path(bundle).rglob("*") if p.is_file())
    expect(TOKEN.encode() not in held, f"{what}: the token is in the bundle")
    subprocess.run([PEERPATH, "bundle", "verify", bundle], check=True, stdout=subprocess.DEVNULL)
    for fault in as_live.faults(PEERPATH, pathlib.Path(bundle).parent, pathlib.Path(bundle).name, status):
        expect(False, f"{what}: {fault}")
    done = subprocess.run([PEERPATH, "prove", "--replay", bundle, "--json", "--no-bundle"], stdout=subprocess.PIPE, text=True, check=False)
    again = json.loads(done.stdout)
    expect(gate(again) == gate(document), f"{what}: a replay says {gate(again)}")
    expect([e["logs"] for e in again["library"]["logs"]] == ["judged again, the same"] * 4, f"{what}: {again['library']['logs']}")


def part_peer(all_nodes):
    what, three = "peers", all_nodes[:3]
    others = [listen(n) for n in three[1:]]
    status, d, err = prove(three[0], "--peer", three[1].address, "--peer", three[2].address, "-o", "/tmp/peers")
    right(d, status, [f"{n.name}.lab" for n in three], what, "/tmp/peers")
    expect("gate 3: 4 runs of NCCL on 3 nodes" in err, f"{what}: the time is not said: {err}")
    for other in others:
        end(other)
    tidy(what)


def part_launched(all_nodes):
    what, two = "Slurm", all_nodes[:2]
    listed = f"{nodes.NET}.[1-2]"

    def slurm(rank):
        return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2",
                "SLURM_LOCALID": "0", "SLURM_JOB_ID": "17", "SLURM_STEP_NODELIST": listed, "SLURM_JOB_NODELIST": listed,
                "SLURM_STEP_LAUNCHER_PORT": "41000"}

    def run(*words, **more):
        other = two[1].start([PEERPATH, *WORDS, *words, "-o", "/tmp/rank1"], **variables(two[1], **slurm(1), **more))
        status, d, err = prove(two[0], *words, "-o", "/tmp/rank0", "--force", **slurm(0), **more)
        return status, d, err, finish(other)

    status, d, err, other = run()
    right(d, status, ["n1.lab", "n2.lab"], what, "/tmp/rank0")
    expect(other[0] == 0 and not other[1] and not pathlib.Path("/tmp/rank1").exists(), f"{what}: rank 1 {other}")
    tidy(what)
    # no CUDA: one line that says so, no verdict, and the other rank does not wait for a job that never comes
    status, d, err, other = run(without=("cuda",))
    why = d.get("library", {}).get("not_observed") or ""
    expect(gate(d).get("verdict") == "unknown" and "libcuda" in why, f"no CUDA: {gate(d)} {why}")
    expect(other[0] == 0 and not other[1], f"no CUDA: rank 1 {other}")
    tidy("no CUDA")


def part_refused(all_nodes):
    one, two = all_nodes[:2]
    # CUDA is missing on the other node alone: that node is named, with its own reason
    other = listen(two, without=("cuda",))
    status, d, err = prove(one, "--peer", two.address, "--no-bundle")
    why = d.get("library", {}).get("not_observed") or ""
    expect("n2" in why and "libcuda" in why and gate(d).get("verdict") == "unknown", f"no CUDA there: {why} {gate(d)}")
    end(other)
    tidy("no CUDA there")
    # a peer that serves one run has served gate 2
    other = listen(two, "--once")
    status, d, err = prove(one, "--peer", two.address, "--no-bundle")
    why = d.get("library", {}).get("not_observed") or ""
    expect(two.address in why and "--once" in why and gate(d).get("verdict") == "unknown", f"--once: {why} {gate(d)}")
    finish(other)
    tidy("--once")
    # told to end in the middle of it
    other = listen(two)
    first = one.start([PEERPATH, *WORDS, "--peer", two.address, "-o", "/tmp/cut"], **variables(one, PP_FAKE_NCCL="hang"))
    text = ""
    while "runs of NCCL" not in text:
        line = first.stderr.readline()
        if not line:
            break
        text += line
    first.terminate()
    status, out, err = finish(first)
    expect(status == 130 and not out and not pathlib.Path("/tmp/cut").exists(), f"interrupted: {status} {out[:200]} {err}")
    end(other)
    tidy("interrupted")


def part_died(all_nodes):
    """A node goes in the first run: that run is judged as far as it came, no control begins, and nobody waits for the node."""
    one, two = all_nodes[:2]
    other = listen(two, PP_FAKE_NCCL="hang")
    first = one.start([PEERPATH, *WORDS, "--peer", two.address, "--no-bundle"], **variables(one, PP_FAKE_NCCL="hang"))
    text = ""
    while "runs of NCCL" not in text:
        line = first.stderr.readline()
        if not line:
            break
        text += line
    began = time.monotonic()
    expect(until(lambda: len(nodes.named("peerpath")) > 8, 30), "the ranks do not begin")
    time.sleep(3)
    two.cut()
    other.kill()
    status, out, err = finish(first)
    took = time.monotonic() - began
    print(f"a node dies: {status} after {took:.0f} s: {err[-300:]}", flush=True)
    try:
        d = json.loads(out)
    except ValueError:
        expect(False, f"no document: {status} {err[-300:]}")
        return
    controls = {c["arm"]: c["state"] for c in d.get("library", {}).get("gate", {}).get("controls", [])}
    expect(status in (1, 2) and set(controls.values()) <= {"not run"} and gate(d).get("verdict") in ("unknown", "fail"), f"a node dies: {status} {gate(d)} {controls}")


def machine():
    """/sys of a machine with two GPUs and two hcas, over ours; and a /tmp of our own."""
    sys.path.insert(0, str(PROJECT / "tests/fixtures"))
    import dataclasses

    import make_machine
    from machine.plan import PRESETS

    tree = tempfile.mkdtemp(prefix="test-library-")
    make_machine.recording(dataclasses.replace(PRESETS["good2"])).write(f"{tree}/machine")
    subprocess.run(["mount", "--rbind", f"{tree}/machine/raw/sys", "/sys"], check=True)
    return tree


def main():
    nodes.alone()
    if not pathlib.Path(PEERPATH).is_relative_to("/tmp") and not PROJECT.is_relative_to("/tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)
    tree = machine()
    globals()[f"part_{PART}"](nodes.make(3))
    subprocess.run(["umount", "-l", "/sys"], check=False)
    shutil.rmtree(tree, ignore_errors=True)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
