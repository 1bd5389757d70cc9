#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ill wire, ten seeds: 10^4 messages of all kinds between two processes, each byte checked, each
atomic counted, each receive in its order (mesh judges). That the wire was ill is seen from the
processes' own counters; a sound wire beside it must show none of it.

usage: ill.py PEERPATH MESH
"""
import json
import subprocess
import sys

PEERPATH, MESH = sys.argv[1], sys.argv[2]
SEEDS, MESSAGES, LIMIT_S = 10, 500, 100
ILL = "loss_ppm=20000,duplicate_ppm=20000,reorder_ppm=30000,corrupt_ppm=10000,seed={}"
# What each fault leaves behind at one of the ends.
TRACES = {"loss, seen by a gap": ("hw_counters", "out_of_sequence"),
          "a NAK of a gap": ("hw_counters", "packet_seq_err"),
          "duplicates": ("hw_counters", "duplicate_request"),
          "corruption": ("drops", "icrc"),
          "packets sent again": ("counters", "retransmitted_packets")}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return {int(p) for p in f.read().split()}


def traces(pids):
    """Sums over the devices of the processes."""
    out = subprocess.run([PEERPATH, "soft", "show", "--json"], stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
    processes = [p for p in json.loads(out.stdout)["processes"] if p["pid"] in pids]
    if len(processes) != len(pids):
        raise ValueError(f"soft show knows {len(processes)} of {len(pids)} processes")
    return {name: sum(d[group][key] for p in processes for d in p["devices"])
            for name, (group, key) in TRACES.items()}


def run(seed, faults):
    """(what mesh said, traces); raises CalledProcessError."""
    config = "name=lo,address=127.0.0.1" + (f",{faults}" if faults else "")
    argv = [PEERPATH, "soft", "--config", config, "--", MESH, "-n", "2", "-c", str(MESSAGES), "-S", str(seed), "-i"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mesh:
        line = mesh.stdout.readline()
        seen = traces(children(mesh.pid)) if line == "through\n" else {}
        said, _ = mesh.communicate(timeout=LIMIT_S)
    if mesh.returncode:
        print(line, said, end="")
        raise subprocess.CalledProcessError(mesh.returncode, argv)
    return said.strip(), seen


def main():
    try:
        said, sound = run(0, None)
        print("sound:", said, sound)
        sums = dict.fromkeys(TRACES, 0)
        for seed in range(1, SEEDS + 1):
            said, seen = run(seed, ILL.format(seed))
            print(f"seed {seed}:", said, seen, flush=True)
            sums = {name: sums[name] + seen[name] for name in TRACES}
    except subprocess.CalledProcessError as e:
        return e.returncode
    faults = [f"no trace of {name}" for name, n in sums.items() if not n]
    if sound["corruption"]:
        faults.append("a sound wire corrupts")
    print("\n".join(faults) or f"{SEEDS * MESSAGES * 2} messages right: {sums}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
