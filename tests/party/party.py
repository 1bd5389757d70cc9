#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four nodes in network namespaces come together by each way, and go when they have to.

The judges are the kernel (/proc: who lives; routes and links: what a firewall or a dead host looks like)
and the node's own namespace (its host name, its address).

usage: party.py PARTY PART
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import nodes
from nodes import LIMIT, expect, faults, finish, until

PARTY, PART = sys.argv[1:3]
TOKEN = "0123456789abcdef0123456789abcdef"
PORT = 18516
def line_of(program, stream="stdout"):
    return getattr(program, stream).readline()


def last(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def nobody_left(what, began=None):
    began = began or time.monotonic()
    gone = until(lambda: not nodes.named("party"))
    expect(gone, f"{what}: left {nodes.named('party')}")
    print(f"{what}: nobody left after {time.monotonic() - began:.1f} s", flush=True)
    for pid in nodes.named("party"):
        os.kill(pid, signal.SIGKILL)


def right(text, all_nodes, what):
    """What the coordinator says of its nodes, against what they are."""
    found = json.loads(text)["nodes"]
    expect([f["id"] for f in found] == [n.name for n in all_nodes], f"{what}: ids {found}")
    for node, f in zip(all_nodes, found):
        expect(f["host"] == f"{node.name}.lab", f"{what}: {f}")
        expect(f["agent_host"] == f"{node.name}.lab", f"{what}: an agent on another host: {f}")
        expect(f["record"] == 3 << 20 and f["record_of"] == "b", f"{what}: record {f}")
        expect(f["address"] == "local" or f["address"].split(":")[0] == node.address, f"{what}: address {f}")
    return found


def listen(node, *words, token=TOKEN):
    program = node.start([PARTY, "listen", *words], PEERPATH_TOKEN=token)
    expect("listening at port" in line_of(program, "stderr"), "no listener")
    return program


def peers(all_nodes):
    return [word for node in all_nodes[1:] for word in ("--peer", node.address)]


def dialled(all_nodes, *words, once=True):
    listeners = [listen(node, *(["--once"] if once else [])) for node in all_nodes[1:]]
    return all_nodes[0].start([PARTY, "coordinate", *peers(all_nodes), *words], PEERPATH_TOKEN=TOKEN), listeners


def slurm(rank, all_nodes):
    count = str(len(all_nodes))
    listed = f"{nodes.NET}.[1-{count}]"
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": count, "SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_NODES": count, "SLURM_LOCALID": "0", "SLURM_JOB_ID": "17", "SLURM_STEP_NODELIST": listed,
            "SLURM_JOB_NODELIST": listed, "SLURM_STEP_LAUNCHER_PORT": "41000"}


def launched(all_nodes, *words, variables=slurm):
    """Rank 0 last: the others wait for it."""
    ranks = [node.start([PARTY, "rank", *words], **variables(rank + 1, all_nodes))
             for rank, node in enumerate(all_nodes[1:])]
    return all_nodes[0].start([PARTY, "rank", *words], **variables(0, all_nodes)), ranks


def all_well(what, coordinator, others, all_nodes):
    status, out, err = finish(coordinator)
    expect(status == 0, f"{what}: coordinator {status}: {err}")
    if status == 0:
        right(out.splitlines()[0], all_nodes, what)
    for other in others:
        status, _, err = finish(other)
        expect(status == 0, f"{what}: node {status}: {err}")
    nobody_left(what)


def part_ways(all_nodes):
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where, "token")
        path.write_text(f"{TOKEN}\n", encoding="ascii")
        path.chmod(0o600)
        listeners = [node.start([PARTY, "listen", "--once"], PEERPATH_TOKEN_FILE=str(path)) for node in all_nodes[1:]]
        coordinator = all_nodes[0].start([PARTY, "coordinate", *peers(all_nodes)], PEERPATH_TOKEN_FILE=str(path))
        lines = b"".join(p.read_bytes() for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"))
        expect(TOKEN.encode() not in lines, "the token is on a command line")
        all_well("--peer and a token file", coordinator, listeners, all_nodes)

    all_well("Slurm's variables", *launched(all_nodes), all_nodes)

    def own(rank, many):
        return {"PEERPATH_RANK": str(rank), "PEERPATH_SIZE": str(len(many)), "PEERPATH_COORDINATOR": many[0].address,
                "PEERPATH_TOKEN": TOKEN}

    all_well("PEERPATH_RANK, a token", *launched(all_nodes, variables=own), all_nodes)

    def own_port(rank, many):
        return {**own(rank, many), "PEERPATH_COORDINATOR": f"{many[0].address}:7777"}

    all_well("PEERPATH_COORDINATOR with a port", *launched(all_nodes, variables=own_port), all_nodes)

    # Two runs of one user on the same nodes at once: the second finds another port.
    def other_job(rank, many):
        return {**slurm(rank, many), "PEERPATH_TOKEN": "another-token-of-the-same-job"}

    first, others, _ = running(launched, all_nodes)
    second, others_two = launched(all_nodes, variables=other_job)
    status, out, err = finish(second)
    expect(status == 0 and "refused" not in err, f"a second run of a job: {status} {err}")
    right(out.splitlines()[0], all_nodes, "a second run of a job")
    os.kill(program_of(first), signal.SIGINT)
    for program, expected in [(first, 130), *[(p, 1) for p in others], *[(p, 0) for p in others_two]]:
        status, _, err = finish(program)
        expect(status == expected, f"two runs at once: {status} {err}")
    nobody_left("two runs at once")

    here = all_nodes[0].start([PARTY, "coordinate", "--local", "3"])
    status, out, err = finish(here)
    expect(status == 0 and [n["id"] for n in json.loads(out.splitlines()[0])["nodes"]] == ["n1", "n1-2", "n1-3"], f"here: {out} {err}")
    nobody_left("three nodes here")


def running(start, all_nodes, *words):
    coordinator, others = start(all_nodes, "--hold", *words)
    described = json.loads(line_of(coordinator))["nodes"]
    expect(line_of(coordinator) == "held\n", "the run does not go on")
    return coordinator, others, described


def program_of(process):
    """nsenter executes it: the number is the same."""
    return process.pid


def part_killed(all_nodes):
    for start in (dialled, launched):
        for stubborn in ([], ["--stubborn"]):
            what = f"{start.__name__}{' stubborn' if stubborn else ''}"
            coordinator, others, _ = running(start, all_nodes, *stubborn)
            began = time.monotonic()
            os.kill(program_of(coordinator), signal.SIGKILL)
            for other in others:
                status, _, err = finish(other)
                expect(status == 1 and "ended its connection" in last(err), f"{what}, coordinator killed: {status} {err}")
            nobody_left(f"{what}, coordinator killed", began)

        coordinator, others, _ = running(start, all_nodes)
        began = time.monotonic()
        os.kill(program_of(others[1]), signal.SIGKILL)
        status, _, err = finish(coordinator)
        expect(status == 1 and last(err).startswith("lost n3: node has ended its connection"),
               f"{start.__name__}, node killed: {status} {err}")
        for other in (others[0], others[2]):
            expect(finish(other)[0] == 0, f"{start.__name__}: a node that lives")
        nobody_left(f"{start.__name__}, node killed", began)

        coordinator, others, described = running(start, all_nodes)
        began = time.monotonic()
        os.kill(described[2]["agent"], signal.SIGKILL)
        status, _, err = finish(coordinator)
        expect(status == 1 and last(err) == "lost n3: agent was killed by signal 9 (KILL)",
               f"{start.__name__}, agent killed: {status} {err}")
        for other in others:
            expect(finish(other)[0] == 0, f"{start.__name__}: a node whose agent was killed")
        nobody_left(f"{start.__name__}, agent killed", began)


def part_interrupted(all_nodes):
    for start in (dialled, launched):
        coordinator, others, _ = running(start, all_nodes)
        began = time.monotonic()
        os.kill(program_of(coordinator), signal.SIGINT)
        status, _, err = finish(coordinator)
        expect(status == 130 and "interrupted" in last(err), f"coordinator: {status} {err}")
        for other in others:
            status, _, err = finish(other)
            expect(status == 1 and last(err) == "the coordinator was interrupted", f"{start.__name__}: {status} {err}")
        nobody_left(f"{start.__name__}, coordinator interrupted", began)

        coordinator, others, _ = running(start, all_nodes)
        began = time.monotonic()
        os.kill(program_of(others[0]), signal.SIGINT)
        status, _, err = finish(coordinator)
        expect(status == 1 and last(err) == "lost n2: node was interrupted", f"{start.__name__}: {status} {err}")
        status, _, err = finish(others[0])
        expect(status == 130 and last(err) == "interrupted", f"{start.__name__}, node: {status} {err}")
        for other in others[1:]:
            expect(finish(other)[0] == 0, f"{start.__name__}: another node")
        nobody_left(f"{start.__name__}, node interrupted", began)
    # One that listens goes on after a run that was cut off, and ends when it is told to.
    coordinator, others, _ = running(lambda n, *w: dialled(n, *w, once=False), all_nodes)
    os.kill(program_of(coordinator), signal.SIGKILL)
    finish(coordinator)
    again = all_nodes[0].start([PARTY, "coordinate", *peers(all_nodes)], PEERPATH_TOKEN=TOKEN)
    status, out, err = finish(again)
    expect(status == 0, f"a second run: {status} {err}")
    for other in others:
        os.kill(program_of(other), signal.SIGTERM)
        status, _, err = finish(other)
        expect(status == 130, f"listener: {status} {err}")
    nobody_left("listeners")


def part_vanished(all_nodes):
    """The last node's host vanishes, both sides find out by themselves."""
    for start in (dialled, launched):
        coordinator, others, _ = running(start, all_nodes)
        began = time.monotonic()
        all_nodes[-1].cut()
        status, _, err = finish(coordinator)
        print(f"{start.__name__}: the coordinator knew after {time.monotonic() - began:.1f} s", flush=True)
        expect(status == 1 and last(err).startswith("lost n4"), f"{start.__name__}, host gone: {status} {err}")
        status, _, err = finish(others[-1])
        print(f"{start.__name__}: the node ended after {time.monotonic() - began:.1f} s", flush=True)
        expect(status == 1 and "does not answer" in last(err), f"{start.__name__}, vanished: {status} {err}")
        for other in others[:-1]:
            expect(finish(other)[0] == 0, f"{start.__name__}: a node that is left")
        nobody_left(f"{start.__name__}, host vanished", began)
        nodes.ip("link", "set", all_nodes[-1].outer, "master", "br0")


def fails(what, all_nodes, words, *said, token=TOKEN):
    began = time.monotonic()
    status, out, err = finish(all_nodes[0].start([PARTY, "coordinate", *words], PEERPATH_TOKEN=token))
    told = [line for line in err.strip().splitlines() if not line.startswith("waiting for")]
    expect(status == 1 and len(told) == 1 and not out, f"{what}: {status} {err}")
    for words in said:
        expect(words in last(err), f"{what}: \"{last(err)}\" lacks \"{words}\"")
    print(f"{what}: {last(err)} [{time.monotonic() - began:.1f} s]", flush=True)


def part_refused(all_nodes):
    one, two, three, four = all_nodes
    fails("nobody listens", all_nodes, ["--peer", two.address, "--deadline", "1"], "nobody listens at", two.address, str(PORT))
    fails("no such name", all_nodes, ["--peer", "no-such-host.invalid", "--deadline", "5"], "no-such-host.invalid")
    fails("bad address", all_nodes, ["--peer", "a b:1", "--deadline", "5"], "no name")
    listener = listen(two)
    fails("another token", all_nodes, ["--peer", two.address], two.address, "another token", token="another-one-as-long")
    expect("another token" in line_of(listener, "stderr"), "the listener says so too")

    # A firewall that drops what n2 answers; one that rejects.
    two.run(["ip", "route", "add", "blackhole", f"{one.address}/32"]).check_returncode()
    fails("dropped", all_nodes, ["--peer", two.address, "--deadline", "2"], "no answer from", "firewall", str(PORT))
    two.run(["ip", "route", "del", "blackhole", f"{one.address}/32"]).check_returncode()
    one.run(["ip", "route", "add", "unreachable", f"{two.address}/32"]).check_returncode()
    fails("rejected", all_nodes, ["--peer", two.address, "--deadline", "9"], "no way to", two.address)
    one.run(["ip", "route", "del", "unreachable", f"{two.address}/32"]).check_returncode()

    # Somebody else's server, and one that takes connections and is silent.
    web = three.start([sys.executable, "-c", f"""
import socket
s = socket.create_server(("{three.address}", {PORT}))
while True:
    c = s.accept()[0]
    c.recv(99); c.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n"); c.close()"""])
    mute = four.start([sys.executable, "-c", f"import socket, time; s = socket.create_server((\"{four.address}\", {PORT})); time.sleep(600)"])
    ready = [one.words([sys.executable, "-c", f"import socket; socket.create_connection((\"{a}\", {PORT}), 1)"])
             for a in (three.address, four.address)]
    expect(until(lambda: not any(subprocess.run(w, stderr=subprocess.DEVNULL, check=False).returncode for w in ready)), "servers")
    fails("a web server", all_nodes, ["--peer", three.address], three.address, "no peerpath", "HTTP/1.1")
    fails("a mute server", all_nodes, ["--peer", four.address, "--deadline", "2"], "says nothing")
    fails("some missing", all_nodes, ["--peer", two.address, "--peer", four.address, "--peer", f"{two.address}:9", "--deadline", "4"],
          "2 of 4 nodes missing", four.address, "nobody listens", "port 9")

    # Busy with another run: told at once.
    other = one.start([PARTY, "coordinate", "--peer", two.address, "--hold"], PEERPATH_TOKEN=TOKEN)
    line_of(other)
    fails("busy", all_nodes, ["--peer", two.address], "busy with another run")
    for program in (other, listener):
        os.kill(program_of(program), signal.SIGINT)
        finish(program)
    web.kill()
    mute.kill()
    nobody_left("refused")

    # Ranks that never come, and a rank 0 that never comes.
    status, _, err = finish(one.start([PARTY, "rank", "--deadline", "1"], **slurm(0, all_nodes)))
    expect(status == 1 and "3 of 4 nodes have not come" in last(err) and "rank 1, 2, 3" in last(err), f"no ranks: {err}")
    status, _, err = finish(two.start([PARTY, "rank", "--deadline", "1"], **slurm(1, all_nodes)))
    expect(status == 1 and "nobody listens at 10.77.0.1" in last(err), f"no rank 0: {err}")
    wrong = {**slurm(1, all_nodes), "PEERPATH_TOKEN": "a-token-of-its-own"}
    zero = one.start([PARTY, "rank", "--deadline", "4"], **slurm(0, all_nodes))
    status, _, err = finish(two.start([PARTY, "rank", "--deadline", "9"], **wrong))
    expect(status == 1 and "another token" in last(err), f"rank with another token: {err}")
    finish(zero)
    nobody_left("ranks refused")


STORM = """
import os, socket, sys, time
address, seconds = (sys.argv[1], int(sys.argv[2])), time.monotonic() + float(sys.argv[3])
said = [b"", b"G", b"GET / HTTP/1.1\\r\\n\\r\\n", b"\\x16\\x03\\x01\\x02\\x00", b"peerpath\\0\\0\\0\\1", b"peerpath\\0\\0\\0\\1" + bytes(36),
        b"peerpath\\0\\0\\0\\1" + bytes(36) + b"\\xff\\xff\\xff\\xff", b"peerpath\\0\\0\\0\\1" + bytes(36) + b"\\0\\0\\0\\7" + bytes(39)]
held, n = [], 0
while time.monotonic() < seconds:
    try:
        s = socket.create_connection(address, 1)
        s.sendall(said[n % len(said)])
        held.append(s)
    except OSError:
        pass
    n += 1
    if len(held) > 200:
        held.pop(0).close()
print(n)
"""


def part_storm(all_nodes):
    """Strangers at every port, all the time: silent, garbled, half of a greeting, with a wrong code."""
    two, three = all_nodes[1:3]
    listener = listen(two)
    held = pathlib.Path(f"/proc/{program_of(listener)}/fd")
    before = len(list(held.iterdir()))
    drain = threading.Thread(target=listener.stderr.read)
    drain.start()
    storm = three.start([sys.executable, "-c", STORM, two.address, str(PORT), "12"])
    time.sleep(1)
    for _ in range(5):
        status, _, err = finish(all_nodes[0].start([PARTY, "coordinate", "--peer", two.address], PEERPATH_TOKEN=TOKEN))
        expect(status == 0, f"a run beside strangers: {status} {err}")
    _, out, _ = finish(storm)
    expect(int(out) > 1000, f"a storm of {out} connections")
    print(f"{out.strip()} connections of strangers", flush=True)
    expect(until(lambda: len(list(held.iterdir())) == before), f"descriptors: {before}, then {len(list(held.iterdir()))}")
    memory = pathlib.Path(f"/proc/{program_of(listener)}/status").read_text(encoding="ascii")
    resident = int(next(line.split()[1] for line in memory.splitlines() if line.startswith("VmRSS")))
    if not os.environ.get("PEERPATH_SANITIZED"):
        expect(resident < 64 << 10, f"{resident} KiB resident")
    os.kill(program_of(listener), signal.SIGTERM)
    expect(listener.wait(LIMIT) == 130, "the listener ends")
    drain.join()
    nobody_left("storm")


def main():
    nodes.alone()
    globals()[f"part_{PART}"](nodes.make(4))
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
