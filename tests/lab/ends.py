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


def main():
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
    expect(os.listdir("/sys/class/net") == before, "network devices of this side changed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
