#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client on the software device, beside a CUDA that needs no GPU and watches (tests/fake/cuda_copy.c).

usage: fake.py PEERPATH CLIENT CUDA_DIRECTORY PART
"""
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soft"))
from soft import alone  # noqa: E402

PEERPATH, CLIENT, CUDA = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
PIECE = 1 << 20
LO = "name=lo,address=127.0.0.1"
WIRE = LO + ",same-host=no"
ILL = LO + ",fault=loss=1% duplicate=1% reorder=1% seed={}"


class Run:
    def __init__(self, config, *args, **env):
        with tempfile.TemporaryDirectory() as scratch:
            log = pathlib.Path(scratch) / "log"
            done = subprocess.run([PEERPATH, "soft", "--config", config, "--", CLIENT, *args],
                                  env={**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA_LOG": str(log), **env},
                                  capture_output=True, text=True, timeout=150, check=False)
            lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        self.out, self.err, self.status = done.stdout, done.stderr, done.returncode
        self.wrong = [" ".join(line[2:]) for line in lines if line[0] == "wrong"]
        self.pins = [(line[1], line[2]) for line in lines if line[0] == "pin"]
        self.unpins = [line[1] for line in lines if line[0] == "unpin"]
        self.copies = [(line[2], int(line[3])) for line in lines if line[0] == "copy"]
        assert not self.wrong, (config, args, self.wrong)

    def good(self):
        assert self.status == 0, (self.status, self.out, self.err)
        return self


def part_kinds():
    """Every pair of kinds, by either link."""
    for config in (LO, WIRE):
        for args in ((("-s", "host", "-t", "alloc"), ("-s", "vmm", "-t", "vmm2")) if config == LO else
                     (("-s", "alloc", "-t", "host"), ("-s", "vmm2", "-t", "alloc", "-i", "20480"))):
            run = Run(config, *args, "bytes").good()
            assert "right" in run.out and run.copies, run.out


def part_pieces():
    """One message, one copy: a WRITE of 4 MiB is four of 1 MiB at either end, one of 1 MiB + 12345 is one."""
    for config in (LO, WIRE):
        run = Run(config, "-n", "16", "-l", str(4 << 20), "speed").good()
        count = collections.Counter(run.copies)
        assert count == {("to-host", PIECE): 128, ("to-device", PIECE): 128}, count
        run = Run(config, "-n", "8", "-l", str(PIECE + 12345), "speed").good()
        count = collections.Counter(run.copies)
        # What is sent again, on a machine that does much else, cuts a copy short.
        whole, rest = count[("to-device", PIECE + 12345)], count[("to-device", 12345)]
        assert count[("to-host", PIECE + 12345)] == 16 and whole >= 12 and whole + rest == 16, count
        assert count[("to-device", PIECE)] == rest and sum(count.values()) == 32 + rest, count
        run = Run(config, "-n", "50", "-l", "64", "speed").good()
        assert collections.Counter(run.copies) == {("to-host", 64): 100, ("to-device", 64): 100}, run.copies


def part_ill():
    for seed in (1, 2):
        assert "right" in Run(ILL.format(seed), "bytes").good().out


def part_unreliable():
    for config in (LO, WIRE):
        assert "right" in Run(config, "-u", "bytes").good().out


def part_untold():
    """Clients that know nothing of ours: iova is the address."""
    Run(LO, "-s", "vmm", "-i", "4096", "bytes", PP_GPU_UNTOLD="1").good()


def part_offset():
    """A wrong offset reaches wrong bytes where the range was told, and goes unseen where it was not."""
    run = Run(LO, "-s", "host", "bytes", PP_GPU_WRONG="1")
    assert run.status != 0 and "byte" in run.err, (run.status, run.err)
    Run(LO, "-s", "host", "bytes", PP_GPU_WRONG="1", PP_GPU_UNTOLD="1").good()


def part_rules():
    out = Run(LO, "rules").good().out
    assert out.count("rule:") == 10, out


def part_ends():
    """Whatever goes first in the middle of copies: nobody touches memory that was freed."""
    for who in "sr":
        for what in ("kill", "exit", "close", "dereg", "destroy"):
            for when in ("1", "3", "6"):
                run = Run(LO, "-c", who + what, "-n", when, "ends", PP_FAKE_CUDA_DELAY_US="2000")
                assert run.status in ((0, 137, -9) if what == "kill" else (0,)), (who, what, when, run.status, run.err)


def part_failures():
    """No context: no queue pair. A copy that fails: the sender hears LOC_QP_OP_ERR or REM_OP_ERR."""
    run = Run(LO, "bytes", PP_FAKE_CUDA="fail-context")
    assert run.status != 0 and "RTR: Cannot allocate memory" in run.out, (run.out, run.err)
    seen = set()
    for source, target in (("alloc", "host"), ("host", "alloc")):
        run = Run(LO, "-s", source, "-t", target, "-n", "64", "-l", "65536", "speed", PP_FAKE_CUDA="fail-copy")
        assert run.status != 0, run.out
        seen.update(word for word in ("local QP operation error", "remote operation error") if word in run.err)
    assert len(seen) == 2, seen


def lanes_in(process):
    return [lane for lane in process.get("lanes", []) if lane["direction"] == "in" and lane["bytes"] > 64 << 20]


def last_shown(*args, **env):
    """What the lanes that brought most say, before the end of a run that is right."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA_LOG": str(pathlib.Path(scratch) / "log"), **env}
        seen = []
        with subprocess.Popen([PEERPATH, "soft", "--config", LO, "--", CLIENT, *args], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as job:
            try:
                while job.poll() is None:
                    out = subprocess.run([PEERPATH, "soft", "show", "--json"], capture_output=True, text=True,
                                         timeout=20, check=False).stdout
                    for process in json.loads(out)["processes"] if out else []:
                        seen = lanes_in(process) or seen
                    time.sleep(0.02)
                out, err = job.communicate(timeout=20)
            finally:
                if job.poll() is None:
                    os.killpg(job.pid, signal.SIGKILL)
        assert job.returncode == 0 and seen, (job.returncode, out, err, seen)
        return seen[0]


def part_shelf():
    """GPU to GPU on one host: after the first messages the receiver's GPU copies from the sender's staging, and nothing
    is fetched by a system call; the page-lock is for reading only, a segment once, and let go. Where CUDA has none, and
    into host memory, the processor copies from there; from host memory there is no staging to take it from."""
    lane = last_shown("-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA_DELAY_US="1000")
    assert lane["lent_bytes"] >= lane["bytes"] - (16 << 20) and lane["pulled_bytes"] == 0, lane
    assert lane["lent_bytes"] + lane["mapped_bytes"] <= lane["bytes"] and "not_lent" not in lane, lane
    run = Run(LO, "-n", "16", "-l", str(4 << 20), "speed").good()
    reading = [pid for pid, how in run.pins if how == "read-only"]
    assert len(reading) == 1 and run.unpins == reading, (run.pins, run.unpins)
    lane = last_shown("-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA="no-read-only", PP_FAKE_CUDA_DELAY_US="1000")
    assert lane["lent_bytes"] == 0 and lane["mapped_bytes"] > 64 << 20 and lane["pulled_bytes"] == 0, lane
    assert lane["not_lent"] == "Operation not supported", lane
    run = Run(LO, "-n", "16", "-l", str(4 << 20), "speed", PP_FAKE_CUDA="no-read-only").good()
    assert run.pins and all(how == "all" for _, how in run.pins) and not run.unpins, run.pins
    for source, target, word in (("alloc", "host", "mapped_bytes"), ("host", "alloc", "pulled_bytes")):
        lane = last_shown("-s", source, "-t", target, "-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA_DELAY_US="1000")
        assert lane[word] == max(lane[w] for w in ("lent_bytes", "mapped_bytes", "pulled_bytes")) > 64 << 20, lane


def part_forks():
    """Children in the middle of it, at either end, while copies read the other's shelf."""
    for config in (LO, WIRE):
        run = Run(config, "-c", "fork", "-s", "vmm", "-t", "vmm2", "-n", "48", "-l", str(2 << 20), "speed",
                  PP_FAKE_CUDA_DELAY_US="1000").good()
        assert "speed" in run.out and (config == LO) == ("read-only" in [how for _, how in run.pins]), (run.out, run.pins)


def part_slow():
    """A copy that is never done is named by `soft show`; the peer does not give up, and the process ends."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA": "hang",
               "PP_FAKE_CUDA_LOG": str(pathlib.Path(scratch) / "log")}
        with subprocess.Popen([PEERPATH, "soft", "--config", LO, "--", CLIENT, "-l", str(3 << 19), "speed"], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as job:
            try:
                slow = []
                for _ in range(100):
                    time.sleep(0.1)
                    shown = json.loads(subprocess.run([PEERPATH, "soft", "show", "--json"], capture_output=True,
                                                      text=True, timeout=20, check=True).stdout)
                    slow = [gpu for process in shown["processes"] for gpu in process.get("gpus", [])
                            if gpu.get("slow")]
                    if slow:
                        break
                assert slow, shown
                assert slow[0]["slow"]["direction"] == "to-host" and slow[0]["slow"]["bytes"] == 3 << 19, slow
                assert slow[0]["slow"]["since_ms"] >= 2000 and slow[0]["bdf"] == "0000:3b:00.0", slow
                regions = [region for process in shown["processes"] for device in process["devices"]
                           for region in device["memory_regions"] if region.get("memory") == "cuda"]
                assert len(regions) == 2, shown
                for region in regions:
                    assert region["registration"] == "dmabuf" and region["offset"] == "modelled", region
                    assert region["inode"] and region["descriptor_bytes"] >= region["length_bytes"], region
                assert job.poll() is None
            finally:
                os.killpg(job.pid, signal.SIGKILL)


PARTS = {name[5:]: function for name, function in globals().items() if name.startswith("part_")}

if __name__ == "__main__":
    alone()
    PARTS[sys.argv[4]]()
