#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What was wrong before the monitor looked for the first time: it says so all the same.

usage: monitor_start.py PEERPATH PROJECT-ROOT

gone      all RDMA devices, after a reboot: with a baseline, in a service, and by the database alone
counters  those of a port, which the baseline had
calls     a library that is not there calls nothing
wiring    a port is down, a GPU is lost
quiet     logs that say nothing
reader    a user who may only read
policy    words that forbid nothing, and names that nothing has
words     options that could only be for nothing
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PEERPATH, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
FAULTS = []
PORTS = {"0000:19:00.0 port 1", "0000:2b:00.0 port 1"}


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def monitor(*words, **more):
    return subprocess.run([PEERPATH, "monitor", *map(str, words)], capture_output=True, text=True, timeout=120, **more)


class World:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.clean, self.base = self.top / "clean", self.top / "base.tar.zst"
        subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", "good2", "--faults", "roce", self.clean], check=True, capture_output=True)
        subprocess.run([PEERPATH, "prove", "--replay", self.clean, "-o", self.base], check=True, capture_output=True)

    def node(self, change):
        node = self.top / "node"
        shutil.rmtree(node, ignore_errors=True)
        shutil.copytree(self.clean, node, symlinks=True)
        change(node)
        return node

    def once(self, node, *more):
        done = monitor("--replay", node, "--baseline", self.base, "--once", "--json", *more)
        need(done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}")
        return done.returncode, json.loads(done.stdout)


def opened(doc, kind):
    return {s["object"]: s for s in doc["signals"] if s["kind"] == kind and not s["ended"]}


def no_folder(node):
    shutil.rmtree(node / "raw/sys/class/infiniband")


def no_devices(node):
    for link in (node / "raw/sys/class/infiniband").iterdir():
        link.unlink()


def gone(w):
    for change in (no_folder, no_devices):
        code, doc = w.once(w.node(change))
        found = opened(doc, "link-state")
        need(code == 1 and set(found) == PORTS, f"{change.__name__}: exit {code}, open {set(found)}")
        for object, s in found.items():
            need(s["before"] == "ACTIVE, LinkUp" and s["after"] == "gone", f"{object}: {s}")
            need({"link-state": "gone"} == {k["kind"]: k["value"] for k in doc["looks"] if k["kind"] == "link-state" and k["object"] == object},
                 f"{object}: not among the looks")
    # A database that knew both, at a restart without a baseline.
    state = w.top / "m.db"
    need(monitor("--replay", w.clean, "--state", state, "--once").returncode == 0, "the first look")
    done = monitor("--replay", w.node(no_folder), "--state", state, "--period", "50ms", "--for", "300ms")
    for port in PORTS:
        need(done.stdout.count(f"begins: link-state of {port} is gone") == 1, f"after a restart: {done.stdout}")
    need(done.returncode == 1, f"after a restart: exit {done.returncode}")
    done = monitor("--replay", w.node(no_folder), "--state", state, "--period", "50ms", "--for", "200ms")
    need("link-state" not in done.stdout, f"told again: {done.stdout}")


def counters(w):
    def removed(node):
        for folder in list((node / "raw/sys/devices").rglob("hw_counters")) + list((node / "raw/sys/devices").rglob("ports/1/counters")):
            shutil.rmtree(folder)

    def garbage(node):
        for path in (node / "raw/sys/devices").rglob("hw_counters/*"):
            path.write_text("garbage\n")

    for change, kinds in ((removed, {"retransmits", "out-of-sequence", "port-errors", "discards", "cnps"}), (garbage, {"retransmits", "out-of-sequence", "cnps"})):
        _, doc = w.once(w.node(change))
        found = opened(doc, "watcher")
        need(kinds <= set(found), f"{change.__name__}: {set(found)}")
        need({s["level"] for s in found.values()} == {"info"}, f"{change.__name__}: {found}")
    _, doc = w.once(w.clean)
    need(not opened(doc, "watcher"), f"nothing is lost: {opened(doc, 'watcher')}")


def calls(w):
    def missing(node):
        for name, library in (("cuda", "libcuda.so.1"), ("nvml", "libnvidia-ml.so.1")):
            text = {"schema": "peerpath.answer/1", "name": name, "outcome": "failed", "detail": f"{library} not found", "took_ms": 0, "data": None}
            (node / f"answers/{name}.json").write_text(json.dumps(text))

    _, doc = w.once(w.node(missing))
    looks = {k["object"]: k for k in doc["looks"] if k["kind"] == "hung-call"}
    need(looks["cuda"]["unknown"] == "libcuda.so.1 not found" and looks["nvml"]["unknown"] == "libnvidia-ml.so.1 not found", f"nothing was called: {looks}")
    need(looks["verbs"]["value"] == "returns", f"verbs: {looks}")
    need(not opened(doc, "hung-call") and "hung-call" in opened(doc, "watcher"), f"no call is told as one that hangs: {doc['signals']}")


def wiring(w):
    """A port that is down is no other wiring; of a GPU that is lost its name is told."""
    def down(node):
        for name, text in (("state", "1: DOWN"), ("phys_state", "3: Disabled")):
            next((node / "raw/sys/devices").rglob(f"0000:19:00.0/infiniband/*/ports/1/{name}")).write_text(text + "\n")

    def lost(node):
        (node / "raw/sys/bus/pci/devices/0000:2a:00.0").unlink()
        for path in [p for p in (node / "raw/sys/devices").rglob("0000:2a:00.0")]:
            shutil.rmtree(path)
        for name in ("nvml", "cuda"):
            answer = node / f"answers/{name}.json"
            text = json.loads(answer.read_text())
            for key in ("gpus", "devices"):
                if key in text["data"]:
                    text["data"][key] = [g for g in text["data"][key] if "2a:00.0" not in json.dumps(g).lower()]
            answer.write_text(json.dumps(text))

    _, doc = w.once(w.node(down))
    need(set(opened(doc, "link-state")) == {"0000:19:00.0 port 1"} and not opened(doc, "topology-class"), f"a port that is down: {opened(doc, 'topology-class')}")
    _, doc = w.once(w.node(lost))
    found = opened(doc, "topology-class")
    need(set(found) == {"0000:2a:00.0", "node"} and found["0000:2a:00.0"]["after"] == "gone", f"a lost GPU: {found}")
    need("gpus: 1, hcas: 2" in found["node"]["after"] and "gpus: 2, hcas: 2" in found["node"]["before"], f"a lost GPU: {found}")


def quiet(w):
    """A log that is followed and says nothing is another thing than one that nobody follows."""
    text = w.top / "x.prom"

    def seen(*more):
        _, doc = w.once(w.clean, "--textfile", text, *more)
        rows = {k["kind"]: k for k in doc["looks"] if k["kind"] in ("nccl-errors", "kernel-log")}
        counts = {name: int(n) for name, n in re.findall(r'^(peerpath_watched(?:_unknown)?\{signal="nccl-errors"\}) (\d+)$', text.read_text(), re.M)}
        return rows, [counts.get(f'peerpath_watched{u}{{signal="nccl-errors"}}') for u in ("", "_unknown")]

    rows, counts = seen()
    need("nccl-errors" not in rows and counts == [None, None], f"no --log: {rows}, {counts}")
    need(rows["kernel-log"]["value"] == "is followed" and rows["kernel-log"]["number"] is None, f"the kernel's log: {rows}")
    rows, counts = seen("--log", w.top / "jobs*.log")
    need("is there" in rows["nccl-errors"]["unknown"] and counts == [1, 1], f"--log that matches nothing: {rows}, {counts}")
    for name in ("jobs1.log", "jobs2.log"):
        (w.top / name).write_text("quiet\n")
    rows, counts = seen("--log", w.top / "jobs*.log")
    need(rows["nccl-errors"]["value"] == "2 files are followed" and counts == [1, 0], f"two quiet logs: {rows}, {counts}")


def reader(w):
    """Who may read the file and no more: it is read while nobody writes it, else one line says what is needed."""
    if os.geteuid():
        print("reader: needs root, to be nobody")
        return
    os.chmod(w.top, 0o755)
    folder = w.top / "kept"
    folder.mkdir(mode=0o755)
    state = folder / "m.db"
    program = w.top / "peerpath"
    shutil.copy(PEERPATH, program)
    need(monitor("--replay", w.clean, "--state", state, "--once").returncode == 0, "the first look")
    state.chmod(0o644)

    def shown():
        return subprocess.run([program, "monitor", "--show", "--state", state], capture_output=True, text=True, timeout=60, user="nobody", group="nogroup", extra_groups=[])

    done = shown()
    need(done.returncode == 0 and "Looks" in done.stdout, f"nobody reads: {done}")
    # As a writer leaves it that was killed: the log may hold more than the file.
    state.with_name("m.db-wal").write_bytes(b"x" * 4096)
    done = shown()
    need(done.returncode == 65 and "must be able to write to its folder" in done.stderr and done.stderr.count("\n") == 1, f"nobody reads what was left: {done}")


def policy(w):
    """A word that `check` refuses is refused here; a name that nothing has is said once."""
    path = w.top / "policy.conf"
    path.write_text("[forbid]\niommu-passthru = no\n[monitor]\nlink-state = alarm\n")
    check = subprocess.run([PEERPATH, "check", "--replay", w.clean, "--policy", path], capture_output=True, text=True, timeout=60)
    done = monitor("--replay", w.clean, "--once", "--policy", path)
    line = check.stderr.split(": ", 1)[1]
    need(check.returncode == done.returncode == 65 and done.stderr.split(": ", 1)[1] == line and "did you mean" in line, f"[forbid]: {check}, {done}")
    path.write_text("[forbid]\niommu-passthrough = no\n[monitor]\nlink-state/mlx5_99 = alarm\nlink-state/0000:19:00.0 port 1 = alarm\n")
    done = monitor("--replay", w.clean, "--policy", path, "--period", "50ms", "--for", "300ms")
    said = [line for line in done.stderr.splitlines() if "the policy names" in line]
    need(done.returncode == 0 and len(said) == 1 and "link-state/mlx5_99" in said[0], f"an object that is not there: {done}")


def words(w):
    """What could only be for nothing is refused at the start, in one line."""
    there = ["--replay", w.clean, "--once"]
    for options, code, text in ((["--textfile", "/nonexistent/x.prom"], 70, "--textfile '/nonexistent/x.prom' cannot be written"),
                                (["--slo", "ftp://x"], 64, "http://127.0.0.1"), (["--slo", "http://192.0.2.1/metrics"], 64, "--slo: "),
                                (["--slo", "relative.prom"], 64, "begins with '/'"), (["--slo", "#tokens"], 64, "names no file")):
        done = monitor(*there, *options)
        need(done.returncode == code and text in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, f"{options}: {done}")
    for options in (["--once"], ["--replay", w.clean], ["--baseline", w.base], ["--events", "x"], ["--log", "x"], ["--slo", "/x"], ["--for", "1s"]):
        done = monitor("--show", "--state", w.top / "m.db", *options)
        need(done.returncode == 64 and f"takes no {options[0]}" in done.stderr, f"--show {options}: {done}")
    process = subprocess.Popen([PEERPATH, "monitor", "--replay", w.clean, "--listen", "0", "--for", "300ms"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = process.communicate(timeout=60)[1]
    need(re.search(r"metrics at port [1-9]\d*$", said, re.M), f"--listen 0: {said}")
    # Relative to where it is started; what is not there yet is said so, and found when it comes.
    for name in ("figures.prom", "./figures.prom", f"../{w.top.name}/figures.prom"):
        where = w.top / "figures.prom"
        where.unlink(missing_ok=True)
        for text in (None, "tokens_per_second 12\n"):
            if text:
                where.write_text(text)
            done = monitor("--slo", name, "--state", ":memory:", "--once", "--json", cwd=w.top)
            looks = [k for k in json.loads(done.stdout)["looks"] if k["kind"] == "application-slo"]
            need(len(looks) == 1 and (looks[0]["number"] == 12 if text else looks[0]["unknown"] == f"{where}: absent"), f"--slo {name}: {looks}")
    shown = subprocess.run([PEERPATH, "monitor", "--help"], capture_output=True, text=True, timeout=60).stdout
    need("130" not in shown and "Ctrl-C" in shown, "--help: what Ctrl-C gives")


def main():
    with tempfile.TemporaryDirectory() as top:
        w = World(top)
        for part in (gone, counters, calls, wiring, quiet, reader, policy, words):
            part(w)
    sys.exit(1 if FAULTS else 0)


main()
