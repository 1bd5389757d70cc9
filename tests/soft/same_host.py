#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The link between processes of one host: that it is used where it can be, and why not where it cannot, as
'soft show' tells; that every byte comes either way (mesh judges), by one copy and by two.

usage: same_host.py PEERPATH MESH [SUBSTRING-OF-A-CASE...]
"""
import json
import os
import re
import subprocess
import sys
import time

from soft import Fault, Late, alone, cases, need, on, port

PEERPATH, MESH, ONLY = sys.argv[1], sys.argv[2], sys.argv[3:]
LO = "name=soft0,address=127.0.0.1"
LIMIT_S = 120
# Of each of two processes: 10^5 in all; a sanitizer's build does a third, each size of message once.
SEEDS, MESSAGES = 7 if os.environ.get("PEERPATH_SANITIZED") else 20, 2500
ONE, TWO, WIRE = "same-host (one copy)", "same-host (two copies)", "wire"


def show():
    out = subprocess.run([PEERPATH, "soft", "show", "--json"], stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
    return json.loads(out.stdout)["processes"]


def queue_pairs(processes):
    """Those that are connected."""
    return [qp for p in processes for d in p["devices"] for qp in d["queue_pairs"] if "remote" in qp]


def want(found, expected, what):
    if found != expected:
        raise Fault(f"{what}: {found}, not {expected}")


def drop_ptrace():
    """Words that take from a command the right to read every process."""
    return ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", "--ambient-caps=-sys_ptrace"]


def mesh(config, options, look, before=()):
    """Runs mesh until all messages are through, and look() while its processes are there."""
    argv = [*before, *on(PEERPATH, config, [MESH, "-n", 2, "-i", *options])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as run:
        try:
            line = run.stdout.readline()
            if line != "through\n":
                raise Fault(line + run.stdout.read())
            processes = show()
            want(len(processes), 2, "processes that tell")
            look(processes)
            said, _ = run.communicate(timeout=LIMIT_S)
        finally:
            run.kill()
    if run.returncode:
        raise Fault(f"mesh: {run.returncode}: {said}")
    return said.strip()


def lanes(processes, copies, pulled):
    for p in processes:
        want({(qp["link"], qp.get("reason")) for qp in queue_pairs([p])},
             {(ONE, None)} if copies == 1 else {(TWO, "the peer's process cannot read the memory of this one")}, "links")
        want(sorted((x["direction"], x["copies"], x["answered"]) for x in p["lanes"]),
             [("in", copies, True), ("out", copies, True)], "lanes")
        for x in p["lanes"]:
            if not x["records"] or bool(x["pulls"]) != pulled:
                raise Fault(f"a lane: {x}")
            if copies == 2 and x["reason"] not in ("Operation not permitted", "No such process"):
                raise Fault(f"why two copies: {x['reason']}")
        sent = sum(d["traffic"]["sent_packets"] for d in p["devices"])
        records = sum(x["records"] for x in p["lanes"])
        # What is first to leave goes by the wire, before the peer has answered.
        if sent > records / 10 + 200:
            raise Late(f"{sent} packets by the wire beside {records} records")


def seeds(copies):
    more, before = ([], []) if copies == 1 else (["-D"], drop_ptrace())
    chosen = range(copies, SEEDS + 1, 2)
    for seed in chosen:
        size = 4096 << seed % 7
        for again in range(4):
            try:
                said = mesh(LO, ["-c", MESSAGES, "-S", seed, "-s", size, *more],
                            lambda p: lanes(p, copies, copies == 1 and size > 8192), before)
                break
            except Late:  # on a busy machine the answer may take long: then, and only then, again
                if again == 3:
                    raise
    return f"{len(chosen)} seeds, the last: {said}"


def switched_off():
    def look(processes):
        want({(qp["link"], qp["reason"]) for qp in queue_pairs(processes)}, {(WIRE, "switched off here")}, "links")
        want([x for p in processes for x in p["lanes"]], [], "lanes")
    return mesh(LO + ",same-host=no", ["-c", 100], look)


def faults():
    def fault(pid, *words):
        subprocess.run([PEERPATH, "soft", "fault", "--pid", str(pid), *words], check=True, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL)

    def look(processes):
        first = processes[0]["pid"]
        links = lambda: {p["pid"] == first: {qp["link"] for qp in queue_pairs([p])} for p in show()}
        fault(first, "loss=1%")
        want(links(), {True: {WIRE}, False: {ONE}}, "links beside a fault of one process")
        fault(first, "clear")
        want(links(), {True: {ONE}, False: {ONE}}, "links after it")
    return mesh(LO, ["-c", 100], look)


def talk(server, client, number):
    """Two perftests; what their processes say in the middle."""
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as first:
        try:
            time.sleep(1)
            with subprocess.Popen(client, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second:
                try:
                    end = time.monotonic() + 10
                    found = []
                    while time.monotonic() < end and not any(
                            qp["state"] == "RTS" and qp["send_open"] for qp in queue_pairs(found)):
                        time.sleep(0.1)
                        found = show()
                    said, _ = second.communicate(timeout=LIMIT_S)
                finally:
                    second.kill()
        finally:
            first.kill()
    if second.returncode or not re.search(r"^ *65536 +\d+", said, re.M):
        raise Fault(f"client: {second.returncode}\n{said[-2000:]}")
    return [qp for qp in queue_pairs(found) if qp["state"] == "RTS" and qp["send_open"]]


def sends(number, *more):
    """Eight seconds of silence before it fails: a busy machine must not look like a broken link."""
    return ["ib_send_bw", "-d", "soft0", "-x", "0", "-F", "-s", "65536", "-D", "3", "-u", "18", "-p", str(number), *more]


def one_end():
    number = port()
    found = talk(on(PEERPATH, LO + ",same-host=no", sends(number)), on(PEERPATH, LO, sends(number, "127.0.0.1")), number)
    want({(qp["link"], qp["reason"]) for qp in found},
         {(WIRE, "the peer's process has the same-host link switched off, or is gone")}, "links")


def two_users():
    if os.geteuid() or int(open("/proc/self/uid_map", encoding="ascii").read().split()[2]) < 65536:
        return "not tried: it takes root and two users"
    number, other = port(), ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    subprocess.run(["ip", "address", "replace", "10.98.0.1/32", "dev", "lo"], check=True)
    # The port is a user's by address.
    found = talk([*other, *on(PEERPATH, "name=soft0,address=10.98.0.1", sends(number))],
                 on(PEERPATH, LO, sends(number, "127.0.0.1")), number)
    want({(qp["link"], qp["reason"]) for qp in found}, {(WIRE, "the peer's process is another user's")}, "links")
    return None


def two_hosts():
    number = port()
    there = ["unshare", "--net", "sh", "-c", 'ip link set lo up; echo; read x; ip address add 10.97.0.2/24 dev vb; '
             'ip link set vb up; exec "$0" "$@"', *on(PEERPATH, "name=soft0,address=10.97.0.2", sends(number))]
    with subprocess.Popen(there, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as first:
        try:
            first.stdout.readline()
            if subprocess.run(["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb", "netns",
                               str(first.pid)], check=False, stderr=subprocess.DEVNULL).returncode:
                return "not tried: no veth here"
            subprocess.run(["ip", "address", "add", "10.97.0.1/24", "dev", "va"], check=True)
            subprocess.run(["ip", "link", "set", "va", "up"], check=True)
            first.stdin.write(b"\n")
            first.stdin.flush()
            found = talk(["sleep", "60"], on(PEERPATH, "name=soft0,address=10.97.0.1", sends(number, "10.97.0.2")), number)
        finally:
            first.kill()
    want({(qp["link"], qp["reason"]) for qp in found}, {(WIRE, "the peer is not on this host")}, "links")
    return None


def main():
    alone(needed=True)
    need("setpriv", "ip", "unshare")
    table = [("one copy", seeds, 1), ("two copies, of memory that may not be read", seeds, 2),
             ("switched off", switched_off), ("faults made and cleared", faults)]
    if not os.environ.get("PEERPATH_SANITIZED"):
        need("ib_send_bw")
        table += [("switched off at one end", one_end), ("two users", two_users), ("two hosts", two_hosts)]
    return cases(table, ONLY)


if __name__ == "__main__":
    sys.exit(main())
