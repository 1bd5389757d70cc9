#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recorded node with two H200 and no NIC: what nvidia-smi and the data sheet say must come out.

usage: h200.py PEERPATH
Expected values: nvidia-smi -L, topo -m and -q on that node (580.159.04, NV18, 143771 MiB, BAR1
262144 MiB), /proc/driver/nvidia/version ("Open Kernel Module"), and an empty /sys/class/infiniband.
"""
import json
import pathlib
import subprocess
import sys

PEERPATH = sys.argv[1]
CAPTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures/machines/h200-2gpu.tar.zst"
GPUS = ("0000:00:06.0", "0000:00:07.0")
faults = []


def run(verb, *options, code):
    done = subprocess.run([PEERPATH, verb, "--json", "--replay", CAPTURE, *options], capture_output=True, text=True)
    if done.returncode != code:
        faults.append(f"{verb}: exit {done.returncode}, expected {code}: {done.stderr.strip()}")
    return json.loads(done.stdout or "{}")


def expect(what, got, want):
    if got != want:
        faults.append(f"{what}: {got!r}, expected {want!r}")


def main():
    facts = {(f["of"], f["fact"]): f["value"] for f in run("identity", "--facts", code=0)["facts"]}
    expected = {
        ("node", "nvidia.flavour"): "open",
        ("node", "nvidia.version"): "580.159.04",
        ("node", "cuda.driver_api"): 13000,
        ("node", "nvidia_peermem.loaded"): False,
        ("node", "rdma.devices"): 0,
        ("node", "rdma.stack"): "inbox",
        ("node", "libibverbs.reg_dmabuf_mr"): True,
        ("node", "kernel.dmabuf_umem"): True,
        ("node", "nvidia_smi.matrix_differences"): [],
    }
    for gpu in GPUS:
        expected |= {
            (gpu, "gpu.name"): "NVIDIA H200",
            (gpu, "gpu.memory_bytes"): 143771 << 20,
            (gpu, "gpu.bar1_total_bytes"): 262144 << 20,
            (gpu, "gpu.bar1_covers_memory"): True,
            (gpu, "gpu.dmabuf_supported"): True,
            (gpu, "gpu.gdr_supported"): True,
            (gpu, "gpu.gdr_vmm_supported"): True,
            (gpu, "gpu.flush_options"): 1,
            (gpu, "gpu.writes_ordering"): 100,
            (gpu, "gpu.nvlinks"): 18,
            (gpu, "gpu.driver"): "nvidia",
            (gpu, "gpu.numa_node"): -1,
        }
    for (of, fact), want in expected.items():
        expect(f"{of} {fact}", facts.get((of, fact)), want)
    matrix = subprocess.run([PEERPATH, "topo", "--replay", CAPTURE], capture_output=True, text=True).stdout
    rows = [line.split() for line in matrix.splitlines() if line.startswith("GPU")]
    for want in (["GPU0", "X", "NV18", "0-31", "0"], ["GPU1", "NV18", "X", "0-31", "0"]):
        if want not in rows:
            faults.append(f"topo: no row {want} as nvidia-smi prints it")
    gates = {g["name"]: g for g in run("prove", "--no-bundle", code=2)["gates"]}
    expect("gate 0", gates["identity"]["verdict"], "pass")
    expect("gate 1", gates["prerequisites"]["verdict"], "unknown")
    if "no RDMA device" not in gates["prerequisites"]["claim"]:
        faults.append(f"gate 1 does not say what is missing: {gates['prerequisites']['claim']}")
    check = json.dumps(run("check", code=2))
    for word in ("580.159.04", "no RDMA device"):
        if word not in check:
            faults.append(f"check does not say '{word}'")
    print("\n".join(faults) or f"{len(expected)} facts, matrix and gates as on the node")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
