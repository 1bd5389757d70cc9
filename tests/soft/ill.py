#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ill wire by seed: mixed messages of all kinds between two processes, each byte checked, each
atomic counted, each receive in its order (mesh judges). That the wire was as ill as it was to be is
seen from the processes' own counts, against what a binomial distribution allows; a sound wire beside
it must show none of it.

usage: ill.py PEERPATH MESH FIRST-SEED SEEDS MESSAGES
"""
import json
import math
import subprocess
import sys
import time

PEERPATH, MESH = sys.argv[1], sys.argv[2]
FIRST, SEEDS, MESSAGES = map(int, sys.argv[3:6])
LIMIT_S = 100
SHOWN_S = 20
SHARES = {"loss": 0.01, "duplicate": 0.01, "reorder": 0.02, "corrupt": 0.001}
ILL = " ".join(f"{noun}={share:.1%}" for noun, share in SHARES.items()) + " delay=50us~200us@5% seed={}"
# What each fault leaves behind at one of the ends.
TRACES = {"loss, seen by a gap": ("hw_counters", "out_of_sequence"),
          "a NAK of a gap": ("hw_counters", "packet_seq_err"),
          "duplicates": ("hw_counters", "duplicate_request"),
          "corruption": ("hw_counters", "rx_icrc_encapsulated"),
          "packets sent again": ("counters", "retransmitted_packets")}


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return {int(p) for p in f.read().split()}


def shown(pids):
    """They wait for us; one that a busy machine does not run in time to answer is asked again."""
    until = time.monotonic() + SHOWN_S
    while True:
        out = subprocess.run([PEERPATH, "soft", "show", "--json"], stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
        processes = [p for p in json.loads(out.stdout)["processes"] if p["pid"] in pids]
        if len(processes) == len(pids):
            return [d for p in processes for d in p["devices"]]
        if time.monotonic() > until:
            raise ValueError(f"soft show knows {len(processes)} of {len(pids)} processes")
        time.sleep(0.2)


def run(seed, faults):
    """(what mesh said, devices as shown); raises CalledProcessError."""
    config = "name=lo,address=127.0.0.1" + (f",fault={faults}" if faults else "")
    argv = [PEERPATH, "soft", "--config", config, "--", MESH, "-n", "2", "-c", str(MESSAGES // 2), "-S", str(seed), "-i"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mesh:
        line = mesh.stdout.readline()
        seen = shown(children(mesh.pid)) if line == "through\n" else []
        said, _ = mesh.communicate(timeout=LIMIT_S)
    if mesh.returncode:
        print(line, said, end="")
        raise subprocess.CalledProcessError(mesh.returncode, argv)
    return said.strip(), seen


def traces(devices):
    return {name: sum(d[group][key] for d in devices) for name, (group, key) in TRACES.items()}


def wrong_shares(devices):
    """Five standard deviations: by chance once in two million."""
    for d in devices:
        counts = {f["fault"].partition("=")[0]: f for f in d["faults"]}
        for noun, share in SHARES.items():
            n, fired = counts[noun]["matched"], counts[noun]["fired"]
            if abs(fired - n * share) > 5 * math.sqrt(n * share * (1 - share)) + 1:
                yield f"{noun}: {fired} of {n}, not {share:.1%}"
        if not counts["delay"]["fired"] or not d["fault_log"]["entries"]:
            yield "nothing was delayed, or nothing written down"


def main():
    faults = []
    try:
        said, devices = run(0, None)
        sound = traces(devices)
        print("sound:", said, sound)
        if sound["corruption"] or any(d["faults"] or d["fault_log"]["packets"] for d in devices):
            faults.append("a sound wire corrupts, or has faults")
        sums = dict.fromkeys(TRACES, 0)
        for seed in range(FIRST, FIRST + SEEDS):
            said, devices = run(seed, ILL.format(seed))
            seen = traces(devices)
            print(f"seed {seed}:", said, seen, flush=True)
            sums = {name: sums[name] + seen[name] for name in TRACES}
            faults += [f"seed {seed}: {what}" for what in wrong_shares(devices)]
    except subprocess.CalledProcessError as e:
        return e.returncode
    faults += [f"no trace of {name}" for name, n in sums.items() if not n]
    print("\n".join(faults) or f"{SEEDS * MESSAGES} messages right: {sums}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
