# SPDX-License-Identifier: Apache-2.0
"""Commands in a guest and on the host side, and waiting for them.

A guest's command is a directory of the share (guest.sh), so its output is whole whatever its bytes,
and no command waits for another. Every wait has a deadline and ends early when the machine does.
"""
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import time


class LabError(Exception):
    """The lab was there and broke: a guest that does not boot, a command past its deadline."""


class Deadline(LabError, TimeoutError):
    """A wait that did not end in its time."""


class Result:
    """What a command left: status, out and err as bytes, text for reading."""

    def __init__(self, what, status, out, err):
        self.what, self.status, self.out, self.err = what, status, out, err

    @property
    def text(self):
        return (self.out + self.err).decode("utf-8", "replace")

    def check(self, status=0):
        if self.status != status:
            raise LabError(f"{self.what}: exit {self.status}, not {status}\n{self.text}")
        return self


def poll(ready, seconds, alive, what):
    """Waits for ready() to return something; the deadline and a dead machine are errors."""
    end = time.monotonic() + seconds
    while True:
        got = ready()
        if got is not None:
            return got
        dead = alive()
        if dead:
            raise LabError(f"{what}: {dead}")
        if time.monotonic() > end:
            raise Deadline(f"{what}: no end in {seconds} s")
        time.sleep(0.02)


def read(path):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


class Guest:
    def __init__(self, lab, index):
        self.lab, self.index = lab, index
        self.ip4, self.ip6 = f"10.77.0.{index + 1}", f"fd77::{index + 1}"

    def dead(self):
        reason = read(self.lab.share / f"failed.{self.index}").decode().strip()
        if reason:
            return f"the guest gave up: {reason}"
        if self.lab.gone() or not process_start(self.lab.pids[self.index]):
            return "QEMU ended"
        return None

    def console(self):
        return read(self.lab.dir / f"console.{self.index}").decode("utf-8", "replace")

    def start(self, command):
        """Starts a shell command; several may run. $GID4 and $GID6 are rxe0's GID indices."""
        return GuestJob(self, command)

    def run(self, command, seconds=60):
        return self.start(command).wait(seconds)

    def wait_port(self, port, seconds=20):
        """Waits until something in the guest listens on a TCP port."""
        self.run(listening(port, seconds), seconds + 10).check()

    def say(self, line):
        # Shorter than PIPE_BUF, so lines of several writers do not mix.
        with open(self.lab.dir / f"channel.{self.index}.in", "wb", buffering=0) as channel:
            channel.write(line.encode() + b"\n")


def listening(port, seconds):
    tries = int(seconds * 10)
    return (f"tries=0; until grep -qi ':{port:04x} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6; do "
            f"tries=$((tries + 1)); [ $tries -le {tries} ] || exit 1; sleep 0.1; done")


class GuestJob:
    def __init__(self, guest, command):
        self.guest, self.what = guest, f"node{guest.index}: {command.strip()}"
        jobs = guest.lab.share / "jobs"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"{guest.index}-", dir=jobs))
        self.dir_there = f"/lab/jobs/{self.dir.name}"
        (self.dir / "command").write_text(command + "\n", encoding="utf-8")
        guest.say(f"run {self.dir.name}")

    def output(self):
        return read(self.dir / "out")

    def done(self):
        status = read(self.dir / "status").strip()
        if not status:
            return None
        return Result(self.what, int(status), self.output(), read(self.dir / "err"))

    def wait(self, seconds=60):
        return poll(self.done, seconds, self.guest.dead, self.what)

    def kill(self, seconds=10):
        if self.done() is None:
            self.guest.say(f"kill {self.dir.name}")
        return self.wait(seconds)


class HostJob:
    """A command on the host side: a word list, or a string for the shell."""

    def __init__(self, lab, command, env=None):
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        self.lab, self.what = lab, f"host: {command if isinstance(command, str) else shlex.join(words)}"
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(lab.enter(words), stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.err, start_new_session=True,
                                        env={**os.environ, **(env or {})})

    @staticmethod
    def _all(file):
        # By position: the command writes at the offset that it shares with this descriptor.
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

    def output(self):
        return self._all(self.out)

    def done(self):
        status = self.process.poll()
        if status is None:
            go_on(self.process)
            return None
        return Result(self.what, status if status >= 0 else 128 - status, self.output(),
                      self._all(self.err))

    def wait(self, seconds=60):
        try:
            return poll(self.done, seconds, lambda: None, self.what)
        except LabError:
            self.kill()
            raise

    def kill(self, number=signal.SIGKILL):
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        self.process.wait()
        return self.done()


def go_on(process):
    """nsenter stops itself when its command was stopped, and then nobody starts it again: where all
    processes of a machine are stopped for a moment and continued, it would stay so for ever."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)


def process_start(pid):
    """When a living process started, which tells it from a later one of the same PID."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else fields[19]
