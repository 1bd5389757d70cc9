#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench and prove between nodes in network namespaces, on the software device: each start, each pattern, one
bundle of all nodes, and what they come to when somebody is wrong, dies, or is told to stop.

The judges are the kernel (its counters of what crossed the bridge; /proc: who lives; /tmp: what was left), each
node's own host name and address, the definition of each pattern, and json, tar and 'bundle verify' of what was written.

usage: bench.py PEERPATH PART
"""
import itertools
import json
import os
import re
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import nodes
from nodes import LIMIT, expect, faults, finish, until

PEERPATH, PART = os.path.abspath(sys.argv[1]), sys.argv[2]
TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 18516
SHORT = ["--size", "4K,64K", "--duration", "10ms", "--repeats", "2", "--iters", "20"]
FEW = [*SHORT, "--rungs", "tcp,host,dmabuf", "--measure", "bandwidth"]
LONG = ["--size", "64K", "--duration", "2s", "--repeats", "6", "--rungs", "host", "--measure", "bandwidth"]
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))  # no made /sys there: nobody knows a device's interface
WIRE = {"PEERPATH_SOFT": "name=wire0,netdev=eth0,same-host=no"}
def said(text):
    """Lines that tell what went wrong, without those that tell how far it is."""
    return [line for line in text.splitlines()
            if not line.startswith(("listening at port", "a run begins, of", "waiting for", "the run has ended"))]


def left():
    return sorted(path.name for path in pathlib.Path("/tmp").glob("peerpath-*"))


def tidy(what, began=None):
    expect(until(lambda: not nodes.named("peerpath")), f"{what}: left {nodes.named('peerpath')}")
    for pid in nodes.named("peerpath"):
        os.kill(pid, signal.SIGKILL)
    if began:
        print(f"{what}: nobody left after {time.monotonic() - began:.1f} s", flush=True)
    expect(not left(), f"{what}: left in /tmp: {left()}")
    for name in left():
        subprocess.run(["rm", "-rf", f"/tmp/{name}"], check=True)


def document(text, what):
    try:
        return json.loads(text)
    except json.JSONDecodeError as err:
        expect(False, f"{what}: no document: {err}: {text[-200:]!r}")
        return {}


def crossed(node):
    """Bytes that a node has sent into the bridge, as the kernel counted them there."""
    told = subprocess.run(["ip", "-s", "-j", "link", "show", node.outer], stdout=subprocess.PIPE, check=True)
    return json.loads(told.stdout)[0]["stats64"]["rx"]["bytes"]


def listen(node, *words, **variables):
    program = node.start([PEERPATH, "bench", "--simulate", "--listen", "--once", *words], **{"PEERPATH_TOKEN": TOKEN, **variables})
    line = program.stderr.readline()
    expect(line == f"listening at port {PORT}\n", f"no listener: {line}")
    return program


MEET = {
    "pairs": lambda n: set(itertools.combinations(n, 2)),
    "all-to-all": lambda n: set(itertools.combinations(n, 2)),
    "ring": lambda n: set(zip(n, n[1:] + n[:1])),
    "incast": lambda n: {(a, n[0]) for a in n[1:]},
}


def right(d, all_nodes, what, pattern="pairs", before=None):
    """All of a run that went well."""
    names = [n.name for n in all_nodes]
    expect(d.get("schema") == "peerpath.bench/1" and d.get("whole") and d.get("ended") is None and d.get("simulated"),
           f"{what}: {d.get('ended')}")
    expect(d.get("transfer", {}).get("simulation") == "passed", f"{what}: {json.dumps(d.get('transfer', {}))[:600]}")
    told = [(n["id"], n["host"], n["address"].split(":")[0]) for n in d.get("nodes", [])]
    expect(told == [(n.name, f"{n.name}.lab", "local" if n is all_nodes[0] else n.address) for n in all_nodes], f"{what}: nodes {told}")
    met = [tuple(names[e["node"]] for e in p["ends"]) for p in d.get("pairs", [])]
    expect(len(met) == len(set(met)) and set(met) == MEET[pattern](names), f"{what}: who met whom: {met}")
    sent = {n.name: 0 for n in all_nodes}
    for pair, (sender, _) in zip(d.get("pairs", []), met):
        for end in pair["ends"]:
            gid = f"::ffff:{all_nodes[end['node']].address}"
            netdev = None if SANITIZED else "eth0"
            expect(end["netdev"] == netdev and end["gid"] == gid, f"{what}: end {end['netdev']} {end['gid']}")
        skipped = {r["rung"] for r in pair["rungs"] if r["state"] == "skipped"}
        for cell in pair["cells"]:
            name = f"{what}: {pair['name']} {cell['rung']} {cell['measure']} {cell['size_bytes']}"
            expect(cell["state"] == ("skipped" if cell["rung"] in skipped else "run"), f"{name}: {cell['state']} {cell['why']}")
            expect(cell["wrong_bytes"] == 0, f"{name}: {cell['wrong_bytes']} wrong")
            if cell["state"] == "run":
                expect(cell["checked_bytes"] > 0 and len(cell[("samples_us", "samples_mb_per_s")[cell["measure"] == "bandwidth"]]) == d["repeats"],
                       f"{name}: {cell}")
                sent[sender] += cell["moved_bytes"] if cell["measure"] == "bandwidth" else 0
        expect({"tcp", "host", "dmabuf"} <= {c["rung"] for c in pair["cells"] if c["state"] == "run"}, f"{what}: ways of {pair['name']}")
    for node in all_nodes if before else []:
        moved = crossed(node) - before[node.name]
        expect(moved >= sent[node.name] > 0 or not sent[node.name], f"{what}: {node.name} sent {sent[node.name]}, {moved} crossed the bridge")


def well(what, all_nodes, coordinator, others, **more):
    status, out, err = finish(coordinator)
    expect(status == 0 and not said(err), f"{what}: {status} {err[-600:]}")
    right(document(out, what), all_nodes, what, **more)
    for other in others:
        status, out, err = finish(other)
        expect(status == 0 and not out and not said(err), f"{what}: node {status} {out[:100]} {err[-300:]}")
    tidy(what)


def pattern(all_nodes):
    """A token in a file, one pattern; the incast and the ring on devices that the user described."""
    before = {n.name: crossed(n) for n in all_nodes}
    soft = WIRE if PART in ("incast", "ring") else {}
    path = pathlib.Path("/tmp/token")
    path.write_text(f"{TOKEN}\n", encoding="ascii")
    path.chmod(0o600)
    words = ["--simulate", "--token-file", str(path)]
    others = [n.start([PEERPATH, "bench", "--listen", "--once", *words], **soft) for n in all_nodes[1:]]
    first = all_nodes[0].start([PEERPATH, "bench", *(n.address for n in all_nodes[1:]), *words, "-j", "--pattern", PART, *FEW], **soft)
    lines = b"".join(p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"))
    expect(TOKEN.encode() not in lines, "the token is on a command line")
    well(PART, all_nodes, first, others, pattern=PART, before=before)


def slurm(rank, all_nodes):
    count = str(len(all_nodes))
    listed = f"{nodes.NET}.[1-{count}]"
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": count, "SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_NODES": count, "SLURM_LOCALID": "0", "SLURM_JOB_ID": "17", "SLURM_STEP_NODELIST": listed,
            "SLURM_JOB_NODELIST": listed, "SLURM_STEP_LAUNCHER_PORT": "41000"}


def own(rank, all_nodes):
    return {"PEERPATH_RANK": str(rank), "PEERPATH_SIZE": str(len(all_nodes)), "PEERPATH_COORDINATOR": all_nodes[0].address,
            "PEERPATH_TOKEN": TOKEN}


def part_launched(all_nodes):
    """As a launcher does it: the same command everywhere."""
    three = all_nodes[:3]
    for variables in (slurm, own):
        before = {n.name: crossed(n) for n in three}
        command = [PEERPATH, "bench", "--simulate", "-j", "--pattern", "ring", *FEW]
        ranks = [n.start(command, **variables(rank, three)) for rank, n in enumerate(three)]
        well(f"ranks by {variables.__name__}", three, ranks[0], ranks[1:], pattern="ring", before=before)


def run(*words):
    done = subprocess.run([PEERPATH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr


def bundle(path, ids, what):
    """One bundle that verifies, with a bundle of each node that does so too and is the node's."""
    status, _, err = run("bundle", "verify", path)
    expect(status == 0, f"{what}: verify {status} {err}")
    with tempfile.TemporaryDirectory() as where:
        subprocess.run(["tar", "--zstd", "-xf", path, "-C", where], check=True)
        found = {p.parent.name: p for p in pathlib.Path(where).glob("**/nodes/*/capture.tar.zst")}
        expect(sorted(found) == sorted(ids), f"{what}: nodes {sorted(found)}")
        for name, capture in found.items():
            status, _, err = run("bundle", "verify", str(capture))
            expect(status == 0, f"{what}: verify {name} {status} {err}")
            status, out, err = run("bundle", "show", str(capture), "-j")
            expect(status == 0 and document(out, name).get("host") == f"{name}.lab", f"{what}: show {name} {status} {err} {out[:300]}")
            status, out, err = run("identity", "--replay", str(capture), "-j")
            told = document(out, name)
            expect(status == 0 and told.get("schema") == "peerpath.identity/1" and not told.get("simulated"), f"{what}: replay {name} {status} {err}")
        held = [document(p.read_text(encoding="utf-8"), what) for p in pathlib.Path(where).glob("**/bench.json")]
        expect(len(held) == 1 and [n["id"] for n in held[0]["nodes"]] == ids, f"{what}: bench.json")


PROVE = ["prove", "--simulate", "-j", "--size", "4K", "--duration", "10ms", "--repeats", "2"]


def part_prove(all_nodes):
    three = all_nodes[:3]
    others = [listen(n) for n in three[1:]]
    first = three[0].start([PEERPATH, *PROVE, "--peer", "10.77.0.2", "--peer", "10.77.0.3", "-o", "/tmp/x.tar.zst"], PEERPATH_TOKEN=TOKEN)
    status, out, err = finish(first)
    d = document(out, "prove")
    expect(status == 0 and d.get("simulation") == "passed" and d.get("complete") is True, f"prove: {status} {err} {out[-300:]}")
    memory = d.get("memory", {})
    expect(memory.get("whole") and len(memory.get("pairs", [])) == 3, f"prove: {memory.get('ended')}")
    expect(all(c["wrong_bytes"] == 0 for p in memory.get("pairs", []) for c in p["cells"]), "prove: wrong bytes")
    # nodes of different network namespaces: nothing but the wire is between them
    links = {tuple(r["link"]) for p in memory.get("pairs", []) for r in p["rungs"] if r["state"] == "run" and r["rung"] != "tcp"}
    expect(links == {("wire", "wire")}, f"prove: links {links}")
    for other in others:
        status, out, err = finish(other)
        expect(status == 0 and not out, f"prove: node {status} {err}")
    tidy("prove")
    bundle("/tmp/x.tar.zst", [n.name for n in three], "prove")


def refuses(what, node, words, status, *parts, token=TOKEN, lines=1, **soft):
    """One line with cause and what to do, in time; and the same of prove, which still gives its verdicts."""
    began = time.monotonic()
    got, out, err = finish(node.start([PEERPATH, "bench", "--simulate", "-j", *words], PEERPATH_TOKEN=token, **soft))
    told = said(err)
    expect(got == status and len(told) == lines, f"{what}: {got} {err} {out[:200]}")
    # Who asks for JSON gets a document, but for a command that is none.
    d = document(out, what) if status == 2 else {}
    expect(bool(out) == (status == 2) and d.get("whole", False) is False and (d.get("ended") or "x") in " ".join([*told, "x"]) and
           d.get("verdict", "unknown") == "unknown" and not d.get("pairs"), f"{what}: {out[:300]}")
    for part in parts:
        expect(part in " ".join(told), f"{what}: {told} lacks {part}")
    print(f"{what}: {told} [{time.monotonic() - began:.1f} s]", flush=True)
    tidy_but_listeners(what)


def tidy_but_listeners(what):
    """A made /sys is each listener's own."""
    expect(until(lambda: len([n for n in left() if "simulation" in n]) == len(listeners), 10), f"{what}: left {left()}")
    expect(len(left()) == len(listeners), f"{what}: left {left()}")


listeners = []

VERSIONS = """
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("up", flush=True)
while True:
    c = s.accept()[0]
    c.sendall(b"peerpath" + bytes([0, 0, 0, 99]) + bytes(4) + bytes(32)); c.recv(99); c.close()
"""


def part_refused(all_nodes):
    one, two, three, _ = all_nodes
    refuses("no such name", one, ["no-such-host.invalid"], 2, "no-such-host.invalid")
    refuses("no token", one, [two.address], 64, "at least 8", token="")
    refuses("a short token", one, [two.address], 64, token="abc")
    refuses("no such device description", one, [two.address], 65, "PEERPATH_SOFT", PEERPATH_SOFT="name=a,nonsense=1")
    refuses("no such interface", one, [two.address], 65, "eth7", PEERPATH_SOFT="name=a,netdev=eth7")

    server = three.start([sys.executable, "-c", VERSIONS, three.address, str(PORT)])
    server.stdout.readline()
    refuses("another version", one, [three.address], 2, "version 99", three.address)
    server.kill()
    server.wait()

    listeners.append(two.start([PEERPATH, "bench", "--simulate", "--listen"], PEERPATH_TOKEN=TOKEN))
    listeners[0].stderr.readline()
    refuses("another token", one, [two.address], 2, "another token", two.address, token="another-one-that-is-as-long")
    line = listeners[0].stderr.readline()
    expect("another token" in line and one.address in line, f"the listener says so too: {line}")
    refuses("no such hca", one, [two.address, "-d", "mlx5_7"], 2, "mlx5_7")
    told = listeners[0].stderr.readline()
    expect("a run begins" in told, f"the listener: {told}")

    # prove says as much, and what the other gates found; the bundle holds it.
    for what, words, part in (("no such name", ["--peer", "no-such-host.invalid"], "no-such-host.invalid"),
                              ("another token", ["--peer", two.address], "another token")):
        status, out, err = finish(one.start([PEERPATH, *PROVE, *words, "-o", "/tmp/y.tar.zst", "--force"],
                                            PEERPATH_TOKEN="another-one-that-is-as-long"))
        d = document(out, what)
        expect(status == 2 and len(said(err)) == 1 and part in err, f"prove, {what}: {status} {err}")
        expect(len(d.get("gates", [])) == 5 and d.get("simulation") == "not run" and d.get("bundle") == "/tmp/y.tar.zst",
               f"prove, {what}: {out[:300]}")
        expect(part in d.get("not_measured", ""), f"prove, {what}: the document says why: {d.get('not_measured')}")
        expect(run("bundle", "verify", "/tmp/y.tar.zst")[0] == 0, f"prove, {what}: bundle")
        tidy_but_listeners(f"prove, {what}")

    os.kill(listeners[0].pid, signal.SIGTERM)
    status, _, err = finish(listeners[0])
    expect(status == 130, f"listener: {status} {err}")
    tidy("refused")


def running(three, *words):
    """A run of three nodes that moves memory."""
    others = [listen(n) for n in three[1:]]
    before = {n.name: crossed(n) for n in three}
    first = three[0].start([PEERPATH, "bench", *(n.address for n in three[1:]), "--simulate", "-j", *LONG, *words], PEERPATH_TOKEN=TOKEN)
    expect(until(lambda: sum(crossed(n) - before[n.name] for n in three) > 4 << 20), "nothing crosses the bridge")
    return first, others


def cut_short(what, began, first, others, ended, status, of_others):
    got, out, err = finish(first)
    took = time.monotonic() - began
    d = document(out, what)
    print(f"{what}: {got} {said(err)} {d.get('ended')} [{took:.1f} s]", flush=True)
    expect(got == status and len(said(err)) <= 1, f"{what}: {got} {err[-300:]}")
    expect(d.get("whole") is False and ended in (d.get("ended") or ""), f"{what}: ended {d.get('ended')}")
    expect(d.get("transfer", {}).get("simulation") == "failed", f"{what}: {d.get('transfer', {}).get('simulation')}")
    for other, (wanted, part) in zip(others, of_others):
        got, out, err = finish(other)
        print(f"{what}: node {got} {said(err)}", flush=True)
        expect(got == wanted and not out and part in err, f"{what}: node {got} {err[-300:]}")
    tidy(what, began)


def part_interrupted(all_nodes):
    three = all_nodes[:3]
    first, others = running(three)
    began = time.monotonic()
    os.kill(first.pid, signal.SIGINT)
    cut_short("Ctrl-C on the coordinator", began, first, others, "interrupted", 130, [(2, "the coordinator was interrupted")] * 2)

    # By a terminal, where all of the group are told; and by its number.
    for number, stop in ((0, lambda pid: os.killpg(pid, signal.SIGINT)), (1, lambda pid: os.kill(pid, signal.SIGTERM))):
        first, others = running(three)
        began = time.monotonic()
        stop(others[number].pid)
        expected = [(0, "")] * 2
        expected[number] = (130, "interrupted")
        cut_short("Ctrl-C on a node", began, first, others, f"n{number + 2}", 1, expected)

    # While it has no part: n1 and n2 are measured, or n1 and n3.
    first, others = running(three, "--pattern", "ring", "--duration", "500ms")
    began = time.monotonic()
    os.kill(others[1].pid, signal.SIGINT)
    cut_short("Ctrl-C on a node that rests", began, first, others, "n3", 1, [(0, ""), (130, "interrupted")])

    # Before anything is measured: while nobody listens, and at any moment of the start.
    first = three[0].start([PEERPATH, "bench", three[1].address, "--simulate", "-j"], PEERPATH_TOKEN=TOKEN)
    time.sleep(1)
    os.kill(first.pid, signal.SIGINT)
    status, out, err = finish(first)
    expect(status == 130 and len(said(err)) == 1, f"nobody listens, Ctrl-C: {status} {err}")
    expect("interrupted" in document(out, "nobody listens, Ctrl-C").get("ended", ""), f"nobody listens, Ctrl-C: {out[:200]}")
    for verb in ("bench", "prove"):
        for ms in (0, 5, 15, 30, 60, 120, 250, 500):
            words = [PEERPATH, verb, "--simulate", "-j", *(SHORT[:6]), *(["--no-bundle"] if verb == "prove" else [])]
            program = three[0].start(words)
            time.sleep(ms / 1000)
            os.killpg(program.pid, (signal.SIGINT, signal.SIGTERM)[ms % 10 // 5])
            status, out, err = finish(program)
            # Killed by the signal where the program had not begun yet.
            expect(status in (130, -2, -15) and len(said(err)) <= 1, f"{verb} told after {ms} ms: {status} {err}")
            expect(not out or document(out, verb), f"{verb} told after {ms} ms: {out[:100]}")
            tidy(f"{verb} told after {ms} ms")


def killed(program, inner):
    """One of a node's two processes: that which waits for the other, or the other, which serves."""
    child = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text(encoding="ascii").split()[0])
    os.kill(child if inner else program.pid, signal.SIGKILL)


def part_died(all_nodes):
    three = all_nodes[:3]
    for inner in (False, True):
        what = f"a node's {'inner' if inner else 'outer'} process killed"
        first, others = running(three)
        began = time.monotonic()
        killed(others[1], inner)
        status, _, err = finish(others.pop())
        expect(status == (70 if inner else -9), f"{what}: {status} {err}")
        cut_short(what, began, first, others, "n3", 1, [(0, "")])

        what = f"the coordinator's {'inner' if inner else 'outer'} process killed"
        first, others = running(three)
        began = time.monotonic()
        killed(first, inner)
        status, out, err = finish(first)
        expect(status == (70 if inner else -9) and (not out or document(out, what)), f"{what}: {status} {err}")
        for other in others:
            status, out, err = finish(other)
            expect(status == 2 and len(said(err)) == 1 and ("the coordinator was interrupted" in err or "has ended its connection" in err), f"{what}: node {status} {err}")
        tidy(what, began)


def gathering(_, program):
    """A node makes its part of the bundle; False when that was over before it was seen."""
    while program.poll() is None:
        if any("record" in name for name in left()):
            return True
        time.sleep(0.002)
    return False


def moving(node, _):
    """Its memory crosses the bridge."""
    before = crossed(node)
    return until(lambda: crossed(node) - before > 4 << 20)


def proving(two, ready):
    """A run of prove, as far as @ready says."""
    words = [] if ready is gathering else ["--duration", "2s"]
    for _ in range(8):
        other = listen(two[1])
        first = two[0].start([PEERPATH, *PROVE, "--peer", two[1].address, "-o", "/tmp/z.tar.zst", "--force", *words], PEERPATH_TOKEN=TOKEN)
        if ready(two[0], first):
            break
        finish(first)
        finish(other)
    else:
        expect(False, f"{ready.__name__}: never met")
    pathlib.Path("/tmp/z.tar.zst").unlink(missing_ok=True)
    return first, other


def part_prove_cut(all_nodes):
    """prove that ends early: in its traffic, and while bundles are gathered."""
    two = all_nodes[:2]
    for what, ready, stop, status, of_other in (
            ("Ctrl-C on prove in its traffic", moving, None, 130, 2),
            ("Ctrl-C on prove while bundles are gathered", gathering, None, 130, 2),
            ("prove killed while bundles are gathered", gathering, signal.SIGKILL, -9, 2)):
        first, other = proving(two, ready)
        began = time.monotonic()
        if stop:
            os.kill(first.pid, stop)
        else:
            os.killpg(first.pid, signal.SIGINT)
        got, out, err = finish(first)
        expect(got == status and not out and len(said(err)) <= 1, f"{what}: {got} {err} {out[:200]}")
        expect(not os.path.exists("/tmp/z.tar.zst"), f"{what}: a bundle is left")
        got, out, err = finish(other)
        print(f"{what}: {got} {said(err)}", flush=True)
        expect(got == of_other and not out, f"{what}: node {got} {err}")
        tidy(what, began)

    # The node dies: what was measured is in the bundle all the same, with this node's own part.
    for what, ready in (("a node dies in prove's traffic", moving),
                        ("a node dies while bundles are gathered", gathering)):
        first, other = proving(two, ready)
        began = time.monotonic()
        os.kill(other.pid, signal.SIGKILL)
        finish(other)
        got, out, err = finish(first)
        d = document(out, what)
        print(f"{what}: {got} {said(err)} {d.get('simulation')} {d.get('memory', {}).get('ended')}", flush=True)
        expect(got == (0 if "gathered" in what else 1), f"{what}: {got} {err}")
        expect(d.get("bundle") == "/tmp/z.tar.zst" and run("bundle", "verify", "/tmp/z.tar.zst")[0] == 0, f"{what}: bundle")
        held = subprocess.run(["tar", "--zstd", "-tf", "/tmp/z.tar.zst"], stdout=subprocess.PIPE, text=True, check=True).stdout
        expect("bench.json" in held and "nodes/n1/capture.tar.zst" in held, f"{what}: {held[-300:]}")
        # what was seen of its memory stays; the capture is what it cannot give any more
        there = "nodes/n2/capture.tar.zst" in held
        expect(there or len(said(err)) == 1 and "no bundle of node n2" in err, f"{what}: {err}")
        missing = [n["node"] for n in d.get("nodes_left_out", [])]
        expect(missing == ([] if there else ["n2"]) and d.get("complete") is there, f"{what}: {missing} {d.get('complete')}")
        expect(there or "nodes.errors" in held, f"{what}: {held[-300:]}")
        tidy(what, began)
        os.unlink("/tmp/z.tar.zst")


def drop_data(node):
    """A firewall that lets the control channel and TCP through, and drops RoCE: nobody is told."""
    for words in (["add", "pref", "100", "lookup", "local"], ["del", "pref", "0"],
                  ["add", "pref", "10", "iif", "eth0", "ipproto", "udp", "dport", "4791", "blackhole"]):
        if node.run(["ip", "rule", *words]).returncode:
            nodes.skip("no policy routing by ports")


def part_firewall(all_nodes):
    two = all_nodes[:2]
    drop_data(two[1])
    other = listen(two[1])
    began = time.monotonic()
    first = two[0].start([PEERPATH, "bench", two[1].address, "--simulate", "-j", *FEW], PEERPATH_TOKEN=TOKEN)
    status, out, err = finish(first)
    d = document(out, "firewall")
    print(f"firewall: {status} {err} [{time.monotonic() - began:.1f} s]", flush=True)
    expect(status == 1 and d.get("whole") and d.get("transfer", {}).get("simulation") == "failed", f"firewall: {status} {err}")
    rungs = {r["rung"]: r for r in d["pairs"][0]["rungs"]}
    expect(rungs["tcp"]["state"] == "run" and rungs["host"]["state"] == "failed", f"firewall: {rungs}")
    expect(all(c["wrong_bytes"] == 0 for c in d["pairs"][0]["cells"]), "firewall: wrong bytes")
    why = rungs["host"]["why"]
    expect("did not answer" in why and "firewall (UDP 4791)" in why, f"firewall: {why}")
    rows = [r for r in d["transfer"]["rows"] if r["verdict"] == "fail"]
    expect(rows and all("fabric" in r["sentence"] and r["next"] for r in rows), f"firewall: {rows}")
    status, out, err = finish(other)
    expect(status == 0 and not out, f"firewall: node {status} {err}")
    tidy("firewall", began)


def part_vanished(all_nodes):
    three = all_nodes[:3]
    for number in (0, 1):
        what = f"the host n{number + 2} vanishes"
        first, others = running(three, "--pattern", "incast")
        began = time.monotonic()
        three[number + 1].cut()
        got = [(0, "")] * 2
        got[number] = (2, "does not answer")
        cut_short(what, began, first, others, f"n{number + 2}", 1, got)
        nodes.ip("link", "set", three[number + 1].outer, "master", "br0")

    # It has no part, and what runs now goes on for long: the run ends in the middle of it.
    what = "a host that rests vanishes"
    first, others = running(three, "--duration", "60s", "--repeats", "1")
    began = time.monotonic()
    three[2].cut()
    status, out, err = finish(first)
    d = document(out, what)
    print(f"{what}: {status} {said(err)} {d.get('ended')} [{time.monotonic() - began:.1f} s]", flush=True)
    # On a slow machine its agents may not be up yet.
    ended = re.search(r"n3 (was lost: node|gives no agent: .*) does not answer", d.get("ended") or "")
    expect(status == 1 and d.get("whole") is False and ended, f"{what}: {status} {d.get('ended')}")
    expect(not any(c["samples_mb_per_s"] for p in d["pairs"] for c in p["cells"]), f"{what}: the run went on")
    for other in others:
        finish(other)
    tidy(what, began)
    nodes.ip("link", "set", three[2].outer, "master", "br0")


def main():
    nodes.alone()
    if not pathlib.Path(PEERPATH).is_relative_to("/tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)
    part = globals().get(f"part_{PART.replace('-', '_')}", pattern)
    began = time.monotonic()
    part(nodes.make(4))
    print(f"{len(faults)} faults, {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
