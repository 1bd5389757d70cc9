#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nccl run and nccl perf where something is missing or in the way: no GPU, no NCCL, a library that is none, logs and documents
that cannot be read, a full disk, names that cannot be written, a narrow terminal. One line that says what to do, the right
exit status, and nothing left behind; what a job was is never lost to it.

The judges are the kernel's own errors (a tmpfs with a size, /dev/full, directories) and 80 columns.

usage: nccl_usage.py PEERPATH PROJECT FAKE-NCCL FAKE-CUDA
"""
import copy
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

PEERPATH, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
NCCL, CUDA = sys.argv[3], sys.argv[4]
FAULTS = []
TOP = pathlib.Path(tempfile.mkdtemp(prefix="test-nccl-usage-"))
LIMIT = 100


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what[:1500], flush=True)


def environment(nccl=True, cuda=True, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_", "OMPI_", "PMI", "LD_", "VIRTUAL_ENV", "CUDA_VISIBLE"))}
    path = ":".join(([NCCL] if nccl else []) + ([CUDA] if cuda else []))
    return {**kept, "LD_LIBRARY_PATH": path, "TMPDIR": str(TOP), **more}


def nccl(*words, env=None, **more):
    done = subprocess.run([PEERPATH, "nccl", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
                          env=env or environment(), **more)
    left = [p.name for p in TOP.glob("peerpath-*")]
    need(not left, f"{words}: left {left}")
    return done.returncode, done.stdout, done.stderr


def script(name, text):
    path = TOP / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(0o755)
    return str(path)


def one_line(what, got, status, *parts):
    code, out, err = got
    need(code == status and err.count("\n") == 1 and not out, f"{what}: {code} {out[:200]!r} {err!r}")
    for part in parts:
        need(part in err, f"{what}: {err!r} lacks {part}")


def absent():
    own = ("run", "-q", "--busy-ok", "--ranks", "2", "--one-gpu", "-b", "4K", "-e", "4K")
    empty = TOP / "empty.so"
    empty.write_bytes(b"no library")
    for form in ((), ("--json",), ("--controls",)):
        one_line("no CUDA", nccl(*own, *form, env=environment(cuda=False)), 2, "libcuda.so.1", "driver")
        one_line("no GPU", nccl(*own, *form, env=environment(CUDA_VISIBLE_DEVICES="")), 2, "CUDA sees none")
        one_line("no library", nccl(*own, *form, "--library", empty), 2, str(empty), "cannot be loaded")
        one_line("another library", nccl(*own, *form, "--library", f"{CUDA}/libcuda.so.1"), 2, "has no nccl")
    # a command of the user's own needs neither here; that there was no NCCL is no verdict
    code, out, err = nccl("run", "-q", "--", "true", env=environment(nccl=False, cuda=False))
    need(code == 2 and "no line of NCCL" in out, f"no NCCL in it: {code} {out[-300:]} {err}")


def usage():
    for words, part in (((), "run"), (("run",), "--gpus"), (("run", "--arm", "D", "--", "true"), "--arm"), (("run", "--arm", "pinned", "--", "true"), "--net"),
                        (("run", "--arm", "A", "--controls", "--", "true"), "excludes"), (("run", "--timeout", "soon", "--", "true"), "10m"),
                        (("run", "--join"), "FILE"), (("run", "--join", "--controls", "x"), "excludes"), (("run", "--gpus", "0", "--", "true"), "--gpus"),
                        (("run", "-q", "--", "/nowhere/at/all"), "/nowhere/at/all"), (("rnu", "--", "true"), "run"), (("run", "--cotnrols", "--", "true"), "--controls"),
                        (("perf", "all_reduce", "--ranks", "x", "--one-gpu"), "--ranks")):
        code, out, err = nccl(*words)
        need(code == 64 and not out and part in err and len(err.splitlines()) == 1, f"{words}: {code} {out[:100]!r} {err!r}")


def unreadable():
    one_line("no document", nccl("run", "--join", "/nowhere.json"), 65, "/nowhere.json")
    one_line("a directory", nccl("run", "--join", "/"), 65)
    whole = (PROJECT / "tests/fixtures/nccl_run/two-nodes.json").read_text(encoding="utf-8")
    for name, text in (("cut", whole[:5000]), ("empty", ""), ("another", '{"schema": "peerpath.bench/1"}'), ("newer", whole.replace("nccl_run/1", "nccl_run/9"))):
        (TOP / name).write_text(text, encoding="utf-8")
        one_line(name, nccl("run", "--join", TOP / name), 65, name)
    one_line("judge: a directory", nccl("judge", "/"), 65)
    # a log that is no file, and one whose reader would wait for ever: the job is judged without them
    for what, put in (("a directory", "mkdir $F"), ("a pipe", "mkfifo $F"), ("a link away", "ln -s /etc/passwd $F"), ("a socket", "true")):
        code, out, err = nccl("run", "-q", "--json", "--no-observer", "--", script("odd", f"F=$(echo $NCCL_DEBUG_FILE | sed 's/%h/h/; s/%p/1/')\n{put}"))
        need(code == 2 and json.loads(out)["runs"][0]["judgement"]["claim_gdr"] == "unproven" and "root:" not in out, f"{what}: {code} {err}")


def unwritable():
    began = TOP / "began"
    job = script("begins", f"echo x >> {began}")
    for what, words, status in (("no directory", ("-o", "/nowhere/x.json"), 70), ("a device", ("-o", "/dev/full"), 70), ("it is there", ("-o", job), 64)):
        one_line(what, nccl("run", "-q", *words, "--", job), status, "--output", words[1])
        need(not began.exists(), f"{what}: the job ran, and its result had no place")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([PEERPATH, "nccl", "run", "-q", "-j", "--", "true"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    need(done.returncode == 70 and "No space left" in done.stderr and done.stderr.count("\n") == 1, f"/dev/full: {done}")
    code, out, err = nccl("run", "-q", "--keep-logs", "/dev/null/x", "--", "true")
    need(code == 2 and "--keep-logs" in err and "Gate 3" in out, f"--keep-logs: {code} {err}")
    code, out, err = nccl("run", "-q", "--", "true", env=environment(TMPDIR="/nowhere"))
    need(code == 70 and "TMPDIR" in err and err.count("\n") == 1, f"TMPDIR: {code} {err}")


def full_disk():
    """A temporary directory of 256 KiB: what fits is judged, that the rest did not is said, and the job's own result stays."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        print("no user and mount namespaces: no full disk")
        return
    small = TOP / "small"
    small.mkdir()
    log = PROJECT / "tests/fixtures/nccl/made-proven.log"
    job = script("writes_perf", f"F=$(echo $NCCL_DEBUG_FILE | sed 's/%h/h/; s/%p/1/')\n(cat {log}; head -c 1000000 /dev/zero) > $F 2>/dev/null\necho its own word; exit 0")
    done = subprocess.run(["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=256k tmpfs {small} && TMPDIR={small} exec "$@"', "sh",
                           PEERPATH, "nccl", "run", "-q", "--no-observer", "--", job], capture_output=True, text=True, env=environment(), check=False, timeout=LIMIT)
    need("is full" in done.stderr and "TMPDIR" in done.stderr and done.stderr.count("\n") == 1, f"full: {done.stderr}")
    need(done.returncode in (1, 2) and "its own word" in done.stdout and "Gate 3" in done.stdout, f"full: {done.returncode} {done.stdout[-500:]}")


def narrow():
    """Pasted into a ticket: 80 columns, whatever stands in the table."""
    document = json.loads((PROJECT / "tests/fixtures/nccl_run/two-nodes.json").read_text(encoding="utf-8"))
    wide = copy.deepcopy(document)
    for run in wide["runs"]:
        run["judgement"]["path"] = "undetermined"
        for node in run["nodes"]:
            for witness in ("library", "kernel"):
                for way in node[witness]["registered"].values():
                    way["regions"] = 0
    for name, d in (("made", document), ("undetermined", wide)):
        (TOP / f"{name}.json").write_text(json.dumps(d), encoding="utf-8")
        for env in (environment(COLUMNS="200"), environment(COLUMNS="40")):
            code, out, err = nccl("run", "--join", TOP / f"{name}.json", env=env)
            long = [line for line in out.splitlines() if len(line) > 80]
            need(not long and not err, f"{name}: {long[:2]} {err}")
        need(name != "undetermined" or "undetermined  undetermined" in out, f"a word is broken: {out[:400]}")
    code, out, err = nccl("run", "-q", "--busy-ok", "--ranks", "2", "--one-gpu", "--sizes", "4K", "-n", "2")
    long = [line for line in out.splitlines() if len(line) > 80 and not line.startswith(("#", " ")) and "Gate" not in line]
    need(code == 1 and not long, f"a run: {code} {long[:2]} {err[-300:]}")


def interrupted():
    """Ctrl-C: what was seen is shown, 130, nobody is left; in the middle of the controls no further one begins."""
    mark = TOP / "arms"
    job = script("long", f"echo x >> {mark}; exec sleep 1000")
    process = subprocess.Popen([PEERPATH, "nccl", "run", "-q", "--controls", "--json", "--", job], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    for _ in range(400):
        if mark.exists():
            break
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    need(process.returncode == 130 and mark.read_text() == "x\n", f"Ctrl-C: {process.returncode} {mark.read_text()!r}")
    need(json.loads(out)["runs"][0]["nodes"][0]["interrupted"] is True and len(err.splitlines()) <= 1, f"Ctrl-C: {err}")


def main():
    try:
        for test in (absent, usage, unreadable, unwritable, full_disk, narrow, interrupted):
            began = time.monotonic()
            test()
            print(f"{test.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    finally:
        subprocess.run(["rm", "-rf", str(TOP)], check=False)
    return 1 if FAULTS else 0


sys.exit(main())
