#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program killed in the middle of a simulated run leaves nobody behind, and what it could not put away goes
with the next start. The judge is /proc, and what is in a directory.

usage: orphans.py PEERPATH
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import nodes
from nodes import until

PEERPATH = os.path.abspath(sys.argv[1])


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def start(words, here, **variables):
    return subprocess.Popen([PEERPATH, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=here,
                            start_new_session=True, env={**os.environ, "TMPDIR": here, **variables})


def gone(what, began, name="peerpath"):
    if not until(lambda: not nodes.named(name)):
        print(f"FAULT: {what}: left {nodes.named(name)}")
        return 1
    print(f"{what}: nobody left after {time.monotonic() - began:.1f} s")
    return 0


def program_killed(words):
    with tempfile.TemporaryDirectory() as here:
        program = start(words, here)
        # Itself, two nodes' processes, two agents, and bench where prove is the one asked for.
        if not until(lambda: len(nodes.named("peerpath")) >= 5):
            print(f"FAULT: {words}: no run: {nodes.named('peerpath')}")
            return 1
        began = time.monotonic()
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        return gone(words[0], began)


def all_killed():
    """Nobody is left who could remove anything; a run that lives keeps what is its own."""
    faults = 0
    with tempfile.TemporaryDirectory() as here:
        lives = start(["bench", "--simulate", "--listen"], here, PEERPATH_TOKEN="0123456789abcdef")
        until(lambda: os.listdir(here) and os.path.exists(f"{here}/{os.listdir(here)[0]}/sysfs"))
        kept = set(os.listdir(here))
        first = start(["prove", "--simulate", "--no-bundle"], here)
        if not until(lambda: len(nodes.named("peerpath")) >= 7):
            print(f"FAULT: no run: {nodes.named('peerpath')}")
            faults += 1
        mine = set(nodes.named("peerpath")) - {lives.pid}
        mine -= {pid for pid in mine if parent(pid) == lives.pid}
        for pid in mine:
            os.kill(pid, signal.SIGKILL)
        first.wait()
        until(lambda: not mine & set(nodes.named("peerpath")))
        left = set(os.listdir(here)) - kept
        if len(kept) != 1 or len(left) != 1:
            print(f"FAULT: all killed: a made /sys should be left beside {kept}: {left}")
            faults += 1
        status = subprocess.run([PEERPATH, "soft", "--", "true"], env={**os.environ, "TMPDIR": here}, check=False).returncode
        if status or set(os.listdir(here)) != kept:
            print(f"FAULT: the next start ({status}) should leave {kept}: {os.listdir(here)}")
            faults += 1
        os.kill(lives.pid, signal.SIGTERM)
        lives.wait()
        if os.listdir(here):
            print(f"FAULT: a listener told to stop leaves {os.listdir(here)}")
            faults += 1
        print(f"all killed: {len(left)} made /sys left, and gone with the next start")
    return faults


def witness_killed():
    """perftest waits for a peer that does not come; whoever has started it is killed, and who would bury him."""
    with tempfile.TemporaryDirectory() as here:
        with open(f"{here}/ib_write_bw", "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexec sleep 3600\n")
        os.chmod(f"{here}/ib_write_bw", 0o755)
        words = ["bench", "--simulate", "--second-witness", "--size", "4K", "--duration", "10ms", "--repeats", "1", "--rungs", "host"]
        program = start(words, here, PATH=f"{here}:{os.environ['PATH']}")
        if not until(lambda: len(nodes.named("sleep")) >= 2):
            print(f"FAULT: no second witness was run: {nodes.named('sleep')}")
            return 1
        keepers = {parent(parent(pid)) for pid in nodes.named("sleep")}
        began = time.monotonic()
        for pid in keepers:
            os.kill(pid, signal.SIGKILL)
        faults = gone("perftest, its nodes killed", began, "sleep")
        program.kill()
        program.wait()
        return faults + gone("bench, its nodes killed", began)


def main():
    nodes.alone()
    nodes.ip("link", "set", "lo", "up")
    faults = sum(program_killed([*words, "--simulate"]) for words in (["prove"], ["bench"]))
    faults += all_killed() + witness_killed()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
