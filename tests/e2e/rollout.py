#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rollout from plan to cluster, with bundles that `prove` writes of made machines.

usage: rollout.py PEERPATH PROJECT-ROOT
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PEERPATH, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
failures = []
NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (made)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Mon Nov 30 00:00:00 UTC 2026\n"


def fail(text):
    failures.append(text)
    print("FAIL", text)


def run(*argv, code=None):
    done = subprocess.run([PEERPATH, *map(str, argv)], capture_output=True, text=True, timeout=120)
    if code is not None and done.returncode != code:
        fail(f"{argv}: exit {done.returncode}, not {code}: {done.stderr}{done.stdout}")
    return done


def write(machine, path, text):
    file = machine / "raw" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_text(text)


class Fleet:
    """Nodes that are alike; each has GUIDs of its own."""

    def __init__(self, top):
        self.top = top
        self.made = {}
        for shape in ("good2", "good8"):
            out = top / f"machine-{shape}"
            subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", shape, out], check=True,
                           capture_output=True)
            self.made[shape] = out

    def bundle(self, name, node, boot, shape="good2", flavour=NVRM, version="570.86.15"):
        machine = self.top / "machine"
        shutil.rmtree(machine, ignore_errors=True)
        shutil.copytree(self.made[shape], machine, symlinks=True)
        write(machine, "proc/sys/kernel/random/boot_id", f"0000000{boot}-0000-4000-8000-00000000000{node}\n")
        write(machine, "proc/driver/nvidia/version", flavour.format(version))
        write(machine, "sys/module/nvidia/taint", "POE\n" if flavour == CLOSED else "OE\n")
        for guid in (machine / "raw/sys").rglob("node_guid"):
            if guid.is_file() and not guid.is_symlink():
                guid.write_text(guid.read_text()[:-5] + f"00{node:02x}\n")
        done = run("prove", "--replay", machine, "-o", self.top / name, "--fail-on=fail")
        if done.returncode not in (0, 2):
            fail(f"{name}: prove exits {done.returncode}: {done.stderr}{done.stdout[-2000:]}")


def status(file, code):
    return json.loads(run("rollout", "status", file, "-j", code=code).stdout)


def states(doc):
    return {s["step"]: s["state"] for s in doc["steps"]}


def fill(file, **steps):
    lines = ["[rollout]", "from = peermem-open", "to = dmabuf", "through = prerequisites"]
    for step, keys in steps.items():
        lines.append(f"[{step}]")
        lines += [f"{k} = {v}" for k, values in keys.items() for v in (values if isinstance(values, list) else [values])]
    file.write_text("\n".join(lines) + "\n")


def main():
    memory = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None  # trees of thousands of small files
    with tempfile.TemporaryDirectory(dir=memory) as name:
        top = pathlib.Path(name)
        file = top / "plan"
        run("rollout", "plan", file, "--from", "peermem-open", "--to", "dmabuf", "--pool", "1", code=0)
        run("rollout", "plan", file, "--from", "peermem-open", "--to", "dmabuf", code=64)
        run("rollout", "plan", top / "x", "--from", "peermem-open", "--to", "dmabfu", code=65)
        doc = status(file, 0)
        if states(doc) != {"pair": "next", "reboot": "waiting", "pool": "waiting", "cluster": "waiting"}:
            fail(f"a new plan: {states(doc)}")
        fleet = Fleet(top)
        for node in (1, 2):
            fleet.bundle(f"{node}b.tar.zst", node, 1)
            fleet.bundle(f"{node}a.tar.zst", node, 1, version="570.86.16")
            fleet.bundle(f"{node}r.tar.zst", node, 2, version="570.86.16")
        pair = {"before": ["1b.tar.zst", "2b.tar.zst"], "after": ["1a.tar.zst", "2a.tar.zst"]}
        fill(file, pair=pair)
        doc = status(file, None)
        whole = [b for b in doc["bundles"] if b["error"]]
        if whole or any(b["flavour"] != "open" for b in doc["bundles"]):
            fail(f"bundles: {doc['bundles']}")
        good = states(doc)["pair"]
        if good != "done":
            fail(f"pair: {doc['steps'][0]}")
        reboot = {"after": ["1r.tar.zst", "2r.tar.zst"]}
        fill(file, pair=pair, reboot=reboot)
        if states(status(file, 0))["reboot"] != "done":
            fail(f"reboot: {status(file, 0)['steps']}")
        fill(file, pair=pair, reboot={"after": pair["after"]})
        doc = status(file, 1)
        if states(doc)["reboot"] != "stopped" or "was not rebooted" not in doc["steps"][1]["why"]:
            fail(f"no reboot: {doc['steps'][1]}")
        fill(file, pair=pair, pool={"nodes": 1, "before": "1b.tar.zst", "after": "1a.tar.zst"})
        if states(status(file, 1))["pool"] != "skipped":
            fail("a step was skipped")
        # unlike nodes
        fleet.bundle("2p.tar.zst", 2, 1, flavour=CLOSED, version="570.86.16")
        fill(file, pair={**pair, "after": ["1a.tar.zst", "2p.tar.zst"]})
        if "mixed module flavour" not in status(file, 1)["steps"][0]["why"]:
            fail(f"mixed flavours go on: {status(file, 1)}")
        fleet.bundle("8b.tar.zst", 8, 1, shape="good8")
        fleet.bundle("8a.tar.zst", 8, 1, shape="good8", version="570.86.16")
        fill(file, pair={"before": ["1b.tar.zst", "8b.tar.zst"], "after": ["1a.tar.zst", "8a.tar.zst"]})
        if "mixed topology class" not in status(file, 1)["steps"][0]["why"]:
            fail("mixed topology classes go on")
        # the whole way, then back
        cluster = {"nodes": 2, **pair}
        fill(file, pair=pair, reboot=reboot, pool={"nodes": 1, "before": "1b.tar.zst", "after": "1a.tar.zst"}, cluster=cluster)
        doc = status(file, 0)
        if set(states(doc).values()) != {"done"} or "proven on the cluster" not in doc["sentence"]:
            fail(f"the whole way: {doc['steps']} {doc['sentence']}")
        fill(file, pair=pair, rollback={"change": "1a.tar.zst", "after": "1b.tar.zst"})
        if "the baseline is there again" not in status(file, 0)["sentence"]:
            fail("rollback")
        fill(file, pair=pair, rollback={"change": "1a.tar.zst"})
        if states(status(file, 2))["rollback"] != "unknown":
            fail("half of a rollback is taken for whole")
        # damaged, missing, no verdict
        data = bytearray((top / "2a.tar.zst").read_bytes())
        data[len(data) // 2] ^= 0x40
        (top / "damaged.tar.zst").write_bytes(data)
        run("capture", "--replay", fleet.made["good2"], "-o", top / "capture.tar.zst", code=0)
        for bad, words in {"damaged.tar.zst": "cannot be used", "none.tar.zst": "absent", "capture.tar.zst": "no verdict"}.items():
            fill(file, pair={**pair, "after": ["1a.tar.zst", bad]})
            doc = status(file, 1)
            if states(doc)["pair"] != "stopped" or words not in doc["steps"][0]["why"]:
                fail(f"{bad}: {doc['steps'][0]}")
        file.write_text("[rollout]\nfrom = a\n")
        if run("rollout", "status", file, code=65).stderr.count("\n") != 1:
            fail("a file that cannot be read")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
