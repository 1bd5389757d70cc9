# SPDX-License-Identifier: Apache-2.0
"""Nodes of one machine: network namespaces on a bridge, each with a host name of its own.

The test re-executes itself in a user, network, PID, mount and UTS namespace, so that the kernel ends
all that is left when its first process ends, and /proc shows what the test itself has started.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

NET = "10.77.0"
LIMIT = 120  # seconds after which a thing that should have happened has not; nothing is measured by it
faults = []


def expect(true, what):
    if not true:
        print(f"FAULT: {what}", flush=True)
        faults.append(what)


def until(ready, seconds=LIMIT):
    end = time.monotonic() + seconds
    while not (done := ready()) and time.monotonic() < end:
        time.sleep(0.02)
    return done


def left(peerpath):
    """What runs have left in /tmp, once somebody has swept: what a killed one left goes when the last of its job has gone."""
    def swept():
        subprocess.run([peerpath, "nccl", "run", "-q", "--busy-ok", "--", "true"], capture_output=True, check=False)
        return sorted(path.name for path in pathlib.Path("/tmp").glob("peerpath-*"))
    return [] if until(lambda: not swept(), 30) else swept()


def finish(program, seconds=LIMIT):
    try:
        out, err = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        out, err = program.communicate()
        expect(False, f"{program.args[-3:]} does not end: {err[-300:]}")
    return program.returncode, out, err


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def alone():
    """Returns in the namespaces; exits 77 where they cannot be had."""
    if os.environ.get("PEERPATH_TEST_ALONE"):
        return
    for need in ("ip", "unshare", "nsenter", "setpriv"):
        if not shutil.which(need):
            skip(f"no {need}")
    words = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount", "--uts",
             "--mount-proc"]
    trial = subprocess.run(words + ["sh", "-c", "ip link add name pp0 type veth peer name pp1 && unshare -n -u true"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if trial.returncode:
        skip(f"no namespaces: {trial.stdout.strip()[-200:]}")
    sys.stdout.flush()
    # Killed, this process takes the namespaces with it.
    words = ["setpriv", "--pdeathsig", "KILL", *words]
    done = subprocess.run(words + [sys.executable] + sys.argv, check=False,
                          env={**os.environ, "PEERPATH_TEST_ALONE": "1"})
    sys.exit(done.returncode if done.returncode >= 0 else 1)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Node:
    def __init__(self, number):
        self.number, self.name, self.address = number, f"n{number}", f"{NET}.{number}"
        self.holder = subprocess.Popen(["unshare", "-n", "-u", "sh", "-c", f"hostname {self.name}.lab; echo up; exec sleep 3600"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        pid = str(self.holder.pid)
        ip("link", "add", "name", self.outer, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ip("link", "set", self.outer, "master", "br0", "up")
        for words in (["link", "set", "lo", "up"], ["link", "set", "eth0", "up"],
                      ["addr", "add", f"{self.address}/24", "dev", "eth0"]):
            self.run(["ip", *words]).check_returncode()

    @property
    def outer(self):
        return f"v{self.number}"

    def words(self, command):
        return ["nsenter", "-t", str(self.holder.pid), "-n", "-u", *command]

    def run(self, command):
        return subprocess.run(self.words(command), check=False)

    def start(self, command, **variables):
        """Nothing of the environment but what is given: a launcher of the caller's must not show through."""
        plain = {key: os.environ[key] for key in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if key in os.environ}
        return subprocess.Popen(self.words(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**plain, **variables}, start_new_session=True)

    def cut(self):
        """The host vanishes: no packet comes or goes, and nobody is told."""
        ip("link", "set", self.outer, "nomaster")


def make(count):
    ip("link", "set", "lo", "up")
    ip("link", "add", "br0", "type", "bridge")
    ip("link", "set", "br0", "up")
    return [Node(number + 1) for number in range(count)]


def named(name):
    """Processes of a program that live, by number; the dead that nobody has reaped do not count."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        comm, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:]
        if comm == name and rest[0] not in "ZX":
            found.append(int(path.parent.name))
    return found
