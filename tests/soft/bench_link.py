#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench says by which way the software device carried each rung, with a CUDA whose memory nobody but a GPU can touch
(tests/fake/cuda_copy.c): from GPU to GPU directly, by staging, or by UDP, as the device was told.

usage: bench_link.py PEERPATH CUDA_DIRECTORY NVML_DIRECTORY
"""
import json
import os
import subprocess
import sys

from soft import alone, not_sanitized

PEERPATH, CUDA, NVML = sys.argv[1:4]
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what))[:1000])


def bench(kind, more):
    argv = [PEERPATH, "bench", "--simulate", "--here", "--busy-ok", "--gpu", "0000:3b:00.0", "--repeats", "3", "-D", "20ms",
            "--measure", "bandwidth", "--json", "--rungs", "host,dmabuf,staged", "-s", "64K,1M", "--memory", kind]
    env = {**os.environ, "PEERPATH_TOKEN": "0123456789abcdef", "LD_LIBRARY_PATH": f"{CUDA}:{NVML}",
           "PEERPATH_SOFT": "name=soft0,address=127.0.0.1" + more}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env, check=False)
    if not done.stdout:
        sys.exit(f"{kind}{more}: no document: {done.stderr}")
    pair = json.loads(done.stdout)["pairs"][0]
    return {r["rung"]: r for r in pair["rungs"]}, [c for c in pair["cells"] if c["rung"] in ("host", "dmabuf", "staged")]


def main():
    not_sanitized()
    alone()
    for kind in ("cuda", "cuda-vmm"):
        for more, gpu, host in (("", "direct", "same-host"), (",same-host-gpu=staged", "staged", "same-host"),
                                (",same-host=no", "wire", "wire")):
            ways, cells = bench(kind, more)
            expect(cells and not any(c["wrong_bytes"] for c in cells), kind, more, cells)
            # The first end sends a GPU's memory by dmabuf; the second, and the other rungs, send none.
            for name, wanted in {"dmabuf": (gpu, host), "host": (host, host), "staged": (host, host)}.items():
                expect(ways[name]["state"] == "run", kind, more, ways[name])
                # An end that is asked when it has no processor may not answer in time: not known, and no other word.
                expect(all(a in (b, None) for a, b in zip(ways[name]["link"], wanted)), kind, more, name, ways[name]["link"])
    print("\n".join(failures) or "each rung says how it was carried")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
