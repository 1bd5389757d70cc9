# SPDX-License-Identifier: Apache-2.0
"""For end-to-end tests: the program under test, and made machines in a temporary directory."""
import os
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fixtures"))

import make_machine  # noqa: E402
from machine.plan import PRESETS  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))
LIMIT_S = 60


def need_program():
    if not PROGRAM or not os.access(PROGRAM, os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} PROGRAM")


def scratch():
    """In memory where that is possible: machines are thousands of small files."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="peerpath-test-", dir=memory)


def make(out, preset="good2", faults=(), **changes):
    """Writes a recording, returns its directory."""
    import dataclasses

    plan = dataclasses.replace(PRESETS[preset], faults=set(faults), **changes)
    make_machine.recording(plan).write(out)
    return out


def run(*args, timeout=LIMIT_S, **more):
    """(exit status, stdout, stderr); a negative status is a signal."""
    p = subprocess.run(
        [PROGRAM, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=timeout,
        check=False,
        **more,
    )
    return p.returncode, p.stdout, p.stderr


def run_measured(*args, timeout=LIMIT_S, **more):
    """As run(), and the largest resident size in KiB."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        p = subprocess.Popen(
            [PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, **more
        )
        timer = threading.Timer(timeout, p.kill)
        timer.start()
        _, status, usage = os.wait4(p.pid, 0)
        late = not timer.is_alive()
        timer.cancel()
        p.returncode = os.waitstatus_to_exitcode(status)
        if late and p.returncode < 0:
            raise TimeoutError
        out.seek(0)
        err.seek(0)
        return p.returncode, out.read(), err.read(), usage.ru_maxrss
