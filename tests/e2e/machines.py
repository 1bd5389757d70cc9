# SPDX-License-Identifier: Apache-2.0
"""For end-to-end tests: the program under test, and made machines in a temporary directory."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fixtures"))

import make_machine  # noqa: E402
from machine.plan import PRESETS  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))
LIMIT_S = 60
GNU_TIME = shutil.which("time")


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
    """As run(), and the largest resident size in KiB.

    GNU time starts the program: started from here, it would inherit the size of this process.
    Without it the size is not known: 0.
    """
    with tempfile.NamedTemporaryFile() as size, tempfile.TemporaryFile() as out:
        with tempfile.TemporaryFile() as err:
            wrap = [GNU_TIME, "-q", "-f", "%M", "-o", size.name] if GNU_TIME else []
            p = subprocess.Popen(
                [*wrap, PROGRAM, *args],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                **more,
            )
            try:
                status = p.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                raise TimeoutError from None
            if wrap and status > 128:
                status = 128 - status
            out.seek(0)
            err.seek(0)
            kib = size.read().split()
            return status, out.read(), err.read(), int(kib[-1]) if kib else 0
