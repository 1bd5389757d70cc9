#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client on the software device with a real GPU: what docs/results/ records.

usage: real.py LIBRARY_DIRECTORY CLIENT [SECONDS]

Each step has its own time limit and prints its result; what does not fit into SECONDS (default 600) is named.
Exit 77: no GPU. As root it mounts debugfs to see the kernel's list of dma-bufs, and starts MPS for the speeds.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from show import shown

LIBRARY, CLIENT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
UNTIL = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) > 3 else 600)
LO = "name=lo,address=127.0.0.1"
STAGED = LO + ",same-host-gpu=staged"
WIRE = LO + ",same-host=no"
CALLS = ("cuMemFree", "peer-dereg", "cuMemFreeHost", "cuModuleLoadData", "cuMemHostRegister", "cuMemAlloc", "cuMemHostAlloc",
         "cuMemAllocAsync", "cuMemsetD8", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemcpyDtoH-pageable",
         "cuLaunchKernel-2000")
bad = []


def start(config, *args, **env):
    return subprocess.Popen([CLIENT, *args], env={**os.environ, "PEERPATH_SOFT": config,
                                                  "LD_LIBRARY_PATH": f"{LIBRARY}:{os.environ.get('LD_LIBRARY_PATH', '')}",
                                                  **env},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


def step(name, config, *args, limit=60, **env):
    """One run of the client. Its output, or None."""
    if time.monotonic() + limit > UNTIL:
        print(f"{name}: not run: no time left", flush=True)
        return None
    begin = time.monotonic()
    with start(config, *args, **env) as job:
        try:
            out, _ = job.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            said = [json.dumps(process.get("gpus")) for process in shown()]
            os.killpg(job.pid, 9)
            out, _ = job.communicate()
            out += "".join(f"\n{gpus}" for gpus in said) + f"\nHANGS: not done in {limit} s"
            job.returncode = 124
    if job.returncode == 77:
        print(out)
        sys.exit(77)
    verdict = "ok" if job.returncode == 0 else f"FAILED ({job.returncode})"
    print(f"{name}: {verdict}, {time.monotonic() - begin:.1f} s", flush=True)
    for line in out.splitlines():
        print(f"    {line}", flush=True)
    if job.returncode:
        bad.append(name)
    return out


def facts():
    if not shutil.which("nvidia-smi"):
        print("no GPU: no nvidia-smi")
        sys.exit(77)
    print(subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True, check=False).stdout.strip(), os.cpu_count(), "processors",
          os.uname().release, flush=True)


def witness():
    """The kernel's list of dma-bufs while regions are registered, and after."""
    listing = pathlib.Path("/sys/kernel/debug/dma_buf/bufinfo")
    if not listing.exists() and os.geteuid() == 0:
        subprocess.run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], check=False)
    if not listing.exists():
        print("bufinfo: not seen: no debugfs", flush=True)
        return

    def count():
        return len(re.findall(r"\bnv_dmabuf\b", listing.read_text()))

    before, most = count(), 0
    with start(LO, "-l", str(1 << 20), "-n", "3000", "speed") as job:
        while job.poll() is None:
            most = max(most, count())
            time.sleep(0.05)
        job.communicate()
    print(f"bufinfo: {before} entries of nv_dmabuf before, {most} while two processes have a region each, {count()} after",
          flush=True)
    if most - before < 2 or count() != before:
        bad.append("bufinfo")


def lent():
    """GPU to GPU on one host: what the lane that brings it says of how its bytes came. From the sender's staging by the
    GPU's own copies, unless CUDA page-locks nothing for reading only, which it says then."""
    lane = None
    with start(STAGED, "-s", "vmm", "-t", "vmm2", "-l", str(4 << 20), "-n", "3000", "speed") as job:
        while job.poll() is None:
            for process in shown():
                for found in process.get("lanes", []):
                    if found["direction"] == "in" and found["bytes"] > 1 << 30:
                        lane = found
            time.sleep(0.05)
        out, _ = job.communicate()
    for line in out.splitlines():
        print(f"    {line}", flush=True)
    if lane is None:
        print("lent: no lane seen with 1 GiB", flush=True)
        bad.append("lent")
        return
    print("lent: " + ", ".join(f"{word} {lane[word]}" for word in
                               ("bytes", "lent_bytes", "mapped_bytes", "pulled_bytes", "not_lent") if word in lane), flush=True)
    if job.returncode or (lane["lent_bytes"] < lane["bytes"] * 0.9 and "not_lent" not in lane):
        bad.append("lent")


class Mps:
    def __enter__(self):
        self.dir = tempfile.mkdtemp()
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = self.dir
        os.environ["CUDA_MPS_LOG_DIRECTORY"] = self.dir
        self.there = shutil.which("nvidia-cuda-mps-control") and subprocess.run(
            ["nvidia-cuda-mps-control", "-d"], check=False).returncode == 0
        print(f"MPS: {'started' if self.there else 'not here'}", flush=True)
        return self

    def __exit__(self, *_):
        if self.there:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False, timeout=30)
        del os.environ["CUDA_MPS_PIPE_DIRECTORY"]


def calls(what, link, config, kind):
    """Whose memory it is matters: the driver's lock of what cuMemAlloc() gave is its context's."""
    hangs = 0
    for call in CALLS:
        if hangs < 3:
            out = step(f"{what}, {link}, {kind}, {call}", config, "-s", kind, "-t", kind, "-c", call, "call", limit=12)
            hangs += bool(out and "HANGS" in out)


def speeds(what):
    for link, config in (("same host", LO), ("same host, staged", STAGED), ("wire", WIRE)):
        for kinds in (("-s", "alloc", "-t", "alloc"), ("-s", "vmm", "-t", "vmm2"), ("-s", "host", "-t", "alloc"),
                      ("-s", "host", "-t", "host")):
            many = "200" if config == WIRE else "500"
            step(f"{what}, {link}", config, *kinds, "-l", str(4 << 20), "-n", many, "speed")
        step(f"{what}, {link}", config, "-l", str(64 << 10), "-n", "2000", "speed")
        step(f"{what}, {link}", config, "-l", "4096", "-n", "2000", "speed")


def main():
    facts()
    step("rules", LO, "rules")
    step("bytes, same host", LO, "bytes", limit=90)
    for kind in ("vmm", "alloc"):
        calls("no MPS", "same host", LO, kind)
    with Mps() as mps:
        speeds("MPS" if mps.there else "no MPS")
        lent()
        step("bytes, wire", WIRE, "-s", "vmm", "-t", "vmm2", "-i", "20480", "bytes", limit=90)
        step("bytes, untold", LO, "-s", "host", "-t", "alloc", "bytes", limit=90, PP_GPU_UNTOLD="1")
        step("bytes, to the host", WIRE, "-s", "alloc", "-t", "host", "bytes", limit=90)
    witness()
    with Mps():
        for kind in ("vmm", "alloc"):
            calls("MPS", "wire", WIRE, kind)
    print("failed: " + ", ".join(bad) if bad else "all passed", flush=True)
    sys.exit(1 if bad else 0)


main()
