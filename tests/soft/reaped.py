#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""200 programs that make and take away objects, and move bytes, killed at random moments of their lives,
four at a time; beside them two that exchange checked messages all the while. Afterwards the namespace
holds nothing of the dead: no slot, no socket, no port, no shared memory.

usage: reaped.py PEERPATH MANY MESH
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

from soft import alone, on

PEERPATH, MANY, MESH = sys.argv[1:4]
LO = "name=lo,address=127.0.0.1"
VICTIMS, AT_ONCE, SEED = 200, 4, 5


def held():
    """What the kernel still has of the device in this network namespace."""
    names = [line.split()[-1] for line in pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
             if "@peerpath-soft" in line]
    ports = [line for table in ("udp", "udp6") for line in
             pathlib.Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines() if ":12B7 " in line]
    return names + ports


def shared():
    return {name for name in os.listdir("/dev/shm") if name.startswith("peerpath-soft")} if os.path.isdir("/dev/shm") else set()


def survivors(stop, wrong, count):
    while not stop.is_set():
        done = subprocess.run(on(PEERPATH, LO, [MESH, "-n", "2", "-c", "300", "-S", str(count[0])]), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
        count[0] += 1
        if done.returncode:
            wrong.append(f"beside: {done.returncode} {done.stdout[-500:]}")
            return


def main():
    alone(needed=True)
    before, stop, wrong, count = shared(), threading.Event(), [], [0]
    beside = threading.Thread(target=survivors, args=(stop, wrong, count))
    beside.start()
    chance, living, spawned, ended = random.Random(SEED), [], 0, 0
    while spawned < VICTIMS or living:
        while spawned < VICTIMS and len(living) < AT_ONCE and not wrong:
            program = subprocess.Popen(on(PEERPATH, LO, [MANY, "forever"]), stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            living.append((time.monotonic() + chance.uniform(0.005, 0.25), program))
            spawned += 1
        if wrong:
            spawned = VICTIMS
        for entry in [e for e in living if e[0] <= time.monotonic() or e[1].poll() is not None]:
            living.remove(entry)
            entry[1].kill()
            said, _ = entry[1].communicate()
            ended += 1
            if entry[1].returncode != -signal.SIGKILL:
                wrong.append(f"a victim ended by itself: {entry[1].returncode} {said.decode()[-500:]}")
        time.sleep(0.005)
    stop.set()
    beside.join()
    end = time.monotonic() + 5
    while held() and time.monotonic() < end:
        time.sleep(0.05)
    if held():
        wrong.append(f"left: {held()}")
    if shared() - before:
        wrong.append(f"left in /dev/shm: {shared() - before}")
    shown = json.loads(subprocess.run([PEERPATH, "soft", "show", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    if shown["processes"] or shown["silent"]:
        wrong.append(f"shown: {shown}")
    print("\n".join(wrong) or f"{ended} killed, {count[0]} exchanges beside them right, nothing left")
    return 1 if wrong or not count[0] else 0


if __name__ == "__main__":
    sys.exit(main())
