#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A change of the registration path from its baseline to its rollback, on the software device.

usage: change_end_to_end.py PEERPATH PROJECT-ROOT

Baseline: a workload that goes through host memory. Change: the same by DMA-BUF, simulated. The workload moves real
bytes over the device and prints its figure only when every one of them was compared and right; the figure itself
follows a list, as no clock of a test machine may decide. Then what must be refused, or said, when something is
planted: another kernel, another topology, a slower application, an unproven mechanism, a throttled run. Last, a
profile on a root of its own, applied and rolled back: every byte, and the same gates.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soft"))
import soft  # noqa: E402

PEERPATH, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
FILE = """[workload]
name = halves of a gradient
revision = 1
concurrency = 1
seed = 7
[run]
repeats = 5
timeout = 60s
[metric steps]
pattern = steps/s: ([0-9.]+)
direction = higher
margin = 5%
unit = steps/s
slo = 50
[metric cpu]
host = cpu-seconds
direction = lower
margin = 30
[change]
changed = path
"""
WORK = """import json, os, pathlib, subprocess, sys
way = os.environ["WAY"]
done = subprocess.run([sys.argv[1], "bench", "--simulate", "--rungs", way, "-s", "64K", "--measure", "bandwidth", "--repeats", "1",
                       "-D", "10ms", "-j"], capture_output=True, text=True,
                      env={k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"})
cells = [c for p in json.loads(done.stdout)["pairs"] for c in p["cells"] if c["rung"] == way and c["state"] == "run"]
moved = [c for c in cells if c["wrong_bytes"] == 0 and c["checked_bytes"] > 0]
if not moved or moved != cells:
    sys.exit(f"{way}: {done.stdout[-400:]}{done.stderr[-400:]}")
count = pathlib.Path("count")
n = int(count.read_text()) if count.exists() else 0
count.write_text(str(n + 1))
print("steps/s:", (100, 101, 99, 100, 100.5)[n % 5] * float(os.environ["FACTOR"]))
"""
PROVEN = {"path": "gdr", "mechanism": "dmabuf", "claim_gdr": "proven", "claim_mechanism": "proven", "why": None}
faults = []
# The test's build may name the folder of the held GPU there: it is met where it is asked for, only.
os.environ.pop("LD_LIBRARY_PATH", None)


def check(what, good):
    if not good:
        faults.append(str(what)[:1200])


def run(top, *argv, code, env=None, command=None):
    argv = [PEERPATH, *map(str, argv)] + (["--", *command] if command else [])
    done = subprocess.run(argv, cwd=top, capture_output=True, text=True, timeout=200, env={**os.environ, **(env or {})})
    if done.returncode != code:
        faults.append(f"{argv}: exit {done.returncode}, not {code}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return done


def canary(top, out, way, factor, *more, code=0, env=None):
    (top / "count").unlink(missing_ok=True)
    done = run(top, "canary", "-f", "c.ini", "-o", out, "-j", *more, code=code, command=[sys.executable, "-c", WORK, PEERPATH],
               env={"WAY": way, "FACTOR": str(factor), **(env or {})})
    return json.loads(done.stdout)


def compare(top, before, after, code):
    return json.loads(run(top, "compare", before, after, "-j", code=code).stdout)


def planted(top, document, name, **more):
    """The document of a machine whose wiring is known, with what is planted; as a person would get it from that machine."""
    d = json.loads(json.dumps(document))
    for node in d["nodes"]:
        node["topology_class"] = more.get("topology", "made-class")
        node["software"]["kernel.release"] = more.get("kernel", node["software"]["kernel.release"])
        node["simulated"] = more.get("simulated", True)
    d["simulated"] = more.get("simulated", True)
    if "path" in more:
        d["path"] = more["path"]
    path = top / name
    path.write_text(json.dumps(d))
    return path


def measured(top):
    """Both arms, as they are: simulated, by the witness of the device that carried them."""
    before, after = canary(top, "before.tar.zst", "staged", 1), canary(top, "after.tar.zst", "dmabuf", 1.2)
    for d in (before, after):
        check(d["runs"], d["simulated"] and len(d["runs"]) == 5 and not any(r["void"] for r in d["runs"]))
    check("figures", [r["values"]["steps"] for r in before["runs"]] == [100, 101, 99, 100, 100.5])
    check("cost", all(r["values"]["cpu"] > 0 for r in before["runs"]))
    run(top, "bundle", "verify", "before.tar.zst", code=0)
    return before, after


def said(top, before, after):
    a = planted(top, before, "a.json")
    c = compare(top, a, planted(top, after, "b.json"), 2)
    rows = {r["metric"]: r for r in c["metrics"]}
    check(rows, c["alike"] and rows["steps"]["change"] == "better" and abs(rows["steps"]["shift"] - 1.2) < 0.01)
    check(c["sentence"], c["sentence"].startswith("chain exercised in simulation: the service level is better, but the "
                                                  "mechanism is unproven"))
    # Nothing simulated is ever proven, whatever its document says of its path.
    c = compare(top, a, planted(top, after, "b.json", path=PROVEN), 2)
    check(c["sentence"], not c["mechanism_proven"] and c["sentence"].startswith("chain exercised in simulation"))
    # The same figures of hardware: the mechanism unproven, then proven.
    a = planted(top, before, "a.json", simulated=False)
    c = compare(top, a, planted(top, after, "b.json", simulated=False), 2)
    check(c["sentence"], c["sentence"].startswith("the service level is better, but the mechanism is unproven"))
    c = compare(top, a, planted(top, after, "proven.json", simulated=False, path=PROVEN), 0)
    check(c["sentence"], c["sentence"] == "mechanism proven, and the service level is better")
    # As slow as before: the mechanism alone.
    c = compare(top, a, planted(top, before, "b.json", simulated=False, path=PROVEN), 0)
    check(c["sentence"], "nothing that was measured gained from it" in c["sentence"])
    return a


def refused(top, a, after):
    """Unlike things, each named; what was declared is not."""
    for what, plant in (("kernel.release", {"kernel": "9.9.9"}), ("topology class", {"topology": "another-class"})):
        c = compare(top, a, planted(top, after, "b.json", simulated=False, path=PROVEN, **plant), 2)
        check(c["differences"], not c["alike"] and len(c["differences"]) == 1 and what in c["differences"][0])
        check(c["sentence"], c["sentence"] == "not compared: what differs was not declared" and not c["metrics"])
    page = run(top, "compare", a, "b.json", "--html", "refused.html", code=2)
    check("page", "another-class" in (top / "refused.html").read_text() and page.stdout)


def slower_and_throttled(top, a, before):
    slow = canary(top, "slow.tar.zst", "dmabuf", 0.8)
    c = compare(top, a, planted(top, slow, "b.json", simulated=False, path=PROVEN), 1)
    check(c["sentence"], c["verdict"] == "fail" and c["sentence"] == "worse after the change" and "profile rollback" in c["next"])
    # A GPU that is held back (the NVML of tests/fake): no run counts, and nothing is compared with it.
    fake = pathlib.Path(PEERPATH).parents[2] / "tests/fake/nvml"
    held = canary(top, "held.tar.zst", "dmabuf", 1.2, "--repeats", "1", code=2, env={"LD_LIBRARY_PATH": str(fake)})
    check(held["runs"], "0000:9a:00.0 was held back" in (held["runs"][0]["void"] or ""))
    held["nodes"] = before["nodes"]
    c = compare(top, a, planted(top, held, "b.json", simulated=False, path=PROVEN), 2)
    check(c["sentence"], c["runs_after"] == 0 and c["void_after"] == 1 and "is not there in both arms" in c["sentence"])


def proved(top):
    """The whole chain with the workload in its fourth gate, kept, shown as a page, replayed."""
    (top / "count").unlink(missing_ok=True)
    done = run(top, "prove", "--simulate", "--canary", "c.ini", "--before", "before.tar.zst", "-s", "64K,1M", "--repeats", "2",
               "-D", "10ms", "-o", "proof.tar.zst", "-j", code=0, env={"WAY": "dmabuf", "FACTOR": "1"},
               command=[sys.executable, "-c", WORK, PEERPATH])
    d = json.loads(done.stdout)
    check(d["simulation"], d["simulation"] == "passed" and d["simulated"] and d["application"]["gate"]["simulated"])
    check("no gate passes by it", all(g["verdict"] != "pass" for g in d["gates"][1:]))
    run(top, "bundle", "html", "proof.tar.zst", "-o", "proof.html", code=0)
    page = (top / "proof.html").read_text()
    xml.etree.ElementTree.fromstring(page.split("\n", 1)[1])
    check("marked on every part", page.count('class="mark-sim"') >= 4)


def tree(root):
    """SHA-256 over every name, mode and byte of the root, but for the record of what was done."""
    h = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith("var"):
            continue
        h.update(f"{name} {path.lstat().st_mode} ".encode())
        h.update(os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"")
    return h.hexdigest()


def gates(top, root):
    """What the gates say of that root, times apart."""
    d = json.loads(run(top, "prove", "--root", root, "--no-bundle", "-j", code=2).stdout)
    return d["verdict"], [(g["gate"], g["verdict"], g["claim"], g["evidence"]) for g in d["gates"]]


def rolled_back(top):
    root = top / "root"
    for folder in ("etc/modprobe.d", "etc/modules-load.d", "etc/security/limits.d", "proc/sys/kernel", "var"):
        (root / folder).mkdir(parents=True)
    (root / "etc/nccl.conf").write_text("# ours\nNCCL_IB_HCA=mlx5\n")
    (root / "etc/modprobe.d/site.conf").write_text("options mlx5_core prof_sel=2\n")
    (root / "proc/sys/kernel/osrelease").write_text("6.8.0-made\n")
    run(top, "profile", "apply", "peermem-open", "--root", root, code=0)
    sha, said_before = tree(root), gates(top, root)
    run(top, "profile", "apply", "dmabuf", "--root", root, code=0)
    check("the change changed something", tree(root) != sha)
    gates(top, root)
    run(top, "profile", "rollback", "--root", root, code=0)
    check("every byte", tree(root) == sha)
    check("the same gates", gates(top, root) == said_before)
    d = json.loads(run(top, "profile", "list", "--root", root, "-j", code=0).stdout)
    check(d, d.get("in_effect") == "peermem-open")


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a workload that runs this program again meets its preloaded library: no sanitizer goes with that")
        sys.exit(77)
    soft.alone(needed=True)
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        (top / "c.ini").write_text(FILE)
        before, after = measured(top)
        a = said(top, before, after)
        refused(top, a, after)
        slower_and_throttled(top, a, before)
        proved(top)
        rolled_back(top)
    print("\n".join(faults) or "baseline, change, comparison, refusals, rollback")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
