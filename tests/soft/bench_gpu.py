#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench with a GPU's memory, on the software device with a CUDA that needs no GPU (tests/fake): allocations,
segments, a buffer inside an allocation, through the host; and what that CUDA or BAR1 refuses costs its own
way only, with the reason in one line.

usage: bench_gpu.py PEERPATH
"""
import json
import os
import re
import subprocess
import sys

from soft import alone, not_sanitized

PEERPATH = sys.argv[1]
GPU = "0000:3b:00.0"
MIB = 1 << 20
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what))[:1000])


def bench(*words, **variables):
    argv = [PEERPATH, "bench", "--simulate", "--here", "--busy-ok", "--gpu", GPU, "--repeats", "3", "-D", "20ms",
            "--measure", "bandwidth", "--json", *words]
    env = {**os.environ, "PEERPATH_TOKEN": "0123456789abcdef", **variables}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env)
    if not done.stdout:
        sys.exit(f"{words}: no document: {done.stderr}")
    doc = json.loads(done.stdout)
    return doc, {r["rung"]: r for r in doc["pairs"][0]["rungs"]}, doc["pairs"][0]["cells"]


def calls(rung, call, end):
    return [a for a in rung["attempts"] if a["call"] == call and a["end"] == end]


def right(words, rungs, parts, **variables):
    """All ways ran, every byte was compared; @parts registrations at each end."""
    doc, ways, cells = bench("--rungs", ",".join(rungs), "-s", "64K,1M", *words, **variables)
    for name in rungs:
        expect(ways[name]["state"] == "run" and ways[name]["simulated"], words, ways[name])
    mine = [c for c in cells if c["rung"] in rungs]
    expect(len(mine) == 2 * len(rungs) and all(c["state"] == "run" and not c["wrong_bytes"] and
                                                 c["checked_bytes"] >= 3 * MIB for c in mine), words, mine)
    expect(doc["simulated"] and doc["verdict"] == "unknown", words, doc["verdict"])
    dmabuf = ways["dmabuf"]
    expect(dmabuf["registration"] == "dmabuf" and dmabuf["offset"] == "honoured", words, dmabuf)
    for end in (0, 1):
        regs = calls(dmabuf, "ibv_reg_dmabuf_mr", end)
        expect(len(regs) == parts and not any(a["error"] for a in regs), words, regs)
    # two processes of one host; this CUDA's memory is the host's, so that none of it is a GPU's
    for name in rungs:
        # An end that is asked when it has no processor may not answer in time: not known, and no other word.
        expect(set(ways[name]["link"]) in ({"same-host"}, {"same-host", None}), words, name, ways[name]["link"])
    return dmabuf


def memory():
    right(("--memory", "cuda"), ("host", "dmabuf", "staged"), 1)
    dmabuf = right(("--memory", "cuda", "--inside", "70001"), ("host", "dmabuf", "staged"), 1)
    arguments = calls(dmabuf, "ibv_reg_dmabuf_mr", 0)[0]["arguments"]
    offset, iova = re.match(r"offset (\d+), .*iova 0x([0-9a-f]+),", arguments).groups()
    expect(int(offset) == 70001 and (int(offset) ^ int(iova, 16)) % 4096 == 0, "inside:", arguments)
    for op in ("read", "send"):
        right(("--memory", "cuda", "--op", op), ("host", "dmabuf", "staged"), 1)
    dmabuf = right(("--memory", "cuda-vmm", "--segments", "3"), ("host", "dmabuf", "staged"), 3)
    lengths = [int(re.search(r"length (\d+)", a["arguments"])[1]) for a in calls(dmabuf, "ibv_reg_dmabuf_mr", 1)]
    expect(all(n and n % (2 * MIB) == 0 for n in lengths[:-1]), "segments:", lengths)


def refused(words, reason, **variables):
    doc, ways, _ = bench("--rungs", "host,dmabuf", *words, **variables)
    why = ways["dmabuf"]["why"] or ""
    expect(ways["host"]["state"] == "run", words, variables, ways["host"])
    expect(ways["dmabuf"]["state"] != "run" and reason in why and "\n" not in why, variables, ways["dmabuf"])
    expect(doc["whole"], variables, "the document is not whole")


def refusals():
    refused(("-s", "64K"), "EXCLUSIVE_PROCESS", PP_FAKE_CUDA="exclusive")
    refused(("-s", "64K"), "open kernel modules", PP_FAKE_CUDA="proprietary")
    refused(("-s", "64K"), "has no", PP_FAKE_CUDA_FAIL="cuMemAlloc_v2=2")
    refused(("-s", "64M"), "54 of its 256 MiB are left", PP_FAKE_NVML="small-bar1")
    refused(("-s", "64K", "--memory", "cuda-vmm"), "several segments", PP_FAKE_CUDA_FAIL="cuMemGetHandleForAddressRange=1")


def main():
    not_sanitized()
    alone()
    memory()
    refusals()
    print("\n".join(failures) or "a GPU's memory is carried right, and refused with a reason")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
