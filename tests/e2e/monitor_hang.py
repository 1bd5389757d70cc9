#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The monitor beside a file system whose server does not answer, as a network mount's that is gone.

usage: monitor_hang.py PEERPATH HANGFS

HANGFS serves job logs and an application's figures through the kernel's FUSE; told to hang it takes
requests and does not answer, and the kernel holds whoever made one: no signal ends it (state D). The monitor must live (WATCHDOG), say so once, lose and double no line, and end when it is told.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

FAULTS = []
LINE = ("node7:811:{0} [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4791> "
        "with status=12 opcode=0 len=0 vendor err {0} (Recv)\n")
PORT = 19758
HANGING = {"job logs", "application's file"}


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            need(False, f"not within {seconds} s: {what}")
            return False
        time.sleep(0.05)
    return True


class Server:
    def __init__(self, hangfs, top):
        self.log, self.slo, self.dir = top / "back/job.log", top / "back/slo.prom", top / "mount"
        for made in (self.log.parent, self.dir):
            made.mkdir()
        self.log.write_text("")
        self.slo.write_text("tokens_per_second 1000\n")
        self.lines = 0
        self.process = subprocess.Popen([hangfs, self.log, self.slo, self.dir], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.mounted = self.process.stdout.readline() == "mounted\n"

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        need(self.process.stdout.readline() == word + "\n", f"the server does not {word}")

    def write(self, n):
        with self.log.open("a") as f:
            for _ in range(n):
                self.lines += 1
                f.write(LINE.format(self.lines))

    def close(self):
        self.process.stdin.close()
        return self.process.wait(30)


class Monitor:
    def __init__(self, peerpath, server, top):
        self.top, self.socket = top, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = top / "notify"
        name.unlink(missing_ok=True)
        self.socket.bind(str(name))
        self.words = ["--state", top / "m.db", "--log", server.dir / "job*.log", "--log", top / "local*.log", "--slo", server.dir / "slo.prom"]
        self.err = open(top / "err", "ab")
        self.process = subprocess.Popen(
            [peerpath, "monitor", *self.words, "--events", top / "events", "--period", "400ms", "--listen", str(PORT)],
            stdout=subprocess.DEVNULL, stderr=self.err, env={**os.environ, "NOTIFY_SOCKET": str(name), "WATCHDOG_USEC": "1000000"})

    def hear(self, word, seconds=90):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if word in self.socket.recv(4096).decode():
                    return True
            except TimeoutError:
                break
        need(False, f"no {word} within {seconds} s")
        return False

    def deaf(self):
        """What was sent so far is not heard any more."""
        self.socket.settimeout(0)
        try:
            while True:
                self.socket.recv(4096)
        except BlockingIOError:
            pass

    def readers(self):
        """pid: state, of the processes that look on its behalf."""
        found = {}
        for pid in pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            try:
                name, state = re.fullmatch(r"\d+ \((.*)\) (\S).*\n", pathlib.Path(f"/proc/{pid}/stat").read_text()).groups()
            except OSError:
                continue
            if name in ("logs", "slo"):
                found[int(pid)] = (name, state)
        return found

    def events(self, kind):
        try:
            return [e for e in map(json.loads, (self.top / "events").read_text().splitlines()) if e["kind"] == kind]
        except OSError:
            return []

    def kept(self):
        db = sqlite3.connect(self.top / "m.db")
        try:
            names = db.execute("SELECT count(*), count(DISTINCT name) FROM monitor_event WHERE kind = 'nccl-errors'").fetchone()
            return *names, db.execute("SELECT coalesce(sum(count), 0) FROM monitor_signal WHERE kind = 'nccl-errors'").fetchone()[0]
        finally:
            db.close()

    def silent(self):
        db = sqlite3.connect(self.top / "m.db")
        try:
            return {row[0] for row in db.execute("SELECT object FROM monitor_look WHERE kind = 'hung-call' AND value = 'did not return'")} & HANGING
        finally:
            db.close()

    def stop(self):
        self.process.terminate()
        begun = time.monotonic()
        need(self.process.wait(60) == 0, "SIGTERM is no clean end")
        self.socket.close()
        self.err.close()
        return time.monotonic() - begun


def stuck(m):
    return {name for name, state in m.readers().values() if state == "D"}


def hangs(m, server, how, tellings):
    server.say("hang")
    server.write(5)
    seen = len(m.events("hung-call"))
    until(f"{how}: it is seen", lambda: m.silent() == HANGING)
    until(f"{how}: it is told", lambda: len(m.events("hung-call")) >= seen + tellings)
    told = m.events("hung-call")[seen:]
    need(len(told) == tellings and {e["object"] for e in told} <= HANGING and all(e["level"] == "early" for e in told), f"{how}: told: {told}")
    # It lives: the manager of services and Prometheus see no difference.
    m.deaf()
    m.hear("WATCHDOG=1", 20)
    with socket.create_connection(("127.0.0.1", PORT), timeout=20) as s:
        s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = b""
        while piece := s.recv(65536):
            text += piece
    need(re.search(rb'peerpath_signals_open\{signal="hung-call",level="early"\} 2', text), f"{how}: metrics do not tell it")


def comes_back(m, server, how):
    server.say("answer")
    good = until(f"{how}: every line is an event", lambda: m.kept()[0] >= server.lines)
    time.sleep(1)
    need(not good or m.kept() == (server.lines, server.lines, server.lines), f"{how}: of {server.lines} lines, events, names, counts: {m.kept()}")


def walk(peerpath, server, top):
    (top / "local.log").write_text("")
    m = Monitor(peerpath, server, top)
    m.hear("READY=1")
    server.write(3)
    until("the first lines are events", lambda: m.kept()[0] == 3)
    readers = m.readers()
    need(sorted(name for name, _ in readers.values()) == ["logs", "slo"], f"readers: {readers}")
    for pid in readers:
        held = sorted(os.readlink(f.path) for f in os.scandir(f"/proc/{pid}/fd") if not os.path.realpath(f.path).startswith(str(top)))
        need(len(held) == 4 and held[:3] == ["/dev/null"] * 3 and held[3].startswith("socket:"), f"a reader holds {held}")
    hangs(m, server, "first", 2)
    comes_back(m, server, "first")
    until("it is told that it is over", lambda: {e["object"] for e in m.events("hung-call") if e["what"] == "ends"} == HANGING)
    need(set(m.readers()) == set(readers), "the processes are others than before")
    killed(m, server)
    until("they answer", lambda: not m.silent())
    # Told to stop while its processes are stuck, and started anew at the same port.
    hangs(m, server, "at the end", 0)
    need(m.stop() < 10, "a stop waits for what is stuck")
    done = subprocess.run([peerpath, "monitor", *m.words[2:], "--state", top / "once.db", "--once", "--json"], capture_output=True, text=True, timeout=120)
    looks = {(look["kind"], look["object"]): look for look in json.loads(done.stdout)["looks"]}
    why = looks.get(("nccl-errors", "logs"), {}).get("unknown") or ""
    need(re.search(r"(listing|opening) '.*' did not return in 5000 ms", why), f"a first look that hangs: {why!r} {done.stderr}")
    server.say("answer")
    m = Monitor(peerpath, server, top)
    comes_back(m, server, "started anew")
    need(len(m.events("nccl-errors")) == 1, f"told: {m.events('nccl-errors')}")
    m.stop()
    print(f"{server.lines} lines in the log, {m.kept()[0]} events; {len(m.events('hung-call'))} tellings of what hung")


def killed(m, server):
    """SIGKILL reaches a process only when its call returns; the next one goes on where it was."""
    hangs(m, server, "killed", 2)
    readers = m.readers()
    for pid in readers:
        os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    need(stuck(m) == {"logs", "slo"}, f"what the kernel holds can be killed here: {m.readers()}")
    comes_back(m, server, "killed")
    until("others are at work", lambda: not set(m.readers()) & set(readers) and len(m.readers()) == 2)


def main():
    peerpath, hangfs = map(os.path.abspath, sys.argv[1:3])
    if len(sys.argv) < 4:
        if not shutil.which("unshare") or subprocess.run(["unshare", "-rmn", "true"], capture_output=True).returncode:
            print("SKIP: no namespaces of its own can be had here")
            sys.exit(77)
        os.execvp("unshare", ["unshare", "-rmn", sys.executable, __file__, peerpath, hangfs, "inside"])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        server = Server(hangfs, top)
        if not server.mounted:
            code = server.close()
            print(f"SKIP: no FUSE here (exit {code})")
            sys.exit(77)
        try:
            walk(peerpath, server, top)
            if FAULTS:
                print((top / "err").read_text())
        finally:
            server.close()
            subprocess.run(["umount", "-l", server.dir], check=False)
    sys.exit(1 if FAULTS else 0)


if __name__ == "__main__":
    main()
