#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: trace_rxe.py LAB-DIR REGISTRAR PEERPATH

`peerpath trace` in a guest with the kernel's rdma_rxe: perftest's regions are those that `rdma` lists, by the collectors
and by both kinds of probes; owners that are hard to know; and what is left in tracefs after every kind of end.
"""
import json
import os
import re
import sys
import time

from tracing import MOUNTS, LabError, Registrar, expect, nothing_left, surface, trace, traced  # noqa: I001
from jobs import read
from lab import Lab, status_of

REGISTRAR, PEERPATH = sys.argv[2:4]
PERFTEST = "ib_write_bw -d rxe0 -x $GID4 -p 18600 -D"


def poll(what, ready, seconds=30):
    end = time.monotonic() + seconds
    while True:
        got = ready()
        if got:
            return got
        if time.monotonic() > end:
            raise LabError(f"{what}: not in {seconds} s")
        time.sleep(0.1)


def tgid(guest, thread):
    return int(re.search(r"^Tgid:\s+(\d+)", guest.run(f"cat /proc/{thread}/status").check().text, re.M)[1])


def listed(guest):
    """lkey: (process, length), by `rdma` and /proc."""
    rows = json.loads(guest.run("rdma -j resource show mr").check().out)
    owner = {row["pid"]: tgid(guest, row["pid"]) for row in rows if "pid" in row}
    return {int(row["lkey"], 16): (owner.get(row.get("pid"), 0), row["mrlen"]) for row in rows}


def lengths(document):
    return {row["lkey"]: row["length_bytes"] for row in document["evidence"] if row["scope"] == "mr"}


def perftest_runs(guest):
    """Self-probe and collectors while it runs: the same regions as `rdma` has."""
    server = guest.start(f"{PERFTEST} 20")
    guest.wait_port(18600)
    client = guest.start(f"{PERFTEST} 20 127.0.0.1")
    poll("both ends register", lambda: len(listed(guest)) == 2)
    wanted = listed(guest)
    expect("two processes", len({pid for pid, _ in wanted.values()}), 2)
    for words, proven in (("", {"self-probe"}), ("--no-probes", set())):
        document = trace(guest, words, status=0 if proven else 2)
        expect(f"regions {words}", {key: (row[0], lengths(document)[key]) for key, row in traced(document).items()}, wanted)
        expect(f"host {words}", {(row[1], row[2], *row[3]) for row in traced(document).values()},
               {("host", "proven" if proven else "unproven", *proven)})
    for job in (server, client):
        job.kill()


def perftest_traced(guest):
    """Live probes from its start: the same regions as `rdma` shows meanwhile, when all has ended."""
    job = guest.start(f"exec peerpath trace --json -- sh -c '{PERFTEST} 3 & sleep 1; {PERFTEST} 3 127.0.0.1; wait'")
    poll("both ends register", lambda: len(listed(guest)) == 2)
    wanted = listed(guest)
    document = json.loads(job.wait(60).check().out)
    seen = traced(document)
    expect("regions", {key: (row[0], lengths(document)[key]) for key, row in seen.items()}, wanted)
    expect("by live probes", {(row[1], row[2], *row[3]) for row in seen.values()}, {("host", "proven", "live-probe")})
    calls = [row["call"] for row in document["evidence"] if row["scope"] == "mr"]
    expect("the library says the same", {(call["witness"], call["surface"], call["state"]) for call in calls},
           {("library", "library", "proven")})
    expect("by its call", {call["function"] for call in calls} <= {"ibv_reg_mr", "ibv_reg_mr_iova", "ibv_reg_mr_iova2"}, True)
    expect("what was read gives no reason", {s["why"] for s in document["surfaces"] if s["state"] == "read"}, {None})
    nothing_left(guest)


def owners(guest):
    with Registrar(guest, "rxe0 host=2 thread") as dead:
        contained = guest.start("exec unshare -p -f --mount-proc registrar rxe0 host=1")
        poll("the contained one registers", lambda: b"ready" in contained.output())
        expect("it is the first process there", b"pid 1\n" in contained.output(), True)
        key = int(re.search(rb"host lkey (\S+)", contained.output())[1], 16)
        pids = {int(pid) for pid in guest.run("pidof registrar").check().text.split()} - {dead.pid}
        expect("one contained process", len(pids), 1)
        wanted = {lkey: (dead.pid, "host", "proven", {"self-probe"}) for lkey in dead.host}
        expect("owners", traced(trace(guest)), wanted | {key: (*pids, "host", "proven", {"self-probe"})})
        document = json.loads(guest.run("unshare -p -f --mount-proc peerpath trace --json").check(2).out)
        expect("who looks from another namespace", surface(document, "processes")["state"], "not whole")
        seen = traced(trace(guest, user="nobody", status=2))
        expect("without rights", sorted(row[1:] for row in seen.values()), [(None, "unproven", set())] * 3)
        guest.run(f"kill -9 {pids.pop()}").check()
        contained.wait(10)


def watched(guest):
    """--watch tells of a region that comes and of one that goes, and of no other."""
    with Registrar(guest, "rxe0 host=1"):
        watch = guest.start("exec peerpath trace --watch=200ms --json")
        poll("it watches", lambda: b"watching; 1 regions now" in read(watch.dir / "err"))
        with Registrar(guest, "rxe0 host=1 size=1048576 thread") as one:
            poll("a region comes", lambda: watch.output().count(b"\n") == 1)
        poll("it goes", lambda: watch.output().count(b"\n") == 2)
        guest.run(f"kill -INT $(cat /run/{watch.dir.name})").check()
        rows = [json.loads(line) for line in watch.wait(10).check(130).out.splitlines()]
    expect("what changed", [(row["change"], row["pid"], row["lkey"], row["length_bytes"], row["registration"]) for row in rows],
           [(change, one.pid, one.host[0], 1048576, "host") for change in ("new", "gone")])
    nothing_left(guest)


class Traced:
    """A command that is traced, once it has registered."""

    def __init__(self, guest):
        self.guest, self.job = guest, guest.start("exec peerpath trace --json -- registrar rxe0 host=1")
        said = self.job.dir / "err"
        poll("it registers", lambda: b"ready" in read(said))
        self.command = int(re.search(rb"^pid (\d+)", read(said), re.M)[1])
        self.pid = int(guest.run(f"cat /run/{self.job.dir.name}").check().text)
        left = guest.run("ls /sys/kernel/tracing/instances; cat /sys/kernel/tracing/kprobe_events").check().text
        expect("probes are there", "peerpath-" in left and "rdma_restrack_add" in left, True)
        expect("a registration of host memory passes two", len(re.findall(r"ib_core:rdma_restrack_(?:add|del) ", left)), 2)
        expect("and none of the calls on its way", "ib_umem_get" in left, False)

    def kill(self, number, *pids):
        self.guest.run(f"kill -{number} {' '.join(str(pid) for pid in pids)}").check()


def command_killed(guest):
    now = Traced(guest)
    now.kill("KILL", now.command)
    document = json.loads(now.job.wait(30).check(0).out)
    expect("how it ended", document["command"]["signal"], 9)
    nothing_left(guest)


def interrupted(guest):
    now = Traced(guest)
    # as a terminal does, to both; the second may have been ended by the first
    now.guest.run(f"kill -INT {now.pid}; kill -INT {now.command} || true").check()
    now.job.wait(30).check(130)
    nothing_left(guest)


def tracer_killed(guest):
    now = Traced(guest)
    now.kill("KILL", now.pid)
    now.job.wait(30)
    poll("the guard removes all", lambda: not left_over(guest))
    nothing_left(guest)


def all_killed(guest):
    """Nobody is left to remove anything: the next start does."""
    now = Traced(guest)
    ours = guest.run("pidof peerpath").check().text.split()
    now.kill("KILL", *ours)
    now.job.wait(30)
    expect("something is left", left_over(guest), True)
    trace(guest)
    nothing_left(guest)


def left_over(guest):
    return bool(guest.run("ls /sys/kernel/tracing/instances; cat /sys/kernel/tracing/kprobe_events").check().text)


def tested():
    with Lab(put=[(REGISTRAR, "bin/registrar"), (PEERPATH, "bin/peerpath")]) as lab:
        guest = lab.guest(0)
        guest.run(MOUNTS).check()
        for part in (perftest_runs, perftest_traced, owners, watched, command_killed, interrupted, tracer_killed, all_killed):
            part(guest)
            print(f"{part.__name__}: ok", flush=True)


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a guest has no sanitizer's libraries; the plain build runs this")
        return 77
    return status_of(tested)


if __name__ == "__main__":
    sys.exit(main())
