#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath nccl run from outside: what a command is started with, what passes through, how it ends, what is left.

The judges are the command itself (what it found in its environment and on its descriptors), the kernel (/proc: who
lives, whose the terminal is, what a process used), and logs that NCCL wrote elsewhere or that tests/fixtures made.

usage: nccl_run.py PEERPATH PROJECT PART
"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

PEERPATH, PROJECT, PART = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
LOGS = PROJECT / "tests/fixtures/nccl"
LIMIT = 60
TOKEN = f"01234567{os.getpid():08d}"  # nobody else's: processes are found by it
FAULTS = []
TOP = pathlib.Path(tempfile.mkdtemp(prefix="test-nccl-run-"))


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SLURM_", "OMPI_", "PMI", "LD_"))}
    return {**kept, "TMPDIR": str(TOP), **more}


def script(name, text, shell="#!/bin/sh"):
    path = TOP / name
    path.write_text(f"{shell}\n{text}\n")
    path.chmod(0o755)
    return str(path)


def start(*words, env=None, **more):
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
    return subprocess.Popen([PEERPATH, "nccl", "run", *words], env=env or environment(), **more)


def run(*words, env=None, **more):
    process = start(*words, env=env, **more)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        need(False, f"{words}: did not end")
        return None, b"", b""
    return process.returncode, out, err


def observed(*words, env=None, **more):
    """The document of a run, its only arm, and its only node."""
    status, out, err = run("--json", *words, env=env, **more)
    try:
        document = json.loads(out)
        arm = document["runs"][0]
        return status, err, arm, arm["nodes"][0]
    except (ValueError, KeyError, IndexError) as e:
        need(False, f"{words}: no document ({e!r}): {out[-300:]!r} {err[-300:]!r}")
        return status, err, {}, {}


def until(what, limit=20):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def living(mark):
    """Processes that have @mark in their command line or environment, as the kernel says."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if "Z" == (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]:
                continue
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in text:
            found.append(int(entry.name))
    return found


def settings(arm, origin):
    return {s["name"]: s for s in arm.get("settings", []) if s["from"] == origin}


def part_settings():
    show = script("show", "env | grep -E '^(NCCL_|LD_AUDIT|PEERPATH_OBSERVE)' | sort")

    def seen(**env):
        status, out, err = run("--", show, env=environment(**env))
        lines = out.decode().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line), err.decode(), lines

    env, err, _ = seen()
    need(env.get("NCCL_DEBUG") == "INFO", f"NCCL_DEBUG: {env}")
    need(set(env["NCCL_DEBUG_SUBSYS"].split(",")) == {"INIT", "ENV", "NET", "GRAPH", "REG"}, f"subsystems: {env}")
    need(env["NCCL_DEBUG_FILE"].endswith("%h.%p.log"), f"file: {env}")
    need(os.access(env["LD_AUDIT"], os.R_OK) is True, f"auditor: {env}")
    need(env["PEERPATH_OBSERVE"].startswith(str(TOP)), f"observer's place: {env}")
    for name, value in env.items():
        need(any(f"{name}={value}" in line and "unset " + name in line for line in err.splitlines()), f"{name} is not said: {err}")
    need(set(env) == {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "LD_AUDIT", "PEERPATH_OBSERVE"}, f"added: {env}")

    env, err, _ = seen(NCCL_DEBUG="TRACE", NCCL_DEBUG_SUBSYS="COLL,net,INIT", NCCL_IB_HCA="=mlx5_1", LD_AUDIT="/nowhere/a.so")
    need(env["NCCL_DEBUG"] == "TRACE", "TRACE is lowered")
    need(env["NCCL_DEBUG_SUBSYS"] == "COLL,net,INIT,ENV,GRAPH,REG", f"the user's subsystems: {env}")
    need(env["LD_AUDIT"].endswith("libpeerpath-observe.so:/nowhere/a.so"), f"the user's auditor: {env}")
    need(env["NCCL_IB_HCA"] == "=mlx5_1", "the user's own setting")
    need("export NCCL_DEBUG_SUBSYS=COLL,net,INIT" in err, f"the reverse: {err}")
    env, _, _ = seen(NCCL_DEBUG_SUBSYS="^COLL,NET,INIT")
    need(env["NCCL_DEBUG_SUBSYS"] == "^COLL", f"exclusion: {env}")
    env, _, _ = seen(NCCL_DEBUG_SUBSYS="^NET")
    need(env["NCCL_DEBUG_SUBSYS"] == "ALL", f"exclusion of what is needed alone: {env}")
    env, _, _ = seen(NCCL_DEBUG_SUBSYS="^COLL,P2P")
    need(env["NCCL_DEBUG_SUBSYS"] == "^COLL,P2P", f"harmless exclusion: {env}")
    env, _, _ = seen(NCCL_DEBUG_SUBSYS="ALL", NCCL_DEBUG="info")
    need(env["NCCL_DEBUG_SUBSYS"] == "ALL" and env["NCCL_DEBUG"] == "info", f"enough already: {env}")

    status, _, err = run("--quiet", "--", show)
    need(b"NCCL_DEBUG" not in err, f"--quiet speaks: {err}")
    status, _, err = run("--no-observer", "--", show)
    need(b"--no-observer" in err and b"LD_AUDIT" not in err, f"--no-observer: {err}")

    conf = TOP / "conf"
    conf.write_text("NCCL_DEBUG=WARN\nNCCL_NET_GDR_LEVEL=LOC\nNCCL_IB_TIMEOUT=20\n")
    _, _, arm, _ = observed("--", show, env=environment(NCCL_CONF_FILE=str(conf), NCCL_IB_TIMEOUT="22", NCCL_SECRET_TOKEN="abc"))
    user, file, added = (settings(arm, o) for o in ("user", "nccl.conf", "logging"))
    need(file.get("NCCL_NET_GDR_LEVEL", {}).get("value") == "LOC", f"of the file: {file}")
    need("NCCL_IB_TIMEOUT" not in file and user.get("NCCL_IB_TIMEOUT", {}).get("value") == "22", f"the first wins: {user} {file}")
    need(added.get("NCCL_DEBUG", {}).get("was") == "WARN", f"the file's level: {added}")
    need(user.get("NCCL_SECRET_TOKEN", {}).get("value") != "abc", f"a secret: {user}")

    for arm, name, value in (("A", "NCCL_NET_GDR_LEVEL", "LOC"), ("B", "NCCL_DMABUF_ENABLE", "0"), ("C", "NCCL_NET_GDR_READ", "0")):
        status, out, err = run("--arm", arm, "--", show, env=environment(NCCL_NET_GDR_LEVEL="SYS"))
        need(f"{name}={value}\n" in out.decode(), f"arm {arm}: {out}")
    status, out, err = run("--arm", "pinned", "--net", "IB", "--", show)
    need("NCCL_NET=IB\n" in out.decode(), f"pinned: {out}")
    status, out, err = run("--json", "--controls", "--net", "IB", "--", show)
    arms = [r["arm"] for r in json.loads(out)["runs"]]
    need(arms == ["unchanged", "A", "B", "C", "pinned"], f"controls: {arms}")
    need(err.decode().count("PEERPATH_OBSERVE=/") >= 5, "each arm runs the command")


def part_passthrough():
    blob = os.urandom(3 << 20)
    process = start("--quiet", "--", "cat", stdin=subprocess.PIPE)
    out, err = process.communicate(blob, timeout=LIMIT)
    need(out.startswith(blob), "standard input or output is not passed whole")
    status, out, err = run("--quiet", "--", script("both", "echo one; echo two >&2"))
    need(out.startswith(b"one\n") and b"two\n" in err, f"streams: {out} {err}")
    status, out, err = run("--quiet", "--json", "--", script("both", "echo one"))
    need(b"one" in err and json.loads(out)["schema"] == "peerpath.nccl_run/1", "with --json the document has standard output alone")
    status, _, err = run("--", "/nowhere/at/all")
    need(status == 64 and err.count(b"\n") <= 7 and b"/nowhere/at/all" in err, f"no command: {status} {err}")
    status, _, err = run("--", "no-such-command-anywhere")
    need(status == 64 and b"PATH" in err, f"not in PATH: {status} {err}")
    status, _, err = run("--")
    need(status == 64, f"no command at all: {status}")
    # descriptors that a launcher hands down
    read, write = os.pipe()
    os.set_inheritable(write, True)
    run("--quiet", "--", script("inherit", f"echo handed >&{write}"), pass_fds=[write])
    os.close(write)
    need(os.read(read, 100) == b"handed\n", "a descriptor of the launcher's is not passed on")
    need(not list(TOP.glob("peerpath-*")), f"left: {list(TOP.glob('peerpath-*'))}")


def part_end():
    status, err, arm, node = observed("-q", "--", script("three", "exit 3"))
    need(node["wait_status"] == 3 << 8 and "status 3" in node["died"] and status == 1, f"status 3: {status} {node}")
    status, err, arm, node = observed("-q", "--", script("kill", "kill -SEGV $$"))
    need(node["wait_status"] & 127 == signal.SIGSEGV and "SEGV" in node["died"], f"a signal: {node}")
    status, err, arm, node = observed("-q", "--", "true")
    need(node["wait_status"] == 0 and not node["died"], f"a good end: {node}")
    # processor time of those that have left the command's group and parent, too
    burn = "import os,time\nend=time.process_time()+%s\nwhile time.process_time()<end: pass\n"
    status, err, arm, node = observed("-q", "--", sys.executable, "-c", "import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork(): os._exit(0)\n"
                                      + "".join(" " + line + "\n" for line in (burn % 1.0).splitlines()) + " os._exit(0)\ntime.sleep(0.1)\n")
    need(node["cpu_seconds"] >= 0.9, f"a daemon's processor time is lost: {node['cpu_seconds']}")
    # what outlives it is ended, and said
    mark = f"MARK_{os.getpid()}_left"
    began = time.monotonic()
    status, err, arm, node = observed("-q", "--", script("leaves", f"setsid sh -c '{mark}=1 exec sleep 1000' & sleep 0.2"))
    need(not living(mark), f"left behind: {living(mark)}")
    need("1 of its processes" in node["died"], f"not said: {node['died']}")
    print(f"ended what was left after {time.monotonic() - began:.1f} s", flush=True)


def part_timeout():
    mark = f"MARK_{os.getpid()}_hang"
    stubborn = script("stubborn", f"trap '' TERM INT; echo begun; {mark}=1 sleep 1000 & wait; wait; {mark}=1 sleep 1000")
    began = time.monotonic()
    status, err, arm, node = observed("-q", "--timeout", "2s", "--", stubborn)
    took = time.monotonic() - began
    need(node["timed_out"] is True and "2 s" in node["died"], f"not said: {node}")
    need(took < 30, f"took {took} s")
    need(not living(mark), f"left behind: {living(mark)}")
    need(status == 1, f"exit {status}")
    # what it wrote until then is judged
    log = LOGS / "fail-completion-error.log"
    hang = script("hang", f"cp {log} $(echo $NCCL_DEBUG_FILE | sed s/%h/h/ | sed s/%p/7/); {mark}=1 sleep 1000")
    status, err, arm, node = observed("-q", "--timeout", "2s", "--", hang)
    need(node["timed_out"] is True and arm["root_error"], f"no root cause: {arm.get('root_error')}")
    print("root:", arm["root_error"], flush=True)
    need(not living(mark), f"left behind: {living(mark)}")


def part_signals():
    mark = f"MARK_{os.getpid()}_signal"
    said = TOP / "said"
    polite = script("polite", f"trap 'echo asked > {said}; exit 9' TERM INT\necho begun\n{mark}=1 sleep 1000 &\nwait")
    for number in (signal.SIGTERM, signal.SIGINT):
        said.unlink(missing_ok=True)
        process = start("-q", "--json", "--", polite)
        need(until(lambda: living(mark)), "it does not begin")
        process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT)
        need(process.returncode == 130, f"signal {number}: exit {process.returncode}: {err}")
        need(said.exists(), f"signal {number} does not reach the command")
        need(json.loads(out)["runs"][0]["nodes"][0]["interrupted"] is True, f"signal {number}: {out[:200]}")
        need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    # to the process, to its group and through its parent: one signal, after which there is time to tidy up
    slow = script("slow", f"trap 'sleep 1; echo asked > {said}; exit 9' TERM\necho begun\n{mark}=1 sleep 1000 &\nwait")
    said.unlink(missing_ok=True)
    process = start("-q", "--json", "--", slow)
    need(until(lambda: living(mark)), "it does not begin")
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.02)
    out, err = process.communicate(timeout=LIMIT)
    need(process.returncode == 130 and said.exists() and b'"interrupted": true' in out, f"three at a time: {process.returncode} {err}")
    need(not list(TOP.glob("peerpath-*")), f"three at a time: left: {list(TOP.glob('peerpath-*'))}")
    # a second one ends it at once
    stubborn = script("stubborn", f"trap '' TERM INT\n{mark}=1 sleep 1000\n{mark}=1 sleep 1000")
    process = start("-q", "--json", "--", stubborn)
    need(until(lambda: living(mark)), "it does not begin")
    process.send_signal(signal.SIGTERM)
    time.sleep(1)
    need(process.poll() is None, f"it does not wait for its command: {process.returncode}")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT)
    need(process.returncode == -signal.SIGTERM and not out, f"a second one: {process.returncode} {out[:200]} {err}")
    need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    # killed: nothing is left, whatever it has started
    tree = script("tree", f"trap '' TERM INT HUP\nsetsid sh -c 'trap \"\" TERM HUP; {mark}=1 sleep 1000; {mark}=1 sleep 1000' &\n{mark}=1 sleep 1000 & {mark}=1 sleep 1000")
    process = start("-q", "--", tree)
    need(until(lambda: len(living(mark)) >= 4), "the tree does not grow")
    time.sleep(0.5)
    process.kill()
    process.communicate(timeout=LIMIT)
    need(until(lambda: not living(mark)), f"left behind after SIGKILL: {living(mark)}")
    need(until(lambda: not living(f"test-nccl-run-{TOP.name[-8:]}")), "a process of peerpath's is left")
    run("-q", "--", "true")
    need(not list(TOP.glob("peerpath-*")), f"left: {list(TOP.glob('peerpath-*'))}")


def terminal(*words):
    """Starts it as a terminal's foreground job; returns its pid and the terminal."""
    pid, fd = pty.fork()
    if not pid:
        os.execve(PEERPATH, [PEERPATH, "nccl", "run", *words], environment())
    return pid, fd


def read_until(fd, mark, limit=20):
    text, end = b"", time.monotonic() + limit
    while mark not in text and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                text += os.read(fd, 65536)
            except OSError:
                break
    return text


def reap(pid, limit=30):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def part_terminal():
    mark = f"MARK_{os.getpid()}_tty"
    ask = script("ask", "import os, sys\nprint('leads' if os.tcgetpgrp(0) == os.getpgrp() == os.getpid() else 'no', flush=True)\n"
                 "print('heard', sys.stdin.readline().strip(), flush=True)", f"#!{sys.executable}")
    pid, fd = terminal("-q", "--", ask)
    text = read_until(fd, b"leads")
    need(b"leads" in text, f"the command does not have the terminal: {text}")
    os.write(fd, b"word\n")
    text = read_until(fd, b"heard word")
    need(b"heard word" in text, f"nothing is read from the terminal: {text}")
    read_until(fd, b"\0never", 2)
    reap(pid)
    os.close(fd)
    # Ctrl-C
    pid, fd = terminal("-q", "--", script("long", f"echo begun; {mark}=1 exec sleep 1000"))
    read_until(fd, b"begun")
    need(until(lambda: living(mark)), "it does not begin")
    time.sleep(0.3)
    os.write(fd, b"\x03")
    read_until(fd, b"\0never", 1)
    status = reap(pid)
    need(status == 130, f"Ctrl-C: exit {status}")
    need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    os.close(fd)
    # Ctrl-Z stops both, SIGCONT goes on with both
    pid, fd = terminal("-q", "--", script("short", f"echo begun; sleep 2; echo done"))
    read_until(fd, b"begun")
    time.sleep(0.5)
    os.write(fd, b"\x1a")
    done, status = os.waitpid(pid, os.WUNTRACED)
    need(os.WIFSTOPPED(status), f"Ctrl-Z does not stop it: {status}")
    os.kill(pid, signal.SIGCONT)
    text = read_until(fd, b"done")
    need(b"done" in text, f"it does not go on: {text}")
    read_until(fd, b"\0never", 2)
    reap(pid)
    os.close(fd)


def part_logs():
    proof, whole = LOGS / "made-proven-peermem.log", LOGS / "ib-gdrdma.log"
    put = f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h0/ | sed s/%p/11/)\ncp {proof} $F"
    status, err, arm, node = observed("-q", "--keep-logs", str(TOP / "kept"), "--", script("all_reduce_perf", put))
    need(arm["judgement"]["path"] == "gdr" and arm["judgement"]["claim_gdr"] == "proven", f"judged: {arm['judgement']}")
    need(arm["networks"] == "IB", f"networks: {arm['networks']}")
    speed = arm["speed"]
    rows = re.findall(r"^ *(\d+) +\d+ +float +sum +-?\d+ +([\d.]+) +[\d.]+ +([\d.]+) ", proof.read_text(), re.M)
    need(rows and speed and speed["large_bytes"] == int(rows[-1][0]) and speed["large_busbw_gb_per_s"] == float(rows[-1][2]), f"{rows} {speed}")
    need(speed and speed["small_bytes"] == int(rows[0][0]) and speed["small_us"] == float(rows[0][1]), f"{rows} {speed}")
    need(speed and speed["collective"] == "all_reduce", f"{speed}")
    need((TOP / "kept/unchanged/nccl.h0.11.log").read_bytes() == proof.read_bytes(), "--keep-logs")
    need(node["log_bytes"] == proof.stat().st_size and node["log_dropped_bytes"] == 0, f"{node['log_bytes']}")
    # the table on standard output, connections in the file
    table = [line for line in proof.read_text().splitlines() if "NCCL INFO" not in line]
    lines = [line for line in proof.read_text().splitlines() if "NCCL INFO" in line]
    (TOP / "table").write_text("\n".join(table) + "\n")
    (TOP / "lines").write_text("\n".join(lines) + "\n")
    put = f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h0/ | sed s/%p/11/)\ncp {TOP}/lines $F; cat {TOP}/table"
    status, err, arm, node = observed("-q", "--", script("apart", put))
    need(arm["judgement"]["claim_gdr"] == "proven", f"table on standard output: {arm['judgement']}")
    # what another NCCL, a framework or a plug-in says on standard error; it passes, too
    both = f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h0/ | sed s/%p/11/)\ngrep -v GDRDMA {TOP}/lines > $F; grep GDRDMA {TOP}/lines >&2; cat {TOP}/table"
    status, err, arm, node = observed("-q", "--keep-logs", str(TOP / "kept2"), "--", script("on_stderr", both))
    need(arm["judgement"]["claim_gdr"] == "proven", f"lines on standard error: {arm['judgement']}")
    need(b"GDRDMA" in err, "standard error does not pass")
    need((TOP / "kept2/unchanged/stderr").read_bytes().count(b"GDRDMA") == sum("GDRDMA" in line for line in lines), "--keep-logs: standard error")
    fail = LOGS / "fail-completion-error.log"
    status, err, arm, node = observed("-q", "--", script("fails", f"cat {fail} >&2; exit 6"))
    need("IBV_WC_LOC_QP_OP_ERR" in (arm["root_error"] or ""), f"a cause on standard error: {arm['root_error']}")
    # the user's own file
    mine = f"{TOP}/mine.%h.%p.txt"
    status, err, arm, node = observed("--", script("apart", put), env=environment(NCCL_DEBUG_FILE=mine))
    need((TOP / "mine.h0.11.txt").read_bytes() == (TOP / "lines").read_bytes(), "the user's file is not as it would have been")
    need(mine.encode() in err, f"not said: {err}")
    # a rank's log of 200 MB: bounded, counted, and its end is read
    big = TOP / "big"
    noise = b"h0:11:11 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 padding padding padding padding\n"
    with big.open("wb") as f:
        f.write((TOP / "lines").read_bytes())
        for _ in range(200 * 1000 * 1000 // len(noise) // 1000):
            f.write(noise * 1000)
        f.write((TOP / "table").read_bytes())
    put = f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h0/ | sed s/%p/11/)\nln {big} $F"
    status, err, arm, node = observed("-q", "--", script("big_perf", put))
    need(node["log_bytes"] <= 64 << 20 and node["log_bytes"] + node["log_dropped_bytes"] == big.stat().st_size, f"{node['log_bytes']} {node['log_dropped_bytes']}")
    need(arm["judgement"]["claim_gdr"] == "proven", f"beginning and end are enough here: {arm['judgement']}")
    big.unlink()
    # two libraries, as the kernel shows what is mapped
    hold = ("import mmap, sys, time\nfor p in sys.argv[1:]:\n f = open(p, 'r+b'); m = mmap.mmap(f.fileno(), 0); globals()['m' + p] = m\n"
            "time.sleep(1.5)\n")
    for name in ("libnccl.so.2.18.1", "libnccl.so.2.27.7", "libnccl-net.so"):
        (TOP / name).write_bytes(b"x" * 4096)
    _, _, arm, node = observed("-q", "--", sys.executable, "-c", hold, str(TOP / "libnccl.so.2.18.1"), str(TOP / "libnccl-net.so"))
    need(arm["nccl_library"] == str(TOP / "libnccl.so.2.18.1") and arm["nccl_version"] == "2.18.1" and node["ranks"] == 1, f"{arm['nccl_library']} {node}")
    _, _, arm, node = observed("-q", "--", sys.executable, "-c", hold, str(TOP / "libnccl.so.2.18.1"), str(TOP / "libnccl.so.2.27.7"))
    need(node["nccl_libraries"] == 2, "two libraries are not counted")
    need("2.18.1" in arm["nccl_version"] and "2.27.7" in arm["nccl_version"], f"{arm['nccl_version']}")


def need_auditor():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a sanitizer and an auditor do not share a process")
        sys.exit(77)


def part_soft():
    """Below `peerpath soft`: the observer and the device's registry count the same regions, and all is marked."""
    need_auditor()
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        print("user and network namespaces are not permitted here")
        sys.exit(77)
    mesh = sys.argv[4]
    done = subprocess.run(["unshare", "-rn", "sh", "-c", f"ip link set lo up; exec {PEERPATH} soft -- {PEERPATH} nccl run -q --json -- {mesh} -n 3 -c 20000"],
                          capture_output=True, timeout=LIMIT, env=environment(), check=False)
    arm = json.loads(done.stdout)["runs"][0]
    node = arm["nodes"][0]
    # docs of the test program: each member registers what it sends from and receives into
    need(node["library"]["registered"]["host"]["regions"] == 6, f"observer: {node['library']}")
    need(node["kernel"]["registered"]["host"]["regions"] == 6, f"registry: {node['kernel']}")
    need(node["observed"]["queue_pairs"] >= 6 and node["observed"]["hcas"], f"{node['observed']}")
    # without a made /sys there is no counter: said once, with what to do, and no other device's stands in
    need(not node["traffic"]["ports"] and "--sysfs" in (node["traffic"]["why_no_ports"] or ""), f"ports: {node['traffic']}")
    done = subprocess.run(["unshare", "-rn", "sh", "-c", f"ip link set lo up; exec {PEERPATH} soft -- {PEERPATH} nccl run --controls --json -- {mesh} -n 2 -c 20000"],
                          capture_output=True, timeout=LIMIT, env=environment(), check=False)
    need(done.stderr.decode().count("no port counters") == 1, f"said {done.stderr.decode().count('no port counters')} times: {done.stderr[-500:]}")
    need(arm["simulated"] is True and node["simulated"] is True, "not marked as simulated")
    need(node["cpu_seconds"] > 0.1, f"processor time: {node['cpu_seconds']}")


def part_controls():
    """tests/fake's NCCL on the software device: what it registers, and by which way, is counted by the observer in its
    processes and by the device's registry; what each control must take away is DESIGN's."""
    need_auditor()
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        print("user and network namespaces are not permitted here")
        sys.exit(77)
    fakes = ":".join(sys.argv[4:])
    words = "--controls -q --json --ranks 2 --one-gpu -b 8 -e 4M -f 64 -n 20"  # longer than until the first look
    done = subprocess.run(["unshare", "-rn", "sh", "-c", f"ip link set lo up; exec {PEERPATH} soft -- {PEERPATH} nccl run {words}"],
                          capture_output=True, timeout=150, env=environment(NCCL_NET="IB", LD_LIBRARY_PATH=fakes), check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return need(False, f"no document: {done.returncode} {done.stdout[-200:]} {done.stderr[-400:]}")
    print(done.stderr.decode()[-200:])
    arms = {r["arm"]: r for r in document["runs"]}
    need(list(arms) == ["unchanged", "A", "B", "C"], f"arms: {list(arms)}")
    # of a rank with two channels NCCL 2.28 registers ten times GPU memory: six receive, four send
    for arm, path, dmabuf in (("unchanged", "gdr", 20), ("A", "host-staged", 0), ("B", "host-staged", 0), ("C", "mixed", 12)):
        run_, node = arms[arm], arms[arm]["nodes"][0]
        need(run_["judgement"]["path"] == path, f"{arm}: {run_['judgement']['path']}")
        for witness in ("library", "kernel"):
            need(node[witness]["registered"]["dmabuf"]["regions"] == dmabuf, f"{arm} by {witness}: {node[witness]}")
        need(run_["networks"] == "IB" and run_["simulated"] is True and node["ranks"] == 2, f"{arm}: {run_['networks']} {node['ranks']}")
        need(run_["speed"]["collective"] == "all_reduce" and run_["speed"]["small_bytes"] == 8, f"{arm}: {run_['speed']}")
        need(run_["nccl_version"].startswith("2.28.9") and run_["nccl_library"].startswith(fakes.split(":")[1]), f"{arm}: {run_['nccl_library']}")
        need(node["observed"]["exporter"] is None or dmabuf, f"{arm}: {node['observed']['exporter']}")
    # the fake's data goes by TCP: the device's own ports have not carried it, and no number of right lines makes up for that
    done = subprocess.run(["unshare", "-rn", "sh", "-c", f"ip link set lo up; exec {PEERPATH} nccl run --simulate {words.replace('--controls ', '')}"],
                          capture_output=True, timeout=150, env=environment(NCCL_NET="IB", LD_LIBRARY_PATH=fakes), check=False)
    document = json.loads(done.stdout)
    ports = document["runs"][0]["nodes"][0]["traffic"]["ports"]
    need(ports and all(p["simulated"] for p in ports), f"no ports of the made /sys: {ports}")
    need(sum(p["sent_bytes"] for p in ports) < 1 << 20, f"the fake sends by the device: {ports}")
    need(done.returncode == 1 and document["gate"]["simulation"] == "failed", f"{done.returncode} {document['gate']['sentence']}")
    need(not list(TOP.glob("peerpath-*")), f"left: {list(TOP.glob('peerpath-*'))}")
    return None


def part_default():
    """Without a command: one line where there is no GPU; the options of peerpath's own collectives belong to it alone."""
    status, out, err = run("--gpus", "2", env=environment(LD_LIBRARY_PATH="", PATH=os.environ["PATH"]))
    if not os.path.exists("/dev/nvidiactl"):
        need(status == 2 and err.count(b"\n") == 1 and not out, f"no GPU: {status} {out} {err}")
    status, out, err = run()
    need(status == 64 and b"--gpus" in err, f"nothing at all: {status} {err}")
    status, out, err = run("--gpus", "2", "--", "true")
    need(status == 64, f"options of ours with another command: {status} {err}")
    # wrong results are the command's to say, and make the job bad
    fakes = ":".join(sys.argv[4:])
    for kind, code in (("wrong@1:2", 1), ("die@1:2", 1)):
        status, err, arm, node = observed("-q", "--ranks", "2", "--one-gpu", "-b", "1M", "-e", "1M", "-n", "2", "--timeout", "40s",
                                          env=environment(LD_LIBRARY_PATH=fakes, PP_FAKE_NCCL=kind))
        need(status == code and node["wait_status"], f"{kind}: {status} {node.get('died')} {err[-200:]}")
        need("wrong" not in kind or arm["speed"]["rows_wrong"] == 1, f"{kind}: {arm['speed']}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ranks(port, rank, count=2):
    """What Slurm puts into a task's environment (srun's man page, OUTPUT ENVIRONMENT VARIABLES)."""
    return environment(SLURM_PROCID=str(rank), SLURM_NTASKS=str(count), SLURM_STEP_NUM_TASKS=str(count), SLURM_STEP_ID="0", SLURM_JOB_ID="17",
                       SLURM_LOCALID=str(rank), SLURM_STEP_NUM_NODES="1", SLURM_STEP_NODELIST="localhost", SLURM_JOB_NODELIST="localhost", SLURM_STEP_LAUNCHER_PORT="41000",
                       PEERPATH_COORDINATOR=f"127.0.0.1:{port}", PEERPATH_TOKEN=TOKEN, RANK=str(rank))


def launch(*words, count=2, port=None):
    port = port or free_port()
    return [start(*words, env=ranks(port, rank, count)) for rank in range(count)]


def end(processes):
    ends = []
    for p in processes:
        try:
            out, err = p.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            need(False, f"rank {len(ends)} does not end: {err[-300:]!r}")
        ends.append((p.returncode, out, err))
    return ends


def part_ranks():
    proof = (LOGS / "made-proven-peermem.log").read_text().splitlines()
    for i, host in enumerate(("host0", "host1")):
        (TOP / f"lines{i}").write_text("\n".join(line for line in proof if f"{host}:" in line.split(" ")[0]) + "\n")
    (TOP / "table").write_text("\n".join(line for line in proof if "NCCL INFO" not in line) + "\n")
    job = script("job_perf", f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h$RANK/ | sed s/%p/1$RANK/)\ncp {TOP}/lines$RANK $F\n"
                 f"[ $RANK = 0 ] && cat {TOP}/table\necho RANK $RANK\nexit 0")
    ends = end(launch("-q", "--json", "-o", str(TOP / "unchanged.json"), "--keep-logs", str(TOP / "kept"), "--", job))
    need([e[0] for e in ends][1] == 0, f"rank 1: {ends[1]}")
    need(not ends[1][1] and b"RANK 1" in ends[1][2], f"rank 1 prints a document: {ends[1][1][:100]}")
    arm = json.loads(ends[0][1])["runs"][0]
    need(arm["judgement"]["claim_gdr"] == "proven", f"the logs of both ranks: {arm['judgement']}")
    need(len(arm["nodes"]) == 1 and arm["nodes"][0]["ranks"] == 2, f"one host, two ranks: {arm['nodes'][0]['ranks']}")
    need(arm["nodes_missing"] == 0, f"missing: {arm}")
    need([s["nodes"] for s in arm["settings"] if s["name"] == "NCCL_DEBUG"] == [1], f"settings: {arm['settings']}")
    size = sum((TOP / f"lines{i}").stat().st_size for i in range(2)) + (TOP / "table").stat().st_size + 2 * len("RANK 0\n")
    need(arm["nodes"][0]["log_bytes"] == size, f"{arm['nodes'][0]['log_bytes']} of {size} bytes")
    # another arm in another launch, then both together
    ends = end(launch("-q", "--arm", "A", "-o", str(TOP / "a.json"), "--", job))
    status, out, err = run("--json", "--join", str(TOP / "unchanged.json"), str(TOP / "a.json"))
    need([r["arm"] for r in json.loads(out)["runs"]] == ["unchanged", "A"], f"joined: {status} {err}")
    status, out, err = run("--join", str(TOP / "a.json"))
    need(status == 2, f"a control alone: {status} {err}")
    status, out, err = run("--join", str(TOP / "a.json"), str(TOP / "a.json"))
    need(status == 65, f"one arm twice: {status} {err}")
    ends = end(launch("--controls", "--", job))
    need([e[0] for e in ends] == [64, 64] and b"--join" in ends[0][2], f"controls under a launcher: {ends}")
    # another one's token
    port = free_port()
    strange = [start("-q", "--", job, env=ranks(port, 0)), start("-q", "--", job, env={**ranks(port, 1), "PEERPATH_TOKEN": "another-token-here"})]
    ends = end(strange)
    need(all(e[0] == 2 for e in ends) and not any(b"RANK" in e[1] for e in ends), f"a stranger: {ends}")
    need(not list(TOP.glob("peerpath-*")), f"left: {list(TOP.glob('peerpath-*'))}")


def part_lost():
    mark = f"MARK_{os.getpid()}_lost"
    # one that fails, with a reason that only its own log has
    fail = LOGS / "fail-completion-error.log"
    job = script("job", f"F=$(echo $NCCL_DEBUG_FILE | sed s/%h/h$RANK/ | sed s/%p/1$RANK/)\n[ $RANK = 1 ] && cp {fail} $F && exit 3\nexit 0")
    ends = end(launch("-q", "--json", "--", job))
    arm = json.loads(ends[0][1])["runs"][0]
    need(ends[0][0] == 1 and "status 3" in arm["nodes"][0]["died"] and arm["root_error"], f"{ends[0][0]} {arm['nodes'][0]['died']} {arm['root_error']}")
    # a rank whose process is killed while the command runs
    job = script("long", f"[ $RANK = 1 ] && {mark}=1 exec sleep 1000\nsleep 3")
    processes = launch("-q", "--json", "--", job)
    need(until(lambda: living(mark)), "it does not begin")
    processes[1].kill()
    ends = end(processes)
    arm = json.loads(ends[0][1])["runs"][0]
    need("rank 1" in (arm["missing_why"] or ""), f"not said: {arm['missing_why']} {ends[0][2]}")
    need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    # rank 0 is killed: the others run to their end
    processes = launch("-q", "--", script("short", f"sleep 2; {mark}=1 sleep 1; echo done"))
    time.sleep(1.5)
    processes[0].kill()
    ends = end(processes)
    need(b"done" in ends[1][1], f"rank 1 of a dead rank 0: {ends[1]}")
    # told to end as a launcher tells it, all processes at once: both ranks' reports are there
    processes = launch("-q", "--json", "--", script("wait", f"{mark}=1 exec sleep 1000"))
    need(until(lambda: len(living(mark)) == 2), "it does not begin")
    time.sleep(0.3)
    for pid in living(f"PEERPATH_TOKEN={TOKEN}"):
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    ends = end(processes)
    arm = json.loads(ends[0][1])["runs"][0]
    need(ends[0][0] == 130 and arm["nodes"][0]["interrupted"] is True and not arm["missing_why"], f"{ends[0][0]} {arm['missing_why']} {ends[0][2]}")
    need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    # a rank that hangs: not beyond the time
    began = time.monotonic()
    ends = end(launch("-q", "--json", "--timeout", "3s", "--", script("hang", f"[ $RANK = 1 ] && {mark}=1 exec sleep 1000\nexit 0")))
    arm = json.loads(ends[0][1])["runs"][0]
    need(arm["nodes"][0]["timed_out"] is True, f"{arm['nodes'][0]['died']}")
    need(time.monotonic() - began < 40, f"took {time.monotonic() - began} s")
    need(until(lambda: not living(mark)), f"left behind: {living(mark)}")
    # one that never comes
    alone = start("-q", "--", "true", env=ranks(free_port(), 0))
    ends = end([alone])
    need(ends[0][0] == 2 and b"rank 1" in ends[0][2], f"alone: {ends}")
    run("-q", "--", "true")
    need(not list(TOP.glob("peerpath-*")), f"left: {list(TOP.glob('peerpath-*'))}")


def main():
    try:
        globals()["part_" + PART]()
    finally:
        subprocess.run(["rm", "-rf", str(TOP)], check=False)
    return 1 if FAULTS else 0


sys.exit(main())
