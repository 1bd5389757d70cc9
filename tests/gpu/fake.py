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
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))
LO = "name=lo,address=127.0.0.1"
STAGED = LO + ",same-host-gpu=staged"
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
        self.shared = [(line[0], line[2]) for line in lines if line[0] in ("export", "import", "let-go")]
        self.batches = [int(line[2]) for line in lines if line[0] == "batch"]
        self.direct = sum(size for way, size in self.copies if way == "direct")
        assert not self.wrong, (config, args, self.wrong)

    def good(self):
        assert self.status == 0, (self.status, self.out, self.err)
        return self


def part_kinds():
    """Every pair of kinds, by either link."""
    for config in (STAGED, WIRE):
        for args in ((("-s", "host", "-t", "alloc"), ("-s", "vmm", "-t", "vmm2")) if config == STAGED else
                     (("-s", "alloc", "-t", "host"), ("-s", "vmm2", "-t", "alloc", "-i", "20480"))):
            run = Run(config, *args, "bytes").good()
            assert "right" in run.out and run.copies and not run.direct, run.out


def part_direct():
    """Same host, each kind to each: WRITE with and without immediate, SEND, READ, many sizes, flags behind data. The
    receiver's GPU copies from the sender's memory, which it maps once for all messages and lets go in the end."""
    pairs = (("alloc", "alloc"), ("vmm", "host"), ("host", "vmm"), ("vmm", "vmm2"), ("vmm", "alloc"), ("alloc", "vmm"),
             ("alloc", "host"), ("vmm2", "vmm"))
    for source, target in pairs[: 4 if SANITIZED else None]:  # each kind at each end
        run = Run(LO, "-s", source, "-t", target, "-i", "20480", "bytes").good()
        assert "right" in run.out, run.out
        # Each end exports what it registers in one allocation, and maps what messages came from: of READs the other's.
        kinds = {"alloc": "ipc", "vmm": "vmm"}
        wanted = collections.Counter(("export", kinds[k]) for k in (source, target) if k in kinds)
        got = collections.Counter(run.shared)
        assert all(got[k] == n for k, n in wanted.items()) and sum(n for (w, _), n in got.items() if w == "export") == sum(
            wanted.values()), (source, target, got)
        for kind in ("ipc", "vmm"):
            assert got["import", kind] == got["let-go", kind] <= got["export", kind], (source, target, got)
        gpus = source != "host" and target != "host"
        assert (run.direct > 64 << 20) == (gpus and source != "vmm2"), (source, target, run.direct)
        # To a host without a GPU in use nothing is shown.
        assert bool(got["import", "vmm"] + got["import", "ipc"]) == gpus, (source, target, got)


def part_self():
    """A queue pair connected to itself, as for NCCL's flush: READs of a byte, WRITEs and READs within one allocation;
    what is ours is not mapped once more."""
    for kind in ("vmm", "alloc"):
        for config in (LO, STAGED, WIRE):
            run = Run(config, "-s", kind, "-t", kind, "-n", "12", "self").good()
            assert "right" in run.out and bool(run.direct) == (config == LO), (config, run.out, run.direct)
            assert not [line for line in run.shared if line[0] != "export"], run.shared


def part_host():
    """To host memory of a process that uses a GPU, too: one copy to staging at the receiver, none at the sender."""
    for kind in ("vmm", "alloc"):
        run = Run(LO, "-s", kind, "-t", "host", "bytes", PP_GPU_ALSO="1").good()
        imports = [line for line in run.shared if line[0] == "import"]
        assert "right" in run.out and imports, (run.out, run.shared)


def part_two():
    """Two GPUs: the receiver's has access to the sender's memory, and copies."""
    for source, target in (("vmm", "vmm"), ("alloc", "alloc"), ("vmm", "alloc"), ("alloc", "vmm")):
        run = Run(LO, "-g", "-s", source, "-t", target, "bytes", PP_FAKE_CUDA_GPUS="2").good()
        assert "right" in run.out and run.direct > 64 << 20, (source, target, run.direct)


def part_lines():
    """What is written in whole lines of 128 bytes is never seen half: no copy begins or ends within one."""
    for config in (LO, STAGED):
        for args in (("-s", "vmm", "-t", "vmm"), ("-s", "alloc", "-t", "alloc"), ("-s", "host", "-t", "vmm")):
            run = Run(config, *args, "-n", "6", "lines", PP_FAKE_CUDA_LINES="1", PP_FAKE_CUDA_DELAY_US="500").good()
            assert "lines: whole" in run.out, run.out


def part_fallback():
    """Where memory cannot be shared it is staged, and the reason is told; nothing is lost by it."""
    for mode, why in (("no-import", "cannot map memory"), ("no-access", "refused to map"), ("no-export", None)):
        for kind in ("vmm", "alloc"):
            run = Run(LO, "-s", kind, "-t", kind, "bytes", PP_FAKE_CUDA=mode).good()
            assert "right" in run.out and (run.direct == 0 or (mode, kind) == ("no-access", "alloc")), (mode, run.direct)
        if SANITIZED:
            continue  # what is told of much traffic: nothing that a sanitizer has not seen by now
        said = reasons("-s", "vmm", "-t", "vmm", "-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA=mode)
        assert said and all(way == "staged" for way, _ in said), (mode, said)
        assert any((why or "POSIX descriptor") in reason for _, reason in said), (mode, said)
    run = Run(LO, "-s", "vmm", "-t", "vmm", "bytes", PP_FAKE_CUDA="both-ways").good()
    assert run.direct > 64 << 20, run.direct
    for config, way, why in () if SANITIZED else (
            (STAGED, "staged", "switched off here"), (WIRE, "wire", "switched off here"), (LO, "direct", None)):
        said = reasons("-n", "60", "-l", str(4 << 20), "speed", config=config)
        assert said and all(w == way and (why or "") in (r or "") for w, r in said), (config, said)
    run = Run(LO, "-s", "vmm2", "-t", "vmm", "-n", "16", "-l", str(1 << 20), "speed").good()
    assert run.direct == 0, run.copies
    # A link that changes under what is lent: it is staged, and comes once.
    for kind in ("vmm", "alloc"):
        with tempfile.TemporaryDirectory() as scratch:
            env = {**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA_LOG": str(pathlib.Path(scratch) / "log"),
                   "PP_FAKE_CUDA_DELAY_US": "1000"}
            with subprocess.Popen([PEERPATH, "soft", "--config", LO, "--", CLIENT, "-s", kind, "-t", kind, "-n", "200", "-l",
                                   str(1 << 20), "speed"], env=env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, start_new_session=True) as job:
                try:
                    for _ in range(20):
                        for word in ("loss=1%", "clear"):
                            subprocess.run([PEERPATH, "soft", "fault", word], capture_output=True, timeout=20, check=False)
                            time.sleep(0.02)
                    out, err = job.communicate(timeout=60)
                finally:
                    if job.poll() is None:
                        os.killpg(job.pid, signal.SIGKILL)
            lines = (pathlib.Path(scratch) / "log").read_text()
            assert job.returncode == 0 and "wrong" not in lines and " direct " in lines, (job.returncode, out, err)


def part_regions():
    """A thousand regions in one allocation are one export and one import; it goes with the last, and another that comes
    to lie in its place is another."""
    for kind, way in (("vmm", "vmm"), ("alloc", "ipc")):
        run = Run(LO, "-s", kind, "-t", kind, "-n", "1000", "regions").good()
        got = collections.Counter(run.shared)
        assert got == {("export", way): 4, ("import", way): 2, ("let-go", way): 2}, got
        assert "regions: right" in run.out and run.direct > 0, run.out


def part_pieces():
    """One message, one copy: a WRITE of 4 MiB is four of 1 MiB at either end, one of 1 MiB + 12345 is one."""
    for config in (STAGED, WIRE):
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
    # Direct: one copy for both ends, but for what was sent before the peer had mapped it. Here, too, what is sent again may
    # cut a copy short; nothing is copied twice.
    for length, number in ((4 << 20, 4), (PIECE + 12345, 1), (PIECE, 1), (64, 1)):
        run = Run(LO, "-n", "48", "-l", str(length), "speed").good()
        count = collections.Counter(run.copies)
        moved = collections.Counter()
        for way, size in run.copies:
            moved[way] += size
        piece = length // number
        assert moved["direct"] + moved["to-device"] == 96 * length and moved["to-host"] == moved["to-device"], count
        assert count["direct", piece] >= 64 * number and {size for way, size in count if way == "to-host"} <= {piece}, count


def part_batches():
    """What waits while the GPU is busy goes by one call, of which the driver carries out what it likes first; where
    there is no such call, one by one."""
    for config in (STAGED, WIRE):
        run = Run(config, "-s", "vmm", "-t", "vmm", "-n", "200", "-l", str(64 << 10), "speed", PP_FAKE_CUDA_DELAY_US="1000").good()
        assert run.batches and all(2 <= n <= 8 for n in run.batches), run.batches
        assert collections.Counter(run.copies)["to-host", 64 << 10] == 400, collections.Counter(run.copies)
        run = Run(config, "-s", "vmm", "-t", "vmm", "-n", "200", "-l", str(64 << 10), "speed", PP_FAKE_CUDA_DELAY_US="1000", PP_FAKE_CUDA="no-batch").good()
        assert not run.batches and collections.Counter(run.copies)["to-host", 64 << 10] == 400, run.batches


def part_ill():
    for seed in (1,) if SANITIZED else (1, 2):
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
    # By the specification's numbers: 4X NDR where GPUs copy, else 4X EDR, or what was asked for.
    for config, port in ((LO, "width 2, speed 128"), (STAGED, "width 2, speed 128"), (WIRE, "width 2, speed 32"),
                         (LO + ",rate=25", "width 1, speed 32")):
        out = Run(config, "rules").good().out
        assert out.count("rule:") == 10 and port in out, (config, out)


def part_ends():
    """Whatever goes first in the middle of copies: nobody touches memory that was freed."""
    for who in "sr":
        for what in ("kill", "exit", "close", "dereg", "destroy"):
            for config, kind, when in ((STAGED, "alloc", "1"), (STAGED, "vmm", "3"), (LO, "alloc", "1"), (LO, "vmm", "3"),
                                       (LO, "vmm", "5"), (LO, "alloc", "6")):
                run = Run(config, "-s", kind, "-t", kind, "-c", who + what, "-n", when, "ends", PP_FAKE_CUDA_DELAY_US="2000")
                assert run.status in ((0, 137, -9) if what == "kill" else (0,)), (who, what, when, run.status, run.err)
                assert config == STAGED or what in ("exit",) or run.direct, (who, what, run.copies)


def part_failures():
    """No context: no queue pair. A copy that fails: the sender hears LOC_QP_OP_ERR or REM_OP_ERR."""
    run = Run(LO, "bytes", PP_FAKE_CUDA="fail-context")
    assert run.status != 0 and "RTR: Cannot allocate memory" in run.out, (run.out, run.err)
    seen = set()
    for source, target in (("alloc", "host"), ("host", "alloc")):
        run = Run(STAGED, "-s", source, "-t", target, "-n", "64", "-l", "65536", "speed", PP_FAKE_CUDA="fail-copy")
        assert run.status != 0, run.out
        seen.update(word for word in ("local QP operation error", "remote operation error") if word in run.err)
    assert len(seen) == 2, seen
    # A copy from the peer's memory that fails is a fault of the receiver.
    for kind in ("vmm", "alloc"):
        run = Run(LO, "-s", kind, "-t", kind, "-n", "64", "-l", "65536", "speed", PP_FAKE_CUDA="fail-direct")
        assert run.status != 0 and "remote operation error" in run.err and run.direct, (run.out, run.err)


def reasons(*args, config=None, **env):
    """How the queue pairs of a run that sent most went, each with why not directly; not of one whose peer has ended: it is alone, then."""
    seen = []
    for process in shown_during(*args, config=config, **env):
        for device in process["devices"]:
            for qp in device["queue_pairs"]:
                gone = process["alone"] and "has closed the lane" in (qp.get("not_direct") or "")
                if qp.get("direct_bytes", 0) + qp.get("staged_bytes", 0) > 64 << 20 and not gone:
                    seen.append((qp["gpu_memory"], qp.get("not_direct")))
    return seen


def lanes_in(process):
    return [lane for lane in process.get("lanes", []) if lane["direction"] == "in" and lane["bytes"] > 64 << 20]


def shown_during(*args, config=None, **env):
    """What processes show, all along a run that is right."""
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA_LOG": str(pathlib.Path(scratch) / "log"), **env}
        seen = []
        with subprocess.Popen([PEERPATH, "soft", "--config", config or LO, "--", CLIENT, *args], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as job:
            try:
                while job.poll() is None:
                    out = subprocess.run([PEERPATH, "soft", "show", "--json"], capture_output=True, text=True,
                                         timeout=20, check=False).stdout
                    processes = json.loads(out)["processes"] if out else []
                    seen += [{**p, "alone": len(processes) == 1} for p in processes]
                    time.sleep(0.02)
                out, err = job.communicate(timeout=20)
            finally:
                if job.poll() is None:
                    os.killpg(job.pid, signal.SIGKILL)
        assert job.returncode == 0 and seen, (job.returncode, out, err, seen)
        return seen


def last_shown(*args, **env):
    """What the lanes that brought most say, before the end."""
    lanes = []
    for process in shown_during(*args, config=STAGED, **env):
        lanes = lanes_in(process) or lanes
    assert lanes
    return lanes[0]


def part_shelf():
    """GPU to GPU on one host: after the first messages the receiver's GPU copies from the sender's staging, and nothing
    is fetched by a system call; the page-lock is for reading only, a segment once, and let go. Where CUDA has none, and
    into host memory, the processor copies from there; from host memory there is no staging to take it from."""
    lane = last_shown("-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA_DELAY_US="1000")
    assert lane["lent_bytes"] >= lane["bytes"] - (16 << 20) and lane["pulled_bytes"] == 0, lane
    assert lane["lent_bytes"] + lane["mapped_bytes"] <= lane["bytes"] and "not_lent" not in lane, lane
    run = Run(STAGED, "-n", "16", "-l", str(4 << 20), "speed").good()
    reading = [pid for pid, how in run.pins if how == "read-only"]
    assert len(reading) == 1 and run.unpins == reading, (run.pins, run.unpins)
    lane = last_shown("-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA="no-read-only", PP_FAKE_CUDA_DELAY_US="1000")
    assert lane["lent_bytes"] == 0 and lane["mapped_bytes"] > 64 << 20 and lane["pulled_bytes"] == 0, lane
    assert lane["not_lent"] == "Operation not supported", lane
    run = Run(STAGED, "-n", "16", "-l", str(4 << 20), "speed", PP_FAKE_CUDA="no-read-only").good()
    assert run.pins and all(how == "all" for _, how in run.pins) and not run.unpins, run.pins
    for source, target, word in (("alloc", "host", "mapped_bytes"), ("host", "alloc", "pulled_bytes")):
        lane = last_shown("-s", source, "-t", target, "-n", "60", "-l", str(4 << 20), "speed", PP_FAKE_CUDA_DELAY_US="1000")
        assert lane[word] == max(lane[w] for w in ("lent_bytes", "mapped_bytes", "pulled_bytes")) > 64 << 20, lane


def part_forks():
    """Children in the middle of it, at either end, while copies read the other's shelf."""
    for config in (LO, STAGED, WIRE):
        run = Run(config, "-c", "fork", "-s", "vmm", "-t", "vmm2", "-n", "48", "-l", str(2 << 20), "speed",
                  PP_FAKE_CUDA_DELAY_US="1000").good()
        reading = "read-only" in [how for _, how in run.pins]
        assert "speed" in run.out and (reading if config == STAGED else not reading or config == LO), (run.out, run.pins)
        assert bool(run.direct) == (config == LO), (config, run.direct)


def slow(config, mode, direction):
    with tempfile.TemporaryDirectory() as scratch:
        env = {**os.environ, "LD_LIBRARY_PATH": str(CUDA), "PP_FAKE_CUDA": mode,
               "PP_FAKE_CUDA_LOG": str(pathlib.Path(scratch) / "log")}
        with subprocess.Popen([PEERPATH, "soft", "--config", config, "--", CLIENT, "-l", str(3 << 19), "-n", "64", "speed"],
                              env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as job:
            try:
                found = []
                for _ in range(100):
                    time.sleep(0.1)
                    shown = json.loads(subprocess.run([PEERPATH, "soft", "show", "--json"], capture_output=True,
                                                      text=True, timeout=20, check=True).stdout)
                    found = [gpu for process in shown["processes"] for gpu in process.get("gpus", [])
                             if gpu.get("slow")]
                    if found:
                        break
                assert found, shown
                assert found[0]["slow"]["direction"] == direction and found[0]["slow"]["bytes"] == 3 << 19, found
                assert found[0]["slow"]["since_ms"] >= 2000 and found[0]["bdf"] == "0000:3b:00.0", found
                regions = [region for process in shown["processes"] for device in process["devices"]
                           for region in device["memory_regions"] if region.get("memory") == "cuda"]
                assert len(regions) == 2, shown
                for region in regions:
                    assert region["registration"] == "dmabuf" and region["offset"] == "modelled", region
                    assert region["inode"] and region["descriptor_bytes"] >= region["length_bytes"], region
                assert job.poll() is None
            finally:
                os.killpg(job.pid, signal.SIGKILL)


def part_slow():
    """A copy that is never done is named by `soft show`; the peer does not give up, and the process ends."""
    slow(STAGED, "hang", "to-host")
    slow(LO, "hang-direct", "direct")


PARTS = {name[5:]: function for name, function in globals().items() if name.startswith("part_")}

if __name__ == "__main__":
    alone()
    PARTS[sys.argv[4]]()
