#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench's verdicts, each made by a fault of the software device: what is said of host memory, of GPU memory,
of the cause; one JSON document whatever failed; and nothing of a simulation is said to be proven.

usage: bench_verdicts.py PEERPATH
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

import soft

WRONG = []
REFUSED = "registration: GPU memory was refused by dmabuf"
# fault, exit status, the simulation's word, then of rows: verdict of the pair, rung, its verdict, its cause,
# words of its sentence. Causes are those that `explain` gives to the same errno in a log.
CASES = [
    ("", 0, "passed", None, "dmabuf", None, None, ""),
    ("reg_dmabuf_mr=EOPNOTSUPP", 1, "failed", "fail", "dmabuf", "fail", "dmabuf-unsupported-provider", REFUSED),
    ("reg_dmabuf_mr=93", 1, "failed", "fail", "dmabuf", "fail", "dmabuf-unsupported-kernel", REFUSED),
    ("reg_dmabuf_mr=524", 1, "failed", "fail", "dmabuf", "fail", "dmabuf-topology-refused", "ENOTSUPP (524)"),
    ("reg_dmabuf_mr=ENOMEM", 1, "failed", "fail", "dmabuf", "fail", "bar1-exhausted-dmabuf", "ENOMEM (12)"),
    ("reg_dmabuf_mr=EINVAL", 1, "failed", "fail", "dmabuf", "fail", "mr-bad-range", "EINVAL (22)"),
    ("reg_mr=ENOMEM", 1, "failed", "fail", "host", "fail", "memlock-small", "host memory could not be registered"),
    ("create_qp=ENOMEM", 1, "failed", "fail", "host", "fail", "queue-too-long", "ibv_create_qp"),
    ("spoil=write@/50", 1, "failed", "fail", "host", "fail", None, "bytes arrived wrong at 1 MiB"),
    ("loss=any@400..", 1, "failed", "fail", "host", "fail", "wc-retry-exceeded", "fabric: host memory over RDMA"),
]


def bench(fault, *words):
    description = "name=soft0,address=127.0.0.1" + (f",fault={fault}" if fault else "")
    argv = [sys.argv[1], "bench", "--simulate", "--rungs", "host,dmabuf", "-s", "1M", "--repeats", "3", "-D", "20ms",
            "-n", "20", "--json", *words]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PEERPATH_TOKEN", "SLURM_", "PMI", "OMPI_"))}
    return argv, {**clean, "PEERPATH_SOFT": description}


def run(fault):
    argv, env = bench(fault)
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120, stdin=subprocess.DEVNULL,
                          check=False)
    try:
        return done.returncode, json.loads(done.stdout), done.stdout
    except ValueError:
        WRONG.append(f"{fault}: no JSON: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.returncode, None, done.stdout


def expect(good, *what):
    if not good:
        WRONG.append(": ".join(str(w) for w in what))


def row_of(document, rung):
    return next(r for r in document["transfer"]["rows"] if r["rung"] == rung)


def marked(fault, document, text):
    transfer = document["transfer"]
    expect(document["schema"] == "peerpath.bench/1" and document["simulated"], fault, "not marked as simulated")
    expect(all(e["simulated"] for p in document["pairs"] for e in p["ends"]), fault, "an end is not marked")
    expect(all(r["verdict"] != "pass" for r in transfer["rows"]) and transfer["verdict"] != "pass",
           fault, "something simulated passes")
    expect(not re.search(r"\bproven", text), fault, "says 'proven'")
    expect(transfer["margins"] == {"spread_ratio": 0.05, "gpu_host_ratio": 0.9, "hop_ratio": 0.7,
                                   "from_bytes": 1048576}, fault, "margins", transfer["margins"])


def one(fault, status, word, pair, rung, verdict, cause, words):
    code, document, text = run(fault)
    # a busy machine may keep the device from its acknowledges
    if not fault and document and "retry counter" in document["transfer"]["sentence"]:
        code, document, text = run(fault)
    if not document:
        return
    marked(fault, document, text)
    transfer, row = document["transfer"], row_of(document, rung)
    expect(code == status and transfer["simulation"] == word, fault, code, transfer["simulation"],
           transfer["sentence"])
    expect(pair is None or row_of(document, None)["verdict"] == pair, fault, "pair", row_of(document, None))
    expect(verdict is None or row["verdict"] == verdict, fault, rung, row)
    expect(row["cause"] == cause, fault, "cause", row["cause"], cause)
    expect(words in row["sentence"], fault, row["sentence"])
    if rung == "host":
        expect("not judged" in row_of(document, "dmabuf")["sentence"], fault, row_of(document, "dmabuf"))
        expect(row_of(document, None)["sentence"].endswith("GPU memory is not judged"), fault,
               row_of(document, None)["sentence"])
    if not fault:
        expect(row_of(document, "host")["exercised"] and row["exercised"], "no fault", transfer["rows"])
        expect(transfer["sentence"].startswith("chain exercised in simulation"), transfer["sentence"])


def loses():
    """Two packets in a hundred are lost: right bytes, and a counter that is named."""
    _, document, text = run("loss=2% seed=7")
    if not document:
        return
    marked("loss", document, text)
    row = row_of(document, "host")
    expect(row["verdict"] in ("degraded", "fail"), "loss", row)
    expect(row["counter"] and "grew by" in row["sentence"], "loss: no counter named", row)
    cells = [c for p in document["pairs"] for c in p["cells"]]
    expect(any(x["delta"] for c in cells for x in c["counters"]), "loss: no counter moved")
    expect(all(not c["wrong_bytes"] for c in cells), "loss: wrong bytes")


def alike():
    """A slow wire is slow for both: nobody blames the registration."""
    code, document, text = run("bandwidth=50M")
    if not document:
        return
    marked("slow", document, text)
    expect("registration" not in document["transfer"]["sentence"], "slow", document["transfer"]["sentence"])
    rate = {c["rung"]: c["samples_mb_per_s"] for p in document["pairs"] for c in p["cells"]
            if c["state"] == "run" and c["measure"] == "bandwidth"}
    expect(set(rate) == {"host", "dmabuf"} and all(s < 60 for v in rate.values() for s in v), "slow", code, rate)


def interrupted():
    """Ctrl-C: a whole document of what was measured, and no verdict of it."""
    argv, env = bench("")
    argv[argv.index("--repeats") + 1] = "200"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True,
                          stdin=subprocess.DEVNULL) as process:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    expect(process.returncode == 130, "interrupted: exit", process.returncode, err.strip()[-200:])
    try:
        document = json.loads(out)
    except ValueError:
        WRONG.append(f"interrupted: no JSON: {out[:100]!r} {err.strip()[-200:]}")
        return
    expect(not document["whole"] and document["ended"], "interrupted: whole", document["ended"])
    expect(document["transfer"]["simulation"] == "failed", "interrupted", document["transfer"]["sentence"])


def main():
    soft.not_sanitized()
    soft.alone(needed=True)
    for case in CASES:
        one(*case)
    loses()
    alike()
    interrupted()
    for wrong in WRONG:
        print(wrong)
    print(f"bench_verdicts: {len(CASES) + 3} runs, {len(WRONG)} faults")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
