#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A lab gives its command's status, and leaves nothing behind however it ends.

The judge is the kernel: no process of the lab in /proc, no directory, no network device on this side.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

LAB = pathlib.Path(sys.argv[1])
faults = 0


def expect(true, what):
    global faults
    if not true:
        print(f"FAULT: {what}")
        faults += 1


def alive(work):
    """Command lines of processes that name the lab's directory."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if work.encode() in line and b"ends.py" not in line:
            found.append(line.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def settle(ready, seconds=20):
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.05)
    return ready()


def clean(work, how):
    expect(settle(lambda: not alive(work) and not os.listdir(work)),
           f"{how}: left {alive(work)} {os.listdir(work)}")


def batch(work, script, *options):
    # The script lies elsewhere: what is left in 'work' is the lab's.
    return subprocess.Popen([str(LAB), "batch", "--script", script, *options], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True,
                            env={**os.environ, "TMPDIR": work})


def by_hand(top):
    """up, run, host, down as a person types them; the shell's words of the two sides do not mix."""
    place = os.path.join(top, "byhand")

    def lab(verb, *words):
        run = subprocess.run([str(LAB), verb, "--dir", place, *words], capture_output=True, text=True,
                             timeout=120, check=False)
        return run.returncode, run.stdout + run.stderr

    status, said = lab("up")
    expect(status == 0, f"up: exit {status}: {said}")
    status, said = lab("up")
    expect(status == 70 and "exists" in said, f"up twice: exit {status}: {said}")
    waiting = subprocess.Popen([str(LAB), "run", "--dir", place, "0", "--",
                                "until [ -e /tmp/go ]; do sleep 0.1; done; exit 5"])
    status, said = lab("run", "0", "--", "touch /tmp/go; echo 'a  b' >&2; exit 6")
    expect(status == 6 and said == "a  b\n", f"run: exit {status}: {said}")
    expect(waiting.wait(30) == 5, "two commands at once")
    status, said = lab("run", "1", "--", "true")
    expect(status == 70 and "no node 1" in said, f"no such node: exit {status}: {said}")
    # A kernel's rxe on this side would hold the port; in the lab it must be free.
    bind = "import socket; socket.socket(type=socket.SOCK_DGRAM).bind(('10.77.0.254', 4791))"
    status, said = lab("host", "--", sys.executable, "-c", bind)
    expect(status == 0, f"UDP 4791 of the host side: {said}")
    status, said = lab("host", "--", "ls", "/sys/class/net")
    expect(status == 0 and said.split() == ["br0", "lo", "tap0"], f"the host side's devices: {said}")
    status, said = lab("down")
    expect(status == 0, f"down: exit {status}: {said}")
    expect(not os.path.exists(place) and not alive(place), "down: something is left")
    status, said = lab("run", "0", "--", "true")
    expect(status == 70 and "no lab" in said, f"run after down: exit {status}: {said}")


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("nothing here is compiled; the plain build runs this")
        return 77
    before = os.listdir("/sys/class/net")
    with tempfile.TemporaryDirectory() as top:
        work = os.path.join(top, "work")
        os.mkdir(work)
        script = os.path.join(top, "script")
        pathlib.Path(script).write_text("uname -sr; cat /sys/class/infiniband/rxe0/ports/1/state; exit 7\n")
        run = batch(work, script)
        said = run.communicate(timeout=240)[0]
        if run.returncode == 77:
            print(said.strip().splitlines()[-1])
            return 77
        expect(run.returncode == 7, f"exit {run.returncode}, not the script's 7: {said}")
        expect("node0: Linux " in said and "node0: 4: ACTIVE" in said, f"said {said}")
        clean(work, "the end")

        pathlib.Path(script).write_text("sleep 60\n")
        run = batch(work, script, "--deadline", "1")
        said = run.communicate(timeout=240)[0]
        expect(run.returncode == 124, f"past the deadline: exit {run.returncode}: {said}")
        clean(work, "the deadline")

        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            run = batch(work, script)
            expect(settle(lambda: any("qemu" in line for line in alive(work))), "no QEMU seen")
            run.send_signal(number)
            run.communicate(timeout=60)
            expect(run.returncode == status, f"{number.name}: exit {run.returncode}")
            clean(work, number.name)
        by_hand(top)
    expect(os.listdir("/sys/class/net") == before, "network devices of this side changed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
