#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program killed in the middle of a simulated run leaves nobody behind. The judge is /proc.

usage: orphans.py PEERPATH
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import nodes

PEERPATH = os.path.abspath(sys.argv[1])
LIMIT = 60


def until(ready):
    end = time.monotonic() + LIMIT
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
    return ready()


def main():
    nodes.alone()
    nodes.ip("link", "set", "lo", "up")
    faults = 0
    for words in (["prove", "--simulate"], ["bench", "--simulate"]):
        with tempfile.TemporaryDirectory() as here:
            program = subprocess.Popen([PEERPATH, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=here)
            # Itself, two nodes' processes, two agents, and bench where prove is the one asked for.
            if not until(lambda: len(nodes.named("peerpath")) >= 5):
                print(f"FAULT: {words}: no run: {nodes.named('peerpath')}")
                faults += 1
            began = time.monotonic()
            os.kill(program.pid, signal.SIGKILL)
            program.wait()
            if not until(lambda: not nodes.named("peerpath")):
                print(f"FAULT: {words}: left {nodes.named('peerpath')}")
                faults += 1
            print(f"{words[0]}: nobody left after {time.monotonic() - began:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
