#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench's verdicts of a GPU: slower than host memory beside it, with the hop named; throttled, and so void.

The GPU is tests/fake's, hot or not; the software device stands in a made machine, on the GPU's switch or not. Only the
processes that move the GPU's memory get a slow wire: 'soft show' tells which they are, 'soft fault' is their fault.

usage: bench_hop.py PEERPATH
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from soft import TOP, alone, not_sanitized

PEERPATH = os.path.abspath(sys.argv[1])
DEVICE = "name=soft0,address=127.0.0.1,same-host=no"
LIMIT = 60  # seconds after which what should have happened has not
WRONG = []


def expect(good, *what):
    if not good:
        WRONG.append(": ".join(str(w) for w in what)[:1500])


def variables(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PEERPATH_TOKEN", "SLURM_", "PMI", "OMPI_"))}
    return {**clean, "PEERPATH_SOFT": DEVICE, **more}


def call(words, **more):
    return subprocess.run([PEERPATH, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False,
                          env=variables(**more))


def of_gpu():
    """Processes whose queue pairs work on memory that a descriptor leads to."""
    told = json.loads(call(["soft", "show", "--json"]).stdout or "{}")
    return [p["pid"] for p in told.get("processes", []) for d in p["devices"]
            if any(m["registration"] == "dmabuf" for m in d["memory_regions"]) and any(q["state"] == "RTS" for q in d["queue_pairs"])]


def document(text, what):
    try:
        return json.loads(text)
    except ValueError:
        sys.exit(f"{what}: no document: {text[-500:]}")


def row_of(doc, rung):
    return next(r for r in doc["transfer"]["rows"] if r["rung"] == rung)


BENCH = ["--busy-ok", "--rungs", "host,dmabuf", "-s", "1M", "--repeats", "3", "-D", "20ms", "--measure", "bandwidth", "--json"]


def slowed(words, gpu, what):
    """A run in which the GPU's memory, and that alone, is behind a slow wire."""
    with subprocess.Popen([PEERPATH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                          env=variables(PP_FAKE_GPU_BUS=gpu)) as bench:
        end = time.monotonic() + LIMIT
        while len(of_gpu()) < 2 and bench.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        slow = of_gpu()
        for pid in slow:
            done = call(["soft", "fault", "--pid", str(pid), "bandwidth=400M"])
            expect(done.returncode == 0, what, done.stderr)
        out, err = bench.communicate(timeout=120)
    expect(len(slow) == 2, what, "processes of the GPU's memory", slow, err)
    return document(out or err, what)


def hop(here):
    """GPU 0 and the hca are on one switch; to GPU 1 it is the root complex."""
    machine, made = here / "machine", here / "sys"
    subprocess.run([sys.executable, TOP / "tests/fixtures/make_machine.py", "--gpus", "2", "--nics", "1", "--switches", "2",
                    "--sockets", "1", machine], check=True)
    for bus, route, words in (("2a", "root-complex", "hop: the root complex between GPU and hca at "),
                              ("18", "switch", "hop: between GPU and hca; which hop is not known")):
        soft = ["soft", "--sysfs", str(made), "--beside", "0000:19:00.0", "--replay", str(machine), "--", PEERPATH]
        bench = ["bench", "--here", "--gpu", f"0000:{bus}:00.0", *BENCH, "--repeats", "8", "-D", "200ms"]
        doc = slowed([*soft, *bench], bus, route)
        end, row = doc["pairs"][0]["ends"][0], row_of(doc, "dmabuf")
        expect(doc["simulated"] and end["route"] == route, "the machine that was made", end)
        expect(row["verdict"] == "degraded" and "of host memory's bandwidth at 1 MiB, 0.90 wanted; " + words in row["sentence"], route, row)
        expect(row["hop"] and row["hop"] in words + row["sentence"], route, row["hop"])
        expect("hop" not in row_of(doc, "host")["sentence"], route, row_of(doc, "host"))


def throttled():
    """A GPU that is held down is not judged by what it did, and one that is not is."""
    words = ["bench", "--simulate", "--here", "--gpu", "0000:3b:00.0", *BENCH]
    for mode, held in (("throttled", True), ("ok", False)):
        doc = document(call(words, PP_FAKE_NVML=mode).stdout, mode)
        row = row_of(doc, "dmabuf")
        expect(("void: the GPU at " in row["sentence"] and "was throttled (thermal)" in row["sentence"]) == held, mode, row)
        expect(not held or row["verdict"] == "unknown", mode, row)
        expect("throttled" not in row_of(doc, "host")["sentence"], "host memory needs no GPU", row_of(doc, "host"))
        expect(doc["simulated"] and not re.search(r"\bproven", json.dumps(doc["transfer"])), mode, "of a simulation")


def main():
    not_sanitized()
    alone(needed=True)
    with tempfile.TemporaryDirectory() as here:
        hop(pathlib.Path(here))
    throttled()
    for wrong in WRONG:
        print(wrong)
    print(f"bench_hop: 4 runs, {len(WRONG)} faults")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
