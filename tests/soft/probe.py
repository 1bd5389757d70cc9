#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""'peerpath check --probe' as it runs: on the software device, with a CUDA that needs no GPU, whose DMA-BUF
descriptors are memfds. What is refused is told by variables of that CUDA (tests/fake) and by the device's
own faults; every row is marked simulated.

usage: probe.py PEERPATH
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from soft import alone, not_sanitized

PEERPATH = sys.argv[1]
CONFIG = "name=lo,address=127.0.0.1"
GPUS = ("0000:3b:00.0", "0000:9a:00.0")  # of the made CUDA; processes compute on the second
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def probe(top, *words, config=CONFIG, **variables):
    """The document of one probe, and its rows by GPU and method."""
    argv = [PEERPATH, "soft", "--config", config, "--sysfs", str(pathlib.Path(top) / "sys"), "--",
            PEERPATH, "check", "--probe", "--json", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, env={**os.environ, **variables})
    doc = json.loads(done.stdout or "null")
    if not doc:
        sys.exit(f"no document: {done.stderr}")
    return doc, {(r["gpu"], r["method"]): r for r in doc["probe"]}


def all_ways(top):
    doc, rows = probe(top, "--busy-ok")
    ways = {(None, "host"), (None, "dmabuf-fd-1"), *((g, m) for g in GPUS for m in ("gpu-dmabuf", "gpu-peermem"))}
    expect(set(rows) == ways, "rows", sorted(map(str, rows)))
    expect(all(r["verdict"] == "pass" and r["simulated"] for r in rows.values()), rows)
    expect(doc["simulated"] and doc["verdict"] != "pass", "a made device passes", doc["claim"])


def users(top):
    """One GPU is computed on; whether others have the device open, a container may not know."""
    doc, rows = probe(top)
    if doc["probe_users_known"]:
        expect(rows[GPUS[0], "gpu-dmabuf"]["verdict"] == "pass", rows)
        expect("4 processes compute on it" in rows[GPUS[1], "gpu-dmabuf"]["note"], rows)
        expect(doc["probe_busy_gpus"] == 1, doc["probe_busy_gpus"])
    expect(rows[GPUS[1], "gpu-dmabuf"]["verdict"] == "unknown", rows)


def refusals(top):
    _, rows = probe(top, "--busy-ok", PP_FAKE_CUDA="proprietary")
    for gpu in GPUS:
        expect(rows[gpu, "gpu-dmabuf"]["verdict"] == "fail" and
               "open kernel modules" in rows[gpu, "gpu-dmabuf"]["note"], rows[gpu, "gpu-dmabuf"])
        expect(rows[gpu, "gpu-peermem"]["verdict"] == "pass", rows[gpu, "gpu-peermem"])
    _, rows = probe(top, "--busy-ok", PP_FAKE_CUDA="exclusive")
    expect(all(rows[g, "gpu-dmabuf"]["verdict"] == "unknown" and "EXCLUSIVE_PROCESS" in rows[g, "gpu-dmabuf"]["note"]
               for g in GPUS), rows)
    _, rows = probe(top, "--busy-ok", PP_FAKE_CUDA="block")
    expect(all("cuInit did not return" in rows[g, "gpu-peermem"]["note"] for g in GPUS), rows)
    expect(rows[None, "host"]["verdict"] == "pass", "a CUDA that hangs costs the host's row")
    _, rows = probe(top, "--busy-ok", config=CONFIG + ",fault=reg_dmabuf_mr=524")
    row = rows[GPUS[0], "gpu-dmabuf"]
    expect(row["verdict"] == "fail" and row["errno"] == 524 and "dma-buf attach failed" in row["note"], row)


def main():
    not_sanitized()
    alone()
    with tempfile.TemporaryDirectory() as top:
        all_ways(top)
        users(top)
        refusals(top)
    print("\n".join(failures) or "probed, refused and left alone as it should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
