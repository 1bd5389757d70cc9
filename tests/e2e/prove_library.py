#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gate 3 of prove where it runs a job itself: on the software device, with an NCCL, a CUDA and an NVML that need no GPU, on
a machine whose /sys is made.

What the job must be seen to do is what the fake NCCL is made to do: it registers GPU memory on the device by DMA-BUF, and
sends its bytes by TCP, which no number of right lines makes up for.

usage: prove_library.py PEERPATH PROJECT FAKE-NCCL FAKE-CUDA FAKE-NVML PART
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import as_live
import machines

FAKES = {"nccl": sys.argv[3], "cuda": sys.argv[4], "nvml": sys.argv[5]}
PART = sys.argv[6]
SHORT = ("--duration", "50ms", "--repeats", "1", "--size", "64K,8,64K")
HOST = "frobnitz7.dc.quux.example"
FAULTS = []


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def on_it(tree, work, *words, without=(), **more):
    """prove on the made machine: (exit status, standard output, standard error)."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_", "OMPI_", "PMI", "LD_", "PEERPATH_RANK"))}
    path = ":".join(FAKES[name] for name in FAKES if name not in without)
    script = f'hostname {HOST}; ip link set lo up; mount --rbind "$0" /sys && exec "$@"'
    done = subprocess.run(["unshare", "-rmnu", "sh", "-c", script, f"{tree}/raw/sys", machines.PROGRAM, "prove", *words],
                          capture_output=True, text=True, check=False, timeout=240, stdin=subprocess.DEVNULL, cwd=work,
                          env={**kept, "LD_LIBRARY_PATH": path, "TMPDIR": str(work), **more})
    left = [p.name for p in pathlib.Path(work).glob("peerpath-*.??????")]
    need(not left, f"{words}: left {left}")
    return done.returncode, done.stdout, done.stderr


def document(name, status, out, err):
    try:
        return json.loads(out)
    except ValueError:
        need(False, f"{name}: no document: {status} {out[-200:]} {err[-400:]}")
        return {}


def gate(d):
    return next((g for g in d.get("gates", []) if g["gate"] == 3), {})


def part_simulated(tree, work):
    status, out, err = on_it(tree, work, "--simulate", "--busy-ok", "--json", *SHORT, "-o", "bundle", NCCL_NET="IB")
    d = document("simulated", status, out, err)
    g = d.get("library", {}).get("gate", {})
    need(d.get("through") == "library", f"through {d.get('through')}")
    need(g.get("simulation") == "failed" and status == 1 and d.get("simulation") == "failed", f"{status} {g}")
    # the one thing that is wrong: no byte of the job crossed the device
    need("the hcas sent 0.00 GB" in g.get("sentence", ""), g.get("sentence"))
    need(g.get("claim_gdr") != "proven" and gate(d).get("verdict") != "pass", f"{g.get('claim_gdr')} {gate(d)}")
    runs = json.loads((work / "bundle/nccl.json").read_text(encoding="utf-8"))["runs"]
    need([(r["arm"], r["judgement"]["path"]) for r in runs] == [("unchanged", "gdr"), ("A", "host-staged"), ("B", "host-staged"), ("C", "mixed")],
         f"{[(r['arm'], r['judgement']['path']) for r in runs]}")
    need(all(r["simulated"] is True for r in runs), "not marked as simulated")
    # gate 2 ran, on a machine whose own hcas the device stands in for
    need(all(c["wrong_bytes"] == 0 for p in d["memory"]["pairs"] for c in p["cells"]) and d["memory"]["pairs"], "gate 2 did not run")
    need(all("--simulate" not in (g["next"] or "") for g in d["gates"]), f"{d['gates']}")
    said_again("bundle", work, status)
    replayed(work, d)


def said_again(name, work, status):
    for fault in as_live.faults(machines.PROGRAM, work, name, status):
        need(False, fault)


def here(work, *words):
    return subprocess.run([machines.PROGRAM, *words], cwd=work, capture_output=True, text=True, check=False)


def change(work, name, old, new):
    """A file of the bundle, and its digest with it: as who writes bundles could."""
    path, manifest = work / "bundle" / name, work / "bundle/manifest.json"
    text = path.read_text(encoding="utf-8").replace(old, new)
    need(old not in text, f"{name}: {old} stays")
    path.write_text(text, encoding="utf-8")
    before = manifest.read_text(encoding="utf-8")
    for f in json.loads(before)["files"]:
        if f["path"] == name:
            row = f'"path": "{name}",\n      "bytes": {{}},\n      "sha256": "{{}}"'
            data = text.encode()
            after = before.replace(row.format(f["bytes"], f["sha256"]), row.format(len(data), hashlib.sha256(data).hexdigest()))
    need(after != before, f"{name}: its row is not found")
    body = re.sub(r'"sha256": "[0-9a-f]{64}"\n}\n$', '"sha256": "' + 64 * "0" + '"\n}\n', after)
    manifest.write_text(body[:-68] + hashlib.sha256(body.encode()).hexdigest() + body[-4:], encoding="utf-8")


def replayed(work, d):
    """NCCL's logs are in the bundle, and a replay judges by them."""
    logs = d["library"]["logs"]
    need([(entry["arm"], entry["logs"], entry["dropped_bytes"]) for entry in logs] == [(a, "kept", 0) for a in ("unchanged", "A", "B", "C")], f"{logs}")
    names = sorted(str(p.relative_to(work / "bundle")) for p in (work / "bundle/nccl").rglob("*.log"))
    # two ranks, and what the command printed
    need(names == [f"nccl/{a}/{n:04}.log" for a in ("A", "B", "C", "unchanged") for n in range(3)], f"{names}")
    need("via NET/IB/0/GDRDMA" in (work / "bundle/nccl/unchanged/0000.log").read_text(encoding="utf-8"), "no line of a connection")
    need(here(work, "bundle", "verify", "bundle").returncode == 0, "the bundle does not verify")
    again = json.loads(here(work, "prove", "--replay", "bundle", "--json", "--no-bundle").stdout)
    need(again["library"]["gate"] == d["library"]["gate"], "a replay judges gate 3 otherwise")
    need(all(entry["logs"] == "judged again, the same" for entry in again["library"]["logs"]), f"{again['library']['logs']}")
    # what a replay writes has them, too, byte by byte, and is a bundle to judge by
    need(here(work, "prove", "--replay", "bundle", "-o", "copied").returncode in (0, 1), "a replay writes no bundle")
    for name in [*names, "nccl/logs.json", "nccl.json"]:
        there = work / "copied" / name
        need(there.is_file() and there.read_bytes() == (work / "bundle" / name).read_bytes(), f"{name} is not copied")
    need(here(work, "bundle", "verify", "copied").returncode == 0, "the copy does not verify")
    copied = json.loads(here(work, "prove", "--replay", "copied", "--json", "--no-bundle").stdout)
    need(copied["library"] == again["library"], "the copy is judged otherwise")
    # who changes the document alone is found out by the logs
    change(work, "nccl.json", '"path": "host-staged"', '"path": "gdr"')
    again = json.loads(here(work, "prove", "--replay", "bundle", "--json", "--no-bundle").stdout)
    words = {entry["arm"]: entry["logs"] for entry in again["library"]["logs"]}
    need(words == {"unchanged": "judged again, the same", "A": "judged again, they differ", "B": "judged again, they differ", "C": "judged again, the same"}, f"{words}")
    need(again["library"]["gate"] == d["library"]["gate"], "the document counts more than the logs")
    # a log that is listed and not there
    (work / "bundle/nccl/A/0001.log").unlink()
    need(here(work, "bundle", "verify", "bundle").returncode == 65, "a log is missing, and the bundle verifies")


def part_scrubbed(tree, work):
    """What names the machine is in no file of the bundle, captures within it included; and it is the same job."""
    status, out, err = on_it(tree, work, "--simulate", "--busy-ok", "--json", "--scrub", *SHORT, "-o", "bundle", NCCL_NET="IB",
                             PEERPATH_TOKEN="0123456789abcdef-swordfish", HF_TOKEN="hf_swordfish")
    d = document("scrubbed", status, out, err)
    need(HOST.split(".", maxsplit=1)[0] in out and d.get("replaced", 0) > 100, f"what is printed is not scrubbed: {d.get('replaced')}")
    need(here(work, "bundle", "verify", "bundle").returncode == 0, "the bundle does not verify")
    need(json.loads((work / "bundle/manifest.json").read_text(encoding="utf-8"))["scrubbed"] is True, "the manifest does not say so")
    captures = sorted((work / "bundle/nodes").glob("*/capture.tar.zst"))
    need(len(captures) == 2, f"captures of nodes: {captures}")
    for i, path in enumerate(captures):
        need(here(work, "bundle", "verify", str(path)).returncode == 0, f"{path} does not verify")
        os.makedirs(work / f"opened{i}")
        subprocess.run(["tar", "--zstd", "-xf", str(path), "-C", str(work / f"opened{i}")], check=True)
    gpus = {p.name for p in (work / "bundle/raw/sys/bus/pci/devices").iterdir()}
    need("0000:18:00.0" in gpus, "evidence is gone with the names")
    for where in ("bundle", "opened0", "opened1"):
        for path in (work / where).rglob("*"):
            held = str(path).encode() + (path.read_bytes() if path.is_file() and not path.is_symlink() and not path.name.endswith(".zst") else b"")
            for word in (b"frobnitz7", b"quux", b"swordfish"):
                need(word not in held, f"{word} is in {path.relative_to(work)}")
    again = json.loads(here(work, "prove", "--replay", "bundle", "--json", "--no-bundle").stdout)
    need([e["logs"] for e in again["library"]["logs"]] == ["judged again, the same"] * 4, f"{again['library']['logs']}")
    old, new = d["library"]["gate"], again["library"]["gate"]
    need((old["verdict"], old["claim_gdr"], old["simulation"], [c["state"] for c in old["controls"]]) ==
         (new["verdict"], new["claim_gdr"], new["simulation"], [c["state"] for c in new["controls"]]), f"another judgement: {new}")


def part_absent(tree, work):
    """Without a GPU, a driver or an NCCL: unknown, in one line that says what to do, and exit 2."""
    status, out, err = on_it(tree, work, "--simulate", "--busy-ok", "--json", "-o", "nocuda", *SHORT, without=("cuda",))
    d = document("no CUDA", status, out, err)
    said_again("nocuda", work, status)
    why = d.get("library", {}).get("not_observed") or ""
    need(status == 2 and d.get("simulation") == "not run", f"no CUDA: {status} {d.get('simulation')}")
    need("libcuda.so.1" in why and "driver" in why and "\n" not in why, f"no CUDA: {why}")
    need(gate(d).get("verdict") == "unknown", f"no CUDA: {gate(d)}")
    # a GPU that others use is left alone
    status, out, err = on_it(tree, work, "--simulate", "--json", "-o", "busy", *SHORT)
    d = document("busy", status, out, err)
    said_again("busy", work, status)
    why = d.get("library", {}).get("not_observed") or ""
    need(status == 2 and "in use" in why and "--busy-ok" in why, f"busy: {status} {why}")
    # no GPU at all: asked for, it is unknown; not asked for, the simulation goes as far as the node lets it
    bare = machines.make(f"{work}/bare", "good2", gpus=0, nics=0)
    status, out, err = on_it(bare, work, "--simulate", "--through", "3", "--json", "--no-bundle", *SHORT)
    d = document("no GPU", status, out, err)
    why = d.get("library", {}).get("not_observed") or ""
    need(status == 2 and "no GPU" in why and gate(d).get("verdict") == "unknown", f"no GPU: {status} {why} {gate(d)}")
    status, out, err = on_it(bare, work, "--simulate", "--json", "--no-bundle", *SHORT)
    d = document("no GPU, default", status, out, err)
    need(d.get("through") == "memory" and "library" not in d, f"no GPU, default: {d.get('through')}")


def main():
    machines.need_program()
    if subprocess.run(["unshare", "-rmnu", "true"], capture_output=True, check=False).returncode:
        print("no user, network, host name and mount namespaces here")
        return 77
    if PART != "absent" and machines.SANITIZED:
        print("a sanitizer and an auditor do not share a process")
        return 77
    with machines.scratch() as work:
        tree = machines.make(f"{work}/machine", "good2")
        globals()["part_" + PART](tree, pathlib.Path(work))
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
