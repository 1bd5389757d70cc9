#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prove --quick, exit styles and feature files, by the published contracts of those who read them.

Nagios: the monitoring plug-ins' guidelines (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; one line, figures behind a
bar). NPD: custom plug-in monitor (0 OK, 1 not OK, 2 unknown; the condition's message is 80 bytes). Slurm: a
program that exits with other than 0 drains. NFD: feature files of the local source; Kubernetes: label values.

usage: health.py PEERPATH PART FAKE-NVML STUCK
"""
import ctypes
import datetime
import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import time

import machines
from checks import fail, finish
import checks

PART, NVML, STUCK = sys.argv[2], sys.argv[3], sys.argv[4]
WORDS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
FIGURE = r"'[^'=]+'=-?[0-9.]+(s|%|B|c)?;[0-9.:~@]*;[0-9.:~@]*;[0-9.]*(;[0-9.]*)?"
# Kubernetes: API conventions, "Syntax and character set" of labels.
VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

# verdict of the machine, and the status that each contract has for it
MACHINES = {
    "good": ((), "pass", {"nagios": 0, "npd": 0, "slurm": 0}),
    "degraded": (("acs-redirect",), "degraded", {"nagios": 1, "npd": 1, "slurm": 1}),
    "bad": (("no-rdma-device",), "fail", {"nagios": 2, "npd": 1, "slurm": 1}),
    "unseen": (("acs-unreadable",), "unknown", {"nagios": 3, "npd": 2, "slurm": 0}),
}


def go(*args, **more):
    checks.cases += 1
    status, out, err = machines.run(*args, **more)
    if status < 0 or b"Sanitizer" in err:
        fail(args, f"{status} {err.decode(errors='replace')[-400:]}")
    return status, out.decode(), err.decode()


def expect(true, name, *what):
    if not true:
        fail(name, " ".join(map(str, what)))


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if not k.startswith("SLURM")}, **more}


def line_of(style, status, out, err, name):
    """The contract of what is printed."""
    if style == "slurm":
        expect((out == "") == (status == 0), name, "slurm: silent when fine", status, out)
        expect(out.count("\n") <= 1 and not out or out.startswith("peerpath: "), name, out)
        return out
    expect(out.count("\n") == 1 and out.endswith("\n"), name, "one line", repr(out))
    if style == "npd":
        expect(len(out.rstrip("\n").encode()) <= 80, name, len(out), out)
    else:
        head = re.fullmatch(rf"PEERPATH ([A-Z]+) - ([^|]+) \| {FIGURE}( {FIGURE})*\n", out)
        expect(head and head[1] == WORDS.get(status), name, status, out)
    return out


def styles(work):
    for name, (faults, verdict, statuses) in MACHINES.items():
        tree = machines.make(f"{work}/{name}", faults=faults)
        native, out, _ = go("prove", "--quick", "-j", "--replay", tree)
        expect(json.loads(out)["verdict"] == verdict, name, out[:300])
        expect(native == {"pass": 0, "degraded": 1, "fail": 1, "unknown": 2}[verdict], name, native)
        expect(go("prove", "-j", "--no-bundle", "--replay", tree)[0] == native, name, "as without --quick")
        for verb in (("prove", "--quick"), ("check",)):
            for style, wanted in statuses.items():
                status, out, err = go(*verb, "--replay", tree, f"--exit-style={style}")
                expect(status == wanted, name, verb, style, status, "is not", wanted)
                line = line_of(style, status, out, err, name)
                expect(not line or verdict in line, name, style, line)
            # Degraded is fine where that was said, in every style.
            for style in statuses:
                status, out, _ = go(*verb, "--replay", tree, f"--exit-style={style}", "--fail-on=fail")
                wanted = 0 if verdict == "degraded" else statuses[style]
                expect(status == wanted, name, style, "--fail-on=fail", status)
            status, out, err = go(*verb, "--replay", tree, "--exit-style=slurm", "--on-unknown=fail")
            expect(status == (verdict != "pass"), name, "--on-unknown=fail", status)
            status, out, err = go(*verb, "--replay", tree, "--exit-style=slurm", "--on-unknown=pass")
            expect((status == 0) == (verdict in ("pass", "unknown")), name, "--on-unknown=pass", status)
            expect(verdict != "unknown" or "unknown" in err, name, "why it passes is for the log", err)
            for most in ("16", "40", "200"):
                _, out, _ = go(*verb, "--replay", tree, "--exit-style=npd", "--max-output", most)
                expect(len(out.encode()) <= int(most) + 1, name, most, out)
    # No bundle, unless asked for.
    os.mkdir(f"{work}/here")
    go("prove", "--quick", "--replay", f"{work}/good", cwd=f"{work}/here")
    expect(os.listdir(f"{work}/here") == [], "--quick", "leaves", os.listdir(f"{work}/here"))
    go("prove", "--quick", "--replay", f"{work}/good", "-o", "node.tar.zst", cwd=f"{work}/here")
    expect(os.listdir(f"{work}/here") == ["node.tar.zst"], "--quick -o", os.listdir(f"{work}/here"))
    for words in ((), ("-j",), ("--exit-style=nagios",)):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([machines.PROGRAM, "prove", "--quick", "--replay", f"{work}/good", *words],
                                  stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        expect(done.returncode == (3 if "--exit-style=nagios" in words else 70), "full disk", words, done.returncode)
        expect("No space left" in done.stderr and done.stderr.count("\n") == 1, "full disk", words, done.stderr)
    # In a job's allocation it is about this node alone: no other rank is waited for.
    status, _, _ = go("prove", "--quick", "--replay", f"{work}/good",
                      env=environment(SLURM_PROCID="1", SLURM_NTASKS="2", SLURM_JOB_ID="1", SLURM_STEP_ID="0"))
    expect(status == 0, "as a rank of a job", status)


def usage(work):
    tree = machines.make(f"{work}/good")
    for words, said in ((("--quick", "--peer", "x"), "--quick excludes --peer"),
                        (("--quick", "--simulate"), "--quick excludes --simulate"),
                        (("--quick", "--through", "2"), "memory"),
                        (("--on-unknown=pass",), "--exit-style=slurm"), (("--max-output", "80"), "--exit-style"),
                        (("--exit-style=npd", "-j"), "--json"), (("--exit-style=npd", "--max-output", "1"), "16 to 1000"),
                        (("--quick", "--deadline", "soon"), "--deadline does not take"),
                        (("--nfd-expires", "1h"), "--nfd"), (("--nfd", "x", "--nfd-expires", "never"), "--nfd-expires")):
        styled = any(w.startswith("--exit-style=npd") for w in words)
        status, out, err = go("prove", "--replay", tree, *words, cwd=work)
        expect(status == (2 if styled else 64) and said in err + out, words, status, out, err)
    # A command line that is wrong is never fine, and within what the contract knows.
    for style, wanted in (("nagios", 3), ("npd", 2), ("slurm", 64)):
        for words in (("--quikc",), ("--quick", "--peer", "x"), ("operand",)):
            status, out, _ = go("prove", f"--exit-style={style}", *words)
            expect(status == wanted, style, words, status, out)
        status, out, _ = go("prove", "--quick", "--exit-style", style, "--frobnicate")
        expect(status == wanted, style, "separate word", status)
    # What cannot be read is unknown.
    for style, wanted in (("nagios", 3), ("npd", 2), ("slurm", 0)):
        status, out, err = go("prove", "--quick", "--replay", f"{work}/absent", f"--exit-style={style}")
        expect(status == wanted and "absent" in out + err, style, status, out, err)
    status, _, _ = go("prove", "--quick", "--replay", f"{work}/absent", "--exit-style=slurm", "--on-unknown=fail")
    expect(status == 1, "slurm, unreadable, --on-unknown=fail", status)


def hung(work):
    """Nothing returns: the verdict comes all the same."""
    library = environment(LD_LIBRARY_PATH=NVML, PP_FAKE_NVML="block")
    kernel = environment(LD_PRELOAD=STUCK)
    if machines.SANITIZED:
        # A sanitizer wants to be the first library, and its leaks are looked for when a process ends by itself.
        kernel = None
    started = time.monotonic()
    status, out, err = go("prove", "--quick", "-j", env=library)
    doc = json.loads(out)
    expect(any(re.fullmatch(r"nvmlInit_v2 did not return in \d+ ms", s) for s in doc["stuck"]), "stuck", doc["stuck"])
    expect(doc["verdict"] in ("unknown", "fail"), "verdict", doc["verdict"])
    status, out, err = go("prove", "--quick", env=library)
    expect("did not return" in out, "text", out)
    if doc["verdict"] == "unknown":
        for style, wanted in (("nagios", 3), ("npd", 2), ("slurm", 0)):
            status, out, err = go("prove", "--quick", "--deadline", "1", f"--exit-style={style}", env=library)
            expect(status == wanted, style, status)
            expect("nvmlInit_v2 did not return in" in out + err, style, out, err)
        status, out, err = go("prove", "--quick", "--deadline", "1", "--exit-style=slurm", "--on-unknown=fail", env=library)
        expect(status == 1, "slurm, --on-unknown=fail", status)
    for style, wanted in (("nagios", 3), ("npd", 2), ("slurm", 0), (None, 2)) if kernel else ():
        words = [f"--exit-style={style}"] if style else []
        status, out, err = go("prove", "--quick", "--deadline", "1", "--nfd", f"{work}/labels", *words, env=kernel)
        expect(status == wanted and "did not end in 1000 ms" in out + err, style, status, out, err)
        with open(f"{work}/labels", encoding="ascii") as text:
            expect("peerpath.io/verdict=unknown\n" in text.read(), "labels", style)
    if kernel:
        status, out, err = go("prove", "--quick", "--deadline", "1", "-j", env=kernel)
        expect(json.loads(out)["verdict"] == "unknown", "document", out)
        status, out, err = go("check", "--deadline", "1", "--exit-style=npd", env=kernel)
        expect(status == 2 and "did not end" in out, "check", status, out)
    # Not how long, but that it ends at all: the library never returns.
    expect(time.monotonic() - started < 120, "deadlines", time.monotonic() - started)

    # Who ends the program ends its child.
    env = kernel or library
    p = subprocess.Popen([machines.PROGRAM, "prove", "--quick", "--deadline", "60"], env=env,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    children = []
    while not children and time.monotonic() < end:
        time.sleep(0.05)
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as text:
            children = text.read().split()
    p.send_signal(signal.SIGKILL)
    p.wait()
    while any(os.path.exists(f"/proc/{c}/exe") for c in children) and time.monotonic() < end + 20:
        time.sleep(0.05)
    expect(children and not any(os.path.exists(f"/proc/{c}/exe") for c in children), "killed", children)


class Watch:
    """inotify: what happens in a directory."""
    CREATE, MOVED_TO, MOVED_FROM, CLOSE_WRITE = 0x100, 0x80, 0x40, 0x8

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        mask = self.CREATE | self.MOVED_TO | self.MOVED_FROM | self.CLOSE_WRITE
        if self.fd < 0 or self.libc.inotify_add_watch(self.fd, path.encode(), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def events(self):
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            _, mask, _, size = struct.unpack_from("iIII", data, at)
            found.append((mask, data[at + 16:at + 16 + size].rstrip(b"\0").decode()))
            at += 16 + size
        return found


def labels(work):
    for name, (faults, verdict, _) in MACHINES.items():
        tree = machines.make(f"{work}/{name}", faults=faults)
        os.makedirs(f"{work}/features.d", exist_ok=True)
        file = f"{work}/features.d/peerpath"
        watch = Watch(f"{work}/features.d")
        before = datetime.datetime.now(datetime.timezone.utc)
        go("prove", "--quick", "--replay", tree, "--nfd", file, "--nfd-expires", "90m")
        for mask, seen in watch.events():
            expect(seen.startswith(".") or mask == Watch.MOVED_TO, name, f"{seen}: event {mask:#x}")
        expect(os.listdir(f"{work}/features.d") == ["peerpath"], name, os.listdir(f"{work}/features.d"))
        expect(os.stat(file).st_mode & 0o777 == 0o644, name, "mode")
        with open(file, encoding="ascii") as text:
            lines = text.read().splitlines()
        expiry = re.fullmatch(r"# \+expiry-time=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)", lines[0])
        when = datetime.datetime.fromisoformat(expiry[1].replace("Z", "+00:00"))
        expect(abs((when - before).total_seconds() - 5400) < 120, name, "expiry", when)
        pairs = dict(line.split("=", 1) for line in lines[1:])
        expect(len(pairs) == len(lines) - 1 <= 12, name, len(pairs), "labels")
        expect(os.stat(file).st_size <= 64 << 10, name, "size")
        for key, value in pairs.items():
            expect(re.fullmatch(r"peerpath\.io/[a-z]([-a-z]{0,61}[a-z])?", key), name, key)
            expect(VALUE.fullmatch(value), name, key, value)
        expect(pairs["peerpath.io/verdict"] == verdict, name, pairs)
        expect(pairs["peerpath.io/gpus"] == "2", name, pairs)
        _, out, _ = go("prove", "--quick", "-j", "--replay", tree)
        document = json.loads(out)
        for key in ("software_fingerprint", "topology_class"):
            expect(document[key].startswith(pairs["peerpath.io/" + key.replace("_", "-")]), name, key)
    # Where it cannot be written, that is said, and nothing is left.
    status, _, err = go("prove", "--quick", "--replay", f"{work}/good", "--nfd", f"{work}/none/peerpath")
    expect(status == 70 and "cannot write" in err, "no directory", status, err)
    status, _, err = go("prove", "--quick", "--replay", f"{work}/good", "--nfd", f"{work}/features.d/")
    expect(status == 70, "a directory", status, err)
    # A device or a pipe stays what it is: a rename would break it for everybody.
    os.mkfifo(f"{work}/pipe")
    status, _, err = go("prove", "--quick", "--replay", f"{work}/good", "--nfd", f"{work}/pipe")
    expect(status == 70 and "no regular file" in err and stat.S_ISFIFO(os.stat(f"{work}/pipe").st_mode), "a pipe", status, err)
    # Node names and firmware strings are free text: this machine's own, whatever they are, give legal values.
    go("prove", "--quick", "--nfd", f"{work}/own")
    with open(f"{work}/own", encoding="ascii") as text:
        for line in text.read().splitlines()[1:]:
            expect(VALUE.fullmatch(line.partition("=")[2]), "this machine", line)


def main():
    machines.need_program()
    with machines.scratch() as work:
        {"styles": styles, "usage": usage, "hung": hung, "labels": labels}[PART](work)
    return finish(f"health {PART}")


if __name__ == "__main__":
    sys.exit(main())
