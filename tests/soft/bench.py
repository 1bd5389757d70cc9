#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench between two nodes here, on the software device: all ways, operations and measures are verified whole; what
is spoilt by the device's faults, or in our own client, is found and said, and the rest goes on.

usage: bench.py PEERPATH BENCH_RUN BENCH_MUTANT PART [SUBSTRING-OF-A-CASE...]

Parts: right (nothing is wrong), faults, ends (who dies, who is told to stop), mutants.
What a completion is called, and errno's numbers, are libibverbs' and the kernel's.
"""
import contextlib
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from soft import Fault, alone, cases

PEERPATH, BENCH, MUTANT, PART = sys.argv[1:5]
LIMIT_S = 240
REM_ACCESS_ERR, RETRY_EXC_ERR, WR_FLUSH_ERR = 10, 12, 5  # enum ibv_wc_status
DIRECT = ("rungs=host,dmabuf", "ops=write", "measures=bandwidth", "sizes=65536", "repeats=2", "each_ms=20")


def start(words, fault="", program=BENCH, env=None):
    """On a device of its own, with a made /sys, so that counters are seen. The process, and the /sys's place."""
    place = tempfile.mkdtemp(prefix="peerpath-bench-")
    config = "name=soft0,address=127.0.0.1" + (f",fault={fault}" if fault else "")
    argv = [os.path.abspath(PEERPATH), "soft", "-c", config, "--sysfs", f"{place}/sysfs", "--", program, *words]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **(env or {})}), place


def finish(run, place):
    try:
        said, why = run.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired as err:
        run.kill()
        raise Fault(f"no end in {LIMIT_S} s") from err
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if run.returncode:
        raise Fault(f"exit {run.returncode}: {why[-1500:]}")
    return json.loads(said)


def bench(*words, **options):
    return finish(*start(words, **options))


def expect(good, *what):
    if not good:
        raise Fault(" ".join(map(str, what)))


def cells(document):
    return [cell for pair in document["pairs"] for cell in pair["cells"]]


def rung(document, name, pair=0):
    return next(r for r in document["pairs"][pair]["rungs"] if r["rung"] == name)


def cells_of(document, name):
    return [c for c in cells(document) if c["rung"] == name]


def samples(cell):
    return cell.get("samples_mb_per_s") or cell.get("samples_us") or []


def all_right(document, repeats):
    """Every cell that ran has its repeats, moved bytes, and none of its bytes was wrong. How many there are."""
    ran = [c for c in cells(document) if c["state"] == "run"]
    for c in ran:
        what = f"{c['rung']} {c['operation']} {c['measure']} {c['size_bytes']}"
        expect(len(samples(c)) == repeats and all(s > 0 for s in samples(c)), what, samples(c))
        expect(c["wrong_bytes"] == 0, what, f"{c['wrong_bytes']} wrong bytes, first {c['first_wrong_offset_bytes']}")
        targets = 2 if c["measure"] == "bidirectional" or (
            c["measure"] == "latency" and c["operation"] != "read") else 1
        # the whole memory of each target, each time: at least four messages fit into it
        expect(c["checked_bytes"] >= targets * repeats * 4 * c["size_bytes"], what, c["checked_bytes"])
        expect(c["moved_bytes"] >= c["messages"] * c["size_bytes"] > 0, what, c["moved_bytes"], c["messages"])
    return len(ran)


# ── right ──

def matrix(*words):
    """All ways, operations and measures. TCP has no operations."""
    document = bench("rungs=tcp,host,dmabuf,staged", "ops=write,read,send", "measures=bandwidth,bidirectional,latency",
                     "sizes=1,4096,1048576", "repeats=2", "each_ms=5", "messages=50", *words)
    expect(document["whole"] and document["simulated"], document["ended"])
    # host, dmabuf and staged 9 each, TCP 3; three sizes
    found = all_right(document, 2)
    expect(found == 3 * (9 + 9 + 9 + 3), f"{found} cells")
    skipped = {(c["rung"], c["operation"]) for c in cells(document) if c["state"] != "run"}
    expect(not skipped, skipped)
    for c in cells_of(document, "staged"):
        if c["state"] == "run" and c["size_bytes"] <= 1 << 20:
            both = 2 if c["measure"] != "bandwidth" else 1
            # out of one memory and into the other: two copies a message, and a message is one chunk
            messages = c["messages"] * (both if c["measure"] == "latency" else 1)
            expect(c["copies"] == 2 * messages, f"{c['copies']} copies of {messages} messages")
    for c in cells(document):
        if c["measure"] == "latency" and c["state"] == "run":
            expect(0 < c["p50_us"] <= c["p99_us"] <= c["p999_us"], c["p50_us"], c["p99_us"], c["p999_us"])
    return f"{found} cells"


def large():
    """Chunks of staging: 5 MiB are five of them, whole messages are compared."""
    document = bench("rungs=host,dmabuf,staged", "ops=write,read,send", "measures=bandwidth,bidirectional,latency", "sizes=5242881", "repeats=1",
                     "each_ms=5", "messages=5", "qps=2", "inside=69632")
    found = all_right(document, 1)
    expect(found == 27, f"{found} cells")
    for c in cells_of(document, "staged"):
        both = 2 if c["measure"] == "latency" else 1
        # both ways at once: a message is one of either
        expect(c["copies"] == 2 * 6 * c["messages"] * both, f"{c['copies']} copies of {c['messages']} messages")


def refusals():
    """What a device must refuse: IBV_WC_REM_ACCESS_ERR, by host memory's region and by DMA-BUF's."""
    document = bench(*DIRECT, "negative")
    for name in ("host", "dmabuf"):
        found = {(n["kind"], n["run"], n["refused"], n["status"]) for n in rung(document, name)["negatives"]}
        expect(found == {(kind, True, True, "IBV_WC_REM_ACCESS_ERR") for kind in
                         ("wrong rkey", "beyond the region", "write without the right", "read without the right")}, found)


def with_librdmacm(program):
    """Processes of that program that have librdmacm mapped."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.path.samefile(process / "exe", program) and "librdmacm.so.1" in (process / "maps").read_text():
                found.add(process.name)
        except OSError:
            continue
    return found


def by_librdmacm():
    """-R: the same, connected by librdmacm, and again after each refusal. Agents have it mapped, of three ways two ends."""
    run, place = start(("rungs=host,dmabuf,staged", "ops=write,read,send", "measures=bandwidth,latency", "sizes=4096",
                        "repeats=2", "each_ms=50", "messages=50", "qps=3", "cm", "negative"))
    seen = set()
    end = time.monotonic() + 30  # nobody reads the document meanwhile
    while len(seen) < 6 and run.poll() is None and time.monotonic() < end:
        seen |= with_librdmacm(BENCH)
        time.sleep(0.02)
    document = finish(run, place)
    expect(document["whole"], document["ended"])
    expect(all_right(document, 2) == 18, "cells")
    for name in ("host", "dmabuf"):
        refused = [n["refused"] for n in rung(document, name)["negatives"]]
        expect(refused == [True] * 4, name, refused)
    expect(len(seen) == 6, f"{len(seen)} agents had librdmacm")


def pattern(name, nodes, pairs, at_once):
    document = bench("rungs=host", "ops=write", "measures=bandwidth", "sizes=4096", "repeats=1", "each_ms=5",
                     f"nodes={nodes}", f"pattern={name}")
    found = [tuple(e["node"] for e in p["ends"]) for p in document["pairs"]]
    expect(sorted(found) == sorted(pairs), found)
    expect(all_right(document, 1) == len(pairs) * (2 if at_once else 1), "cells")
    expect(all(n["arrival_skew_us"] is not None for n in document["nodes"]), "a node that was never ready")


def loss_is_counted():
    """One packet in a hundred is lost: all bytes are right all the same, and the port's counters tell."""
    document = bench("rungs=host", "ops=write", "measures=bandwidth", "sizes=65536", "repeats=2", "each_ms=50",
                     fault="loss=1% seed=7")
    expect(all_right(document, 2) == 1, "cells")
    moved = {c["name"]: c["delta"] for c in cells(document)[0]["counters"] if c["delta"]}
    expect(any(moved.get(name) for name in ("out_of_sequence", "packet_seq_err", "roce_adp_retrans")), moved)
    still = bench("rungs=host", "ops=write", "measures=bandwidth", "sizes=65536", "repeats=1", "each_ms=5")
    seen = {c["name"] for c in cells(still)[0]["counters"]}
    expect({"out_of_sequence", "local_ack_timeout_err", "out_of_buffer"} <= seen, "not seen where nothing moved:", seen)


def under_way(run):
    """Waits until each cell has been measured twice."""
    for line in run.stderr:
        if "repeat 3 of" in line:
            return
    raise Fault("ended before it was under way")


# ── faults ──

def registration(fault, error, call, name):
    """A way that cannot register says the call and its errno; the others are measured."""
    document = bench("rungs=tcp,host,dmabuf,staged", *DIRECT[1:], fault=fault)
    failed = rung(document, name)
    expect((failed["state"], failed["error"], failed["call"]) == ("failed", error, call),
           failed["state"], failed["error"], failed["call"], failed["why"])
    attempts = [(a["call"], a["error"]) for a in failed["attempts"]]
    expect(attempts == [(call, error)] * 2, attempts)
    expect(all(c["state"] == "skipped" and c["why"] for c in cells_of(document, name)), "its cells")
    expect(all_right(document, 2) >= 2 and document["whole"], "the others")


def all_rdma_fails(fault, error, call):
    """What every way needs fails; TCP is measured."""
    document = bench("rungs=tcp,host,dmabuf,staged", *DIRECT[1:], fault=fault)
    for name in ("host", "dmabuf", "staged"):
        r = rung(document, name)
        expect((r["state"], r["error"], r["call"]) == ("failed", error, call), name, r["error"], r["call"], r["why"])
    expect(all_right(document, 2) == 1 and document["whole"], "TCP")


def no_port():
    """Where no port is up there is nothing to begin."""
    run, place = start(DIRECT, fault="port=down")
    try:
        finish(run, place)
    except Fault as err:
        expect("ACTIVE" in str(err), err)
        return
    raise Fault("a port that is down was measured")


def while_it_runs(fault, *statuses):
    """Both ends meet the fault in the middle: the way fails with what its completion says, the run ends whole."""
    run, place = start(("rungs=tcp,host", "ops=write", "measures=bandwidth", "sizes=65536", "repeats=20", "each_ms=100"))
    under_way(run)
    set_at = time.monotonic()
    subprocess.run([PEERPATH, "soft", "fault", fault], check=True, stdout=subprocess.DEVNULL, timeout=30)
    document = finish(run, place)
    failed = rung(document, "host")
    expect(failed["state"] == "failed", failed["state"], failed["why"])
    expect(failed["status"] in statuses or (failed["error"] == errno.ETIMEDOUT and not statuses), failed)
    cell = cells_of(document, "host")[0]
    expect(cell["state"] == "failed" and cell["why"], cell)
    expect(samples(cell), "what was measured before is gone")
    expect(cells_of(document, "tcp")[0]["state"] == "run", "TCP")
    return f"ended {time.monotonic() - set_at:.1f} s behind it"


# ── ends ──

def family(pid):
    """All below a process."""
    found, front = [], [pid]
    while front:
        parent = front.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            children = []
        found += children
        front += children
    return found


def in_the_middle(run):
    """Waits until repeats are under way. Who is below the coordinator then: nodes, and agents."""
    under_way(run)
    below = family(run.pid)
    nodes = [pid for pid in below if family(pid)]
    return nodes, [pid for pid in below if pid not in nodes]


def nobody_left(pids):
    """All end, however long a busy machine takes for it."""
    end = time.monotonic() + LIMIT_S
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        if time.monotonic() > end:
            raise Fault(f"{[pid for pid in pids if os.path.exists(f'/proc/{pid}')]} are still there")
        time.sleep(0.05)


LONG = ("rungs=tcp,host,dmabuf", "ops=write", "measures=bandwidth", "sizes=65536", "repeats=60", "each_ms=100")


def agent_killed():
    """One agent is killed in the middle: its way fails, the others go on, nothing is left behind."""
    run, place = start((*LONG, "repeats=20"))
    nodes, agents = in_the_middle(run)
    os.kill(agents[-1], signal.SIGKILL)
    document = finish(run, place)
    states = sorted(r["state"] for r in document["pairs"][0]["rungs"] if r["why"] != "not asked for")
    expect(states == ["failed", "run", "run"], states)
    expect(document["whole"], document["ended"])
    nobody_left(nodes + agents)


def node_killed():
    """A node with all its agents is killed: the run ends, and what was measured stays."""
    run, place = start(LONG)
    nodes, agents = in_the_middle(run)
    expect(nodes, "no node has agents of its own")
    killed = time.monotonic()
    for pid in [*nodes, *(pid for node in nodes for pid in family(node))]:
        with contextlib.suppress(ProcessLookupError):  # an agent ends with its node
            os.kill(pid, signal.SIGKILL)
    document = finish(run, place)
    took = time.monotonic() - killed
    expect(not document["whole"] and "was lost" in document["ended"], document["ended"])
    expect(all(samples(c) for c in cells(document)[:3]), "what was measured is gone")
    nobody_left(nodes + agents)
    return f"ended {took:.1f} s behind it"


def stopped():
    """Told to stop in the middle: a valid document of what there is, and all processes gone."""
    run, place = start((*LONG, "stop_ms=4000"))
    nodes, agents = in_the_middle(run)
    document = finish(run, place)
    expect(not document["whole"] and document["ended"] == "interrupted", document["ended"])
    for cell in cells(document):
        expect(cell["state"] in ("run", "not reached"), cell["state"])
        expect(samples(cell) or cell["why"] == "interrupted", cell["why"])
    nobody_left(nodes + agents)


def coordinator_killed():
    """Nobody stays behind a coordinator that dies."""
    run, place = start(LONG)
    nodes, agents = in_the_middle(run)
    run.kill()
    run.communicate()
    nobody_left(nodes + agents)
    shutil.rmtree(place, ignore_errors=True)


# ── mutants ──

def caught(mutant, *words):
    """The client is wrong: the payload, or the device, tells; host memory beside it is right."""
    document = bench(*DIRECT, *words, program=MUTANT, env={"PEERPATH_MUTANT": mutant})
    cell, r = cells_of(document, "dmabuf")[0], rung(document, "dmabuf")
    expect(cells_of(document, "host")[0]["wrong_bytes"] == 0 and samples(cells_of(document, "host")[0]), "host memory")
    expect(r["state"] == "failed" or cell["wrong_bytes"] > 0, "not caught:", cell)
    return r["why"] or f"{cell['wrong_bytes']} wrong bytes"


def right_without_mutant():
    document = bench(*DIRECT, "inside=69632", program=MUTANT, env={"PEERPATH_MUTANT": "none"})
    expect(all_right(document, 2) == 2, "cells")


def another_way():
    """Memory that is called DMA-BUF and registered by its address: every byte is right, and the device's registry tells."""
    document = bench(*DIRECT, program=MUTANT, env={"PEERPATH_MUTANT": "address"})
    expect(all_right(document, 2) == 2, "cells")
    for name in ("host", "dmabuf"):
        found = [e["registration"] for e in rung(document, name)["evidence"] if e["scope"] == "mr"]
        expect((rung(document, name)["registration"], found) == (name, ["host", "host"]), name, found)
    row = {r["rung"]: r for r in document["transfer"]["rows"]}
    expect((row["dmabuf"]["verdict"], row["dmabuf"]["registration_state"]) == ("fail", "refuted"), row["dmabuf"])
    expect(row["host"]["registration_state"] == "unproven", row["host"])
    expect(document["transfer"]["simulation"] == "failed", document["transfer"]["sentence"])


PARTS = {
    "right": [
        ("all ways, operations and measures", matrix),
        ("two queue pairs, depth 4", matrix, "qps=2", "depth=4"),
        ("messages of several chunks", large),
        ("what must be refused", refusals),
        ("queue pairs that librdmacm connects", by_librdmacm),
        ("pairs of four", pattern, "pairs", 4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], True),
        ("a ring of three", pattern, "ring", 3, [(0, 1), (1, 2), (2, 0)], True),
        ("three to one", pattern, "incast", 4, [(1, 0), (2, 0), (3, 0)], True),
        ("all to all of three", pattern, "all-to-all", 3, [(0, 1), (0, 2), (1, 2)], True),
        ("a node with itself", pattern, "pairs", 1, [(0, 0)], False),
        ("loss is counted, and wrong nowhere", loss_is_counted),
    ],
    "faults": [
        ("DMA-BUF is refused by 524", registration, "reg_dmabuf_mr=524", 524, "ibv_reg_dmabuf_mr", "dmabuf"),
        ("DMA-BUF is not there", registration, "reg_dmabuf_mr=EOPNOTSUPP", errno.EOPNOTSUPP, "ibv_reg_dmabuf_mr", "dmabuf"),
        ("no queue pair", all_rdma_fails, "create_qp=ENOMEM", errno.ENOMEM, "ibv_create_qp"),
        ("no access", all_rdma_fails, "open_device=EACCES", errno.EACCES, "ibv_open_device"),
        ("the peer's address does not resolve", all_rdma_fails, "modify_qp_rtr=ETIMEDOUT", errno.ETIMEDOUT, "ibv_modify_qp"),
        ("no port is up", no_port),
        ("queue pairs break", while_it_runs, "qp=fatal", WR_FLUSH_ERR, RETRY_EXC_ERR, REM_ACCESS_ERR),
        ("the device is removed", while_it_runs, "device=removed", WR_FLUSH_ERR, RETRY_EXC_ERR),
        ("a partition", while_it_runs, "partition=all", RETRY_EXC_ERR),
    ],
    "ends": [
        ("an agent is killed", agent_killed),
        ("a node is killed", node_killed),
        ("told to stop", stopped),
        ("the coordinator is killed", coordinator_killed),
    ],
    "mutants": [
        ("none", right_without_mutant),
        ("a wrong offset", caught, "offset", "inside=69632"),
        ("a region that is too short", caught, "short"),
        ("a second segment without a key", caught, "skipped"),
        ("a second segment that is the first", caught, "first"),
        ("another way of registering", another_way),
    ],
}

# What makes a /sys is preloaded, and a sanitizer's program does not take it: there are no counters, and no ports' states.
NEEDS_SYS = (loss_is_counted, all_rdma_fails, no_port)

if __name__ == "__main__":
    alone()
    TABLE = PARTS[PART]
    if os.environ.get("PEERPATH_SANITIZED"):
        # Of the long matrix one shape: the other differs by numbers alone.
        TABLE = [row for row in TABLE if row[1] not in NEEDS_SYS and row[1:] != (matrix,)]
        print(f"{len(PARTS[PART]) - len(TABLE)} cases the plain build runs: they need a made /sys, or are another of its shape")
    sys.exit(cases(TABLE, sys.argv[5:]))
