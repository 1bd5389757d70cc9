#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath trace and trace --watch on the software device: which rows there are is judged by the process itself, which says
what it has registered and when, and by `peerpath soft show`.

usage: traced.py PEERPATH REGIONS
"""
import json
import os
import queue
import signal
import subprocess
import sys
import threading

from soft import LOOP, Fault, alone, cases

PEERPATH, REGIONS = (os.path.abspath(word) for word in sys.argv[1:3])
LIMIT_S = 60
EVERY = "100ms"


def expect(good, *what):
    if not good:
        raise Fault(" ".join(map(str, what)))


class Lines:
    """Lines of a stream, each waited for."""

    def __init__(self, stream):
        self.queue = queue.Queue()
        threading.Thread(target=lambda: [self.queue.put(line) for line in stream], daemon=True).start()

    def next(self):
        try:
            return self.queue.get(timeout=LIMIT_S).rstrip("\n")
        except queue.Empty:
            raise Fault(f"no line in {LIMIT_S} s") from None


class Program:
    """A process on the device, whose regions come and go as it is told."""

    def __enter__(self):
        self.run = subprocess.Popen([PEERPATH, "soft", "-c", LOOP, "--", REGIONS], stdin=-1, stdout=-1, text=True, bufsize=1)
        self.said = Lines(self.run.stdout)
        expect(self.said.next() == "ready", "the program did not begin")
        return self

    def tell(self, words):
        self.run.stdin.write(words + "\n")
        self.run.stdin.flush()
        return self.said.next()

    def add(self, way, length):
        return int(self.tell(f"{way} {length}"))

    def drop(self, lkey):
        expect(self.tell(f"drop {lkey}") == "dropped", "drop", lkey)

    def __exit__(self, *_):
        self.run.stdin.close()
        self.run.wait(LIMIT_S)


def trace(*words):
    done = subprocess.run([PEERPATH, "trace", "-j", *words], stdout=-1, stderr=-1, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, json.loads(done.stdout)


def shown():
    """(pid, lkey) -> (length, registration), as the device's processes say themselves."""
    done = subprocess.run([PEERPATH, "soft", "show", "-j"], stdout=-1, text=True, timeout=LIMIT_S, check=True)
    return {(p["pid"], r["lkey"]): (r["length_bytes"], r["registration"])
            for p in json.loads(done.stdout)["processes"] for d in p["devices"] for r in d["memory_regions"]}


def simulated(document):
    return {(e["pid"], e["lkey"]): (e["length_bytes"], e["registration"]) for e in document["evidence"]
            if e["scope"] == "mr" and e["simulated"]}


def rows():
    """Each region is a row, marked, proven by nobody; --pid keeps one process's; what is gone is gone."""
    with Program() as one, Program() as two:
        want = {(one.run.pid, one.add("host", 4096)): (4096, "host"), (one.run.pid, one.add("memfd", 65536)): (65536, "dmabuf"),
                (two.run.pid, two.add("host", 8192)): (8192, "host")}
        status, document = trace()
        expect(simulated(document) == want == shown(), "rows", simulated(document), want, shown())
        records = [e for e in document["evidence"] if e["simulated"]]
        expect(all(e["witness"] == "library" and e["state"] == "unproven" and e["about"] == "registration" for e in records), records)
        processes = {e["pid"]: e["regions"] for e in records if e["scope"] == "process"}
        expect({pid: (n["host"], n["dmabuf"]) for pid, n in processes.items()} == {one.run.pid: (1, 1), two.run.pid: (1, 0)}, processes)
        # on a machine without an RDMA device nothing is known of hardware, whatever the simulation shows
        expect(status == 2 or os.path.isdir("/sys/class/infiniband"), "exit", status)
        text = subprocess.run([PEERPATH, "trace"], stdout=-1, text=True, timeout=LIMIT_S, check=False).stdout
        expect("(simulated)" in text and "the software device" in text, text)
        _, document = trace("--pid", str(two.run.pid))
        expect(simulated(document) == {k: v for k, v in want.items() if k[0] == two.run.pid}, "--pid", simulated(document))
        for _, lkey in [key for key in want if key[0] == one.run.pid]:
            one.drop(lkey)
        _, document = trace()
        expect(set(simulated(document)) == {key for key in want if key[0] == two.run.pid}, "gone", simulated(document))
    _, document = trace()
    expect(not simulated(document), "after all have ended", simulated(document))


class Watch:
    def __enter__(self):
        self.run = subprocess.Popen([PEERPATH, "trace", f"--watch={EVERY}", "-j"], stdout=-1, stderr=-1, text=True, bufsize=1)
        self.said = Lines(self.run.stdout)
        expect("watching" in self.run.stderr.readline(), "watch does not say that it does")
        return self

    def change(self, what, program, lkey, length, way):
        """The next change is this one."""
        line = json.loads(self.said.next())
        found = tuple(line[key] for key in ("change", "pid", "lkey", "length_bytes", "registration", "simulated"))
        expect(found == (what, program.run.pid, lkey, length, way, True), found, "is not", what, lkey, length, way)
        return line

    def end(self):
        self.run.send_signal(signal.SIGINT)
        return self.run.wait(LIMIT_S)

    def __exit__(self, *_):
        self.run.kill()
        self.run.wait(LIMIT_S)


def watched():
    """A region appears, goes, and comes back by another path: one line each, and nothing else. What was there before is none."""
    with Program() as program:
        program.add("host", 12288)
        with Watch() as watch:
            first = program.add("memfd", 65536)
            watch.change("new", program, first, 65536, "dmabuf")
            program.drop(first)
            watch.change("gone", program, first, 65536, "dmabuf")
            # the same length comes again: a region of its own, since the other has gone before
            second = program.add("host", 65536)
            watch.change("new", program, second, 65536, "host")
            expect(watch.end() == 130, "Ctrl-C")


def changed():
    """Two looks between which a region went and one of its length came by another path: the path has changed, exit 1."""
    with Program() as program:
        lkey = program.add("memfd", 65536)
        with Watch() as watch:
            # stopped, it looks at neither
            watch.run.send_signal(signal.SIGSTOP)
            program.drop(lkey)
            lkey = program.add("host", 65536)
            watch.run.send_signal(signal.SIGCONT)
            line = watch.change("path", program, lkey, 65536, "host")
            expect(line["registration_before"] == "dmabuf", line)
            watch.run.send_signal(signal.SIGINT)
            watch.run.wait(LIMIT_S)


def ends():
    """With --pid the watch ends with its process; a path that changed meanwhile is exit 1."""
    with Program() as program:
        lkey = program.add("memfd", 65536)
        watch = subprocess.Popen([PEERPATH, "trace", f"--watch={EVERY}", "-j", "--pid", str(program.run.pid)], stdout=-1, stderr=-1,
                                 text=True, bufsize=1)
        expect("watching" in watch.stderr.readline(), "watch of a process")
        said = Lines(watch.stdout)
        watch.send_signal(signal.SIGSTOP)
        program.drop(lkey)
        program.add("host", 65536)
        watch.send_signal(signal.SIGCONT)
        expect(json.loads(said.next())["change"] == "path", "path")
    expect(watch.wait(LIMIT_S) == 1, "exit", watch.returncode)


TABLE = [
    ("rows of the software device", rows),
    ("new and gone regions", watched),
    ("a path that changes", changed),
    ("the watch of one process", ends),
]

if __name__ == "__main__":
    alone()
    sys.exit(cases(TABLE, sys.argv[3:]))
