#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HealthCheckProgram and Prolog under Slurm itself: what drains a node, what brings it back, and what is left alone.

The judge is Slurm: `scontrol show node`, and whether jobs run. Machines are recordings, given to the scripts by
their settings; a driver library that hangs is a fake one that is asked on this machine.

usage: slurm_health.py LAB SCRIPTS PEERPATH FAKE-NVML PART     (PART: health, prolog)
"""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures"))
import make_machine  # noqa: E402
from machine.plan import PRESETS  # noqa: E402

LAB, SCRIPTS, PEERPATH, NVML = (os.path.abspath(path) for path in sys.argv[1:5])
PART = sys.argv[5]
SETTINGS = pathlib.Path("/etc/default/peerpath-slurm")
LIMIT = 60
FAULTS = {"good": (), "degraded": ("acs-redirect",), "bad": ("no-rdma-device",), "unseen": ("acs-unreadable",)}
faults = 0


def expect(true, what, *more):
    global faults
    if not true:
        print("FAULT:", what, *more, flush=True)
        faults += 1


def run(*words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False, **more)
    return done.returncode, done.stdout


def node():
    """State and reason, as Slurm says."""
    _, text = run("scontrol", "show", "node", "lab1")
    reason = re.search(r"^ *Reason=(.*?)(?: \[[^]]*\])?$", text, re.M)
    # Whether slurmd was heard of lately is this machine's load.
    return re.search(r"State=(\S+)", text)[1].replace("+NOT_RESPONDING", ""), reason[1] if reason else ""


class World:
    """Settings of the scripts; a program around ours that counts how often it is asked."""

    def __init__(self):
        self.dir = pathlib.Path.cwd()
        self.count = self.dir / "count"
        for name, told in FAULTS.items():
            make_machine.recording(dataclasses.replace(PRESETS["good2"], faults=set(told))).write(self.dir / name)
        self.program("asked", "")
        # A driver that never answers, asked on this machine.
        self.program("hung", f"LD_LIBRARY_PATH={NVML} PP_FAKE_NVML=block ")
        self.program("dies", "kill -KILL $$; ")

    def program(self, name, before):
        path = self.dir / name
        path.write_text(f'#!/bin/sh\necho >>{self.count}\n{before}exec {PEERPATH} "$@"\n' if not before.startswith("LD_") else
                        f'#!/bin/sh\necho >>{self.count}\nexport {before}\nexec {PEERPATH} "$@"\n', encoding="ascii")
        path.chmod(0o755)

    def set(self, machine, program="asked", **more):
        words = {"PEERPATH": self.dir / program if "/" not in program else program,
                 "PEERPATH_ARGS": f"--replay {self.dir / machine}" if machine else "", "SLURM_CONF": os.environ["SLURM_CONF"], **more}
        beside = SETTINGS.with_suffix(".new")
        beside.write_text("".join(f"{key}='{value}'\n" for key, value in words.items()), encoding="ascii")
        beside.rename(SETTINGS)

    def asked(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def rounds(self, n=3):
        """Until the health check has begun n times more: with the settings of now at least n - 1 times to its end."""
        before, end = self.asked(), time.monotonic() + LIMIT
        while self.asked() < before + n and time.monotonic() < end:
            time.sleep(0.05)
        expect(self.asked() >= before + n, "the health check is run")

    def until(self, what, ready):
        end = time.monotonic() + LIMIT
        while not ready(*node()) and time.monotonic() < end:
            time.sleep(0.1)
        expect(ready(*node()), what, node())


def drained(state, reason):
    return "DRAIN" in state and reason.startswith("peerpath: ")


def free(state, reason):
    return "DRAIN" not in state and not reason


def health(w):
    w.rounds()
    expect(free(*node()), "a good node works", node())

    w.set("bad")
    w.until("fail drains", drained)
    expect(node()[1] == "peerpath: fail: GPUDirect RDMA cannot work here: a PCI function of an hca is present, but no RDMA device (node)",
           "the reason is the finding", node())
    w.set("unseen")
    w.rounds()
    expect(drained(*node()), "what cannot be seen does not bring a node back", node())
    w.set("good")
    w.until("pass takes the drain back", free)

    for what in ("unseen", "degraded"):
        w.set(what)
        w.rounds()
        expect(free(*node()), f"{what} does not drain", node())
    w.set("unseen", PEERPATH_ON_UNKNOWN="fail")
    w.until("unknown drains where that was asked for", lambda s, r: drained(s, r) and r.startswith("peerpath: unknown: "))
    w.set("good")
    w.until("and is taken back", free)
    w.set("degraded", PEERPATH_FAIL_ON="degraded")
    w.until("degraded drains where that was asked for", lambda s, r: drained(s, r) and r.startswith("peerpath: degraded: "))
    w.set("degraded")
    w.until("and is taken back", free)

    # Somebody else's drain, before and after ours.
    run("scontrol", "update", "NodeName=lab1", "State=drain", "Reason=disk is swapped, Anna")
    for what in ("bad", "good"):
        w.set(what)
        w.rounds()
        expect(node() == ("IDLE+DRAIN", "disk is swapped, Anna"), f"somebody's drain, {what}", node())
    run("scontrol", "update", "NodeName=lab1", "State=undrain")
    w.set("bad")
    w.until("fail drains", drained)
    run("scontrol", "update", "NodeName=lab1", "State=drain", "Reason=peer is looked at, Bob")
    w.set("good")
    w.rounds()
    expect(node() == ("IDLE+DRAIN", "peer is looked at, Bob"), "somebody has taken it over", node())
    run("scontrol", "update", "NodeName=lab1", "State=undrain")
    run("scontrol", "update", "NodeName=lab1", "State=down", "Reason=burnt")
    for what in ("bad", "good"):
        w.set(what)
        w.rounds()
        expect("DOWN" in node()[0] and "DRAIN" not in node()[0] and node()[1] == "burnt", "a node that is down stays so", node())
    run("scontrol", "update", "NodeName=lab1", "State=resume")
    w.until("resumed by its owner", free)

    # A driver library that does not return; a program that dies; none at all.
    w.set("", "hung", PEERPATH_DEADLINE="2")
    w.rounds()
    expect(free(*node()), "a hung library does not drain", node())
    w.set("", "hung", PEERPATH_DEADLINE="2", PEERPATH_ON_UNKNOWN="fail")
    w.until("but where that was asked for, by its name", lambda s, r: drained(s, r) and re.match(
        r"peerpath: unknown: nvmlInit_v2 did not return in \d+ ms$", r))
    w.set("good")
    w.until("and is taken back", free)
    w.set("", "dies")
    w.rounds()
    expect(free(*node()), "a program that dies does not drain", node())
    w.set("good")
    silence(w)


def script(*words, shell=()):
    """As slurmd runs it: no PATH, the node's name alone."""
    return run(*shell, f"{SCRIPTS}/healthcheck", *words, env={"SLURMD_NODENAME": "lab1"})


def mistyped(w):
    """Settings that no shell can use: nothing is known then, whatever sh is here, and that is said."""
    for what, text, says in (("a time", "PEERPATH_DEADLINE=10s\n", "from 1 to 30"), ("octal", "PEERPATH_DEADLINE=08\n", "from 1 to 30"),
                             ("no number", "PEERPATH_DEADLINE=soon\n", "from 1 to 30"), ("a quote", "PEERPATH_ARGS='\n", "cannot be read"),
                             ("an end", "exit 1\n", "cannot be read"), ("words", "PEERPATH_ARGS=--policyy\n", "unknown option 'policyy'"), ("unknown", "PEERPATH_ON_UNKNOWN=fial\n", "ON_UNKNOWN is"),
                             ("bad", "PEERPATH_FAIL_ON=degrded\n", "FAIL_ON is")):
        w.set("bad")
        with open(SETTINGS, "a", encoding="ascii") as file:
            file.write(text)
        for shell in ((), ("/bin/bash", "--posix"), ("/bin/dash",)):
            for words in ((), ("prolog",)):
                status, said = script(*words, shell=shell)
                expect(status == 0 and says in said and len(said.splitlines()) == 1, f"settings, {what}", shell, words, status, said)
        expect(free(*node()), f"settings, {what}: nothing is done", node())
    for words, env, says in ((("prlog",), {"SLURMD_NODENAME": "lab1"}, "unknown mode"), ((), {}, "SLURMD_NODENAME is not set")):
        status, said = run(f"{SCRIPTS}/healthcheck", *words, env=env)
        expect(status == 0 and says in said and len(said.splitlines()) == 1, "by hand", words, status, said)
    # What is not set is empty, as sh has it.
    w.set("good")
    with open(SETTINGS, "a", encoding="ascii") as file:
        file.write("PEERPATH_ARGS=\"$PEERPATH_ARGS $NOT_SET\"\n")
    expect(script() == (0, ""), "a variable that is not set", script())


def silence(w):
    w.set("good")
    expect(script() == (0, ""), "silent and 0 when fine", script())
    w.set("", "/nonexistent/peerpath")
    status, said = script()
    expect(status == 0 and "no verdict" in said, "no program: nothing is known", status, said)
    expect(free(*node()), "and nothing is done", node())
    mistyped(w)
    # Slurm that does not answer takes no longer than the limit: its own 10 s, twice.
    w.set("bad", SLURM_CONF="/nonexistent/slurm.conf")
    started = time.monotonic()
    status, said = script()
    expect(status == 0 and "scontrol says nothing" in said, "no Slurm", status, said)
    expect(time.monotonic() - started < 60, "the limit after which Slurm kills it", time.monotonic() - started)
    # The worst that its own limits allow, from its text: the verdict, and two calls of scontrol.
    text = pathlib.Path(SCRIPTS, "healthcheck").read_text(encoding="ascii")
    limits = [int(n) for n in re.findall(r"timeout -k 1 (\d+) scontrol", text)]
    expect(len(limits) == 2 and 30 + 3 + 1 + sum(limits) + len(limits) < 60, "its limits", limits)
    w.set("good")


def job():
    """A batch job of a moment: ran, or what became of it."""
    status, said = run("sbatch", "--parsable", "--output=/dev/null", "--wrap=true")
    expect(status == 0, "sbatch", said)
    number, end = said.strip(), time.monotonic() + LIMIT
    while time.monotonic() < end:
        _, text = run("scontrol", "show", "job", number)
        state, reason = re.search(r"JobState=(\S+) Reason=(\S+)", text).groups()
        if state == "COMPLETED" or (state == "PENDING" and "held" in reason.lower()):
            return number, state, reason
        time.sleep(0.1)
    return number, state, reason


def prolog(w):
    for what, words in (("good", {}), ("unseen", {}), ("degraded", {}), (None, {"program": "hung", "PEERPATH_DEADLINE": "2"}),
                        (None, {"program": "dies"}), (None, {"program": "/nonexistent/peerpath"})):
        w.set(what or "", **words)
        _, state, reason = job()
        expect(state == "COMPLETED" and free(*node()), f"{what or words}: the job runs", state, reason, node())
    for what, words, begins in (("bad", {}, "peerpath: fail: "), ("unseen", {"PEERPATH_ON_UNKNOWN": "fail"}, "peerpath: unknown: "),
                                ("degraded", {"PEERPATH_FAIL_ON": "degraded"}, "peerpath: degraded: ")):
        w.set(what, **words)
        number, state, reason = job()
        expect(state == "PENDING", f"{what}: the job does not run", state, reason)
        w.until(f"{what}: the node is drained", lambda s, r, b=begins: drained(s, r) and r.startswith(b))
        # Its own reason is what the health check knows it by; Slurm's would be "Prolog error".
        w.set("good")
        expect(script() == (0, ""), "the health check", script())
        w.until(f"{what}: the health check takes it back", free)
        run("scancel", number)
        expect(job()[1] == "COMPLETED", f"{what}: then jobs run")
    # A link in a folder of Prologs; and one that lost what it needs.
    w.set("bad")
    os.mkdir("prolog.d")
    os.symlink(f"{SCRIPTS}/prolog", "prolog.d/50-peerpath")
    status, said = run("prolog.d/50-peerpath", env={"SLURMD_NODENAME": "lab1"})
    expect(status == 1 and "no RDMA device" in said, "a Prolog by a link", status, said)
    w.until("a Prolog by a link: the node is drained", lambda s, r: drained(s, r) and r.startswith("peerpath: fail: "))
    w.set("good")
    expect(script() == (0, ""), "the health check", script())
    w.until("the health check takes it back", free)
    shutil.copy(f"{SCRIPTS}/prolog", "prolog.d/alone")
    status, said = run("prolog.d/alone", env={"SLURMD_NODENAME": "lab1"})
    expect(status == 0 and "healthcheck cannot be read" in said, "a Prolog alone", status, said)
    # Somebody's drain stays somebody's when a job that was on its way meets a bad node.
    run("scontrol", "update", "NodeName=lab1", "State=drain", "Reason=disk is swapped, Anna")
    w.set("bad")
    status, said = script("prolog")
    expect(status == 1 and "no RDMA device" in said, "the Prolog by hand", status, said)
    expect(node() == ("IDLE+DRAIN", "disk is swapped, Anna"), "somebody's drain", node())


def inside():
    os.chdir(os.environ["HOME"])
    # Of this namespace alone.
    subprocess.run(["mount", "-t", "tmpfs", "none", "/etc/default"], check=True)
    w = World()
    w.set("good")
    {"health": health, "prolog": prolog}[PART](w)
    print(f"{faults} faults, asked {w.asked()} times")
    return 1 if faults else 0


def main():
    if "PEERPATH_TEST_SLURM" in os.environ:
        return inside()
    if os.environ.get("PEERPATH_SANITIZED"):
        print("Slurm and a shell between change nothing for a sanitizer: health runs under it in e2e-health")
        return 77
    lines = {"health": ["--conf", f"HealthCheckProgram={SCRIPTS}/healthcheck", "--conf", "HealthCheckInterval=1",
                        # A node that is down stays down until somebody says otherwise.
                        "--conf", "ReturnToService=0"],
             "prolog": ["--conf", f"Prolog={SCRIPTS}/prolog"]}[PART]
    if not os.path.isdir("/etc/default"):
        print("no /etc/default on this machine")
        return 77
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([LAB, *lines, "--", sys.executable, *sys.argv], check=False,
                              env={**os.environ, "HOME": home, "PEERPATH_TEST_SLURM": "1"})
    return done.returncode if done.returncode >= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
