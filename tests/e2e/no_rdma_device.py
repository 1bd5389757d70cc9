#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node whose mlx5 functions carry no RDMA device, all else being good: nothing there passes.

The made machine is judged as a recording; and, in a mount namespace where it lies over /sys, as the machine that the
program runs on, which is all that `bench` takes.

usage: no_rdma_device.py PEERPATH
"""
import json
import os
import pathlib
import subprocess
import sys

import machines

FAULTS = []
VERBS = (
    ("prove", "--no-bundle"),
    ("prove", "--no-bundle", "--keep-going"),
    ("prove", "--no-bundle", "--through", "prerequisites"),
    ("prove", "--no-bundle", "--fail-on", "fail"),
    ("check",),
)


def need(good, what):
    if not good:
        FAULTS.append(what)


def is_mlx5_and_empty(tree):
    """What the test is about, seen without the program."""
    root = pathlib.Path(tree) / "raw/sys"
    drivers = [os.path.basename(os.readlink(d / "driver")) for d in (root / "bus/pci/devices").iterdir()
               if (d / "driver").is_symlink()]
    devices = root / "class/infiniband"
    return drivers.count("mlx5_core") == 2 and devices.is_dir() and not list(devices.iterdir())


def judge_json(what, status, text):
    need(status == 1, f"{what}: exit {status}")
    doc = json.loads(text)
    need(doc["verdict"] == "fail", f"{what}: verdict {doc['verdict']}")
    for gate in doc.get("gates", ())[:1]:
        need("0 of 2 hcas by BDF, node GUID and firmware; 2 by BDF alone" in gate["evidence"],
             f"{what}: gate 0 {gate['evidence']}")
    for gate in doc.get("gates", ())[1:]:
        need(gate["verdict"] in ("fail", "unknown") and gate["claim_state"] != "proven", f"{what}: gate {gate}")
    claims = " ".join(str(g["claim"]) for g in doc.get("gates", ())) or text.decode()
    need("no RDMA device" in claims, f"{what}: {claims}")


def recorded(tree):
    for words in VERBS:
        status, out, err = machines.run(*words, "--json", "--replay", tree)
        judge_json(f"recorded, {' '.join(words)}", status, out)
        need(not err, f"{words}: {err}")
    status, out, _ = machines.run("identity", "--replay", tree)
    need(status == 0 and b"0000:19:00.0" in out, f"identity: {status}")


def on_it(tree, *words):
    """The program on a machine whose /sys is the made one."""
    script = 'mount --rbind "$0" /sys && exec "$@"'
    done = subprocess.run(["unshare", "-rmn", "sh", "-c", script, f"{tree}/raw/sys", machines.PROGRAM, *words],
                          capture_output=True, check=False, timeout=machines.LIMIT_S, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr.decode()


def live(tree):
    status, out, _ = on_it(tree, "check", "--json")
    if b"no-rdma-device" not in out and b"no RDMA device" not in out:
        print("not tried as a live machine: no user and mount namespaces here")
        return
    judge_json("live, check", status, out)
    status, out, err = on_it(tree, "prove", "--no-bundle", "--json")
    judge_json("live, prove", status, out)
    for words in (("bench", "--here"), ("bench", "--here", "-j"), ("bench", "--here", "--rungs", "tcp"),
                  ("bench", "--here", "--device", "0000:19:00.0"), ("bench", "--here", "--device", "mlx5_0")):
        status, out, err = on_it(tree, *words)
        told = json.loads(out) if "-j" in words and out else {}
        need(status == 2 and bool(out) == ("-j" in words), f"live, {' '.join(words)}: exit {status}, {out[:200]}")
        need(not out or (told["verdict"], told["whole"], told["pairs"]) == ("unknown", False, []) and "no RDMA device" in told["ended"],
             f"live, {' '.join(words)}: {out[:300]}")
        need(len(err.splitlines()) == 1, f"live, {' '.join(words)}: {err}")
    _, _, err = on_it(tree, "bench", "--here")
    need("no RDMA device" in err and "--simulate" in err, f"live, bench: {err}")
    _, _, err = on_it(tree, "bench", "--here", "--device", "0000:19:00.0")
    need("0000:19:00.0 has no RDMA device: its driver (mlx5_core) made none" in err, f"live, by BDF: {err}")


def main():
    machines.need_program()
    with machines.scratch() as work:
        tree = machines.make(f"{work}/machine", "good2", ("no-rdma-device",))
        need(is_mlx5_and_empty(tree), "the made machine is another")
        recorded(tree)
        live(tree)
    print("\n".join(FAULTS) or "two mlx5 functions and no RDMA device: nothing passes")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
