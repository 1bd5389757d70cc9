#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `peerpath bench` makes of a device with a fault of a kind: the verdict, its words, the cause, the exit status.

usage: verdicts.py PEERPATH [SUBSTRING-OF-A-CASE...]

Which verdict belongs to which fault is the migration runbook's: a host that fails is the fabric, a good host whose GPU
memory is refused is the registration, both bad alike is not the registration. A simulation never passes as hardware.
"""
import json
import os
import subprocess
import sys

from soft import Fault, alone, cases

PEERPATH = os.path.abspath(sys.argv[1])
SMALL = ("--measure", "bandwidth", "--size", "64K", "--duration", "20ms", "--repeats", "2")


def bench(fault, *words, link=True):
    config = "name=soft0,address=127.0.0.1" + ("" if link else ",same-host=no") + (f",fault={fault}" if fault else "")
    done = subprocess.run([PEERPATH, "bench", "--simulate", "--json", "--rungs", "host,dmabuf,staged", *SMALL, *words],
                          capture_output=True, text=True, timeout=200, env={**os.environ, "PEERPATH_SOFT": config},
                          check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError as err:
        raise Fault(f"exit {done.returncode}, no document: {done.stderr.strip()[-300:]}") from err
    return done.returncode, document


def row(document, rung):
    found = [r for r in document["transfer"]["rows"] if r["rung"] == rung]
    if len(found) != 1:
        raise Fault(f"{len(found)} rows of {rung}")
    return found[0]


def expect(good, *what):
    if not good:
        raise Fault(" ".join(map(str, what)))


def honest(document):
    """Whatever came of it: nothing of it is hardware, and it says so everywhere."""
    transfer = document["transfer"]
    expect(document["simulated"] is True, "not marked")
    expect(transfer["verdict"] != "pass" and all(r["verdict"] != "pass" for r in transfer["rows"]), "a simulation passed")
    expect("proven" not in json.dumps(transfer["rows"]) and "proven" not in transfer["sentence"], "said to be proven")


def sound():
    status, document = bench("")
    honest(document)
    expect(status == 0 and document["transfer"]["simulation"] == "passed", status, document["transfer"]["sentence"])
    cells = [c for p in document["pairs"] for c in p["cells"] if c["state"] == "run"]
    expect({c["rung"] for c in cells} == {"host", "dmabuf", "staged"}, "rungs")
    expect(all(c["checked_bytes"] and not c["wrong_bytes"] for c in cells), "bytes")


def registration(number, cause):
    """The host is good; GPU memory is refused as that stack refuses it."""
    status, document = bench(f"reg_dmabuf_mr={number}")
    honest(document)
    gpu, host = row(document, "dmabuf"), row(document, "host")
    expect(status == 1 and document["transfer"]["verdict"] == "fail", status, document["transfer"]["verdict"])
    expect(gpu["verdict"] == "fail" and "registration" in gpu["sentence"] and str(number) in gpu["sentence"], gpu)
    expect(gpu["cause"] == cause, gpu["cause"], "not", cause)
    expect(host["verdict"] != "fail", host)
    tried = [a for p in document["pairs"] for r in p["rungs"] if r["rung"] == "dmabuf" for a in r["attempts"]]
    expect(any(a["call"] == "ibv_reg_dmabuf_mr" and a["error"] == number for a in tried), tried)


def fabric(fault, words):
    """The host fails: GPU memory is not judged, whatever it did."""
    status, document = bench(fault)
    honest(document)
    expect(status == 1 and document["transfer"]["verdict"] == "fail", status, document["transfer"]["verdict"])
    expect("fabric" in document["transfer"]["sentence"], document["transfer"]["sentence"])
    expect(words in row(document, "host")["sentence"], row(document, "host")["sentence"])
    gpu = row(document, "dmabuf")
    expect(gpu["verdict"] == "unknown" and "not judged" in gpu["sentence"], gpu)


def lossy():
    """Packets are lost and nothing else: the bytes are right, and the counters that grew are named."""
    status, document = bench("loss=5% seed=7", link=False)
    honest(document)
    expect(status == 0, status, document["transfer"]["sentence"])
    expect("out_of_sequence" in row(document, "host")["sentence"], row(document, "host")["sentence"])
    moved = {c["name"] for p in document["pairs"] for cell in p["cells"] for c in cell["counters"]}
    expect("out_of_sequence" in moved and "duplicate_request" in moved, moved)


def alike():
    """A slow wire is slow for both: nobody blames the registration."""
    status, document = bench("bandwidth=50M", link=False)
    honest(document)
    expect(status == 0, status)
    expect("registration" not in document["transfer"]["sentence"], document["transfer"]["sentence"])
    rate = {c["rung"]: max(c["samples_mb_per_s"]) for p in document["pairs"] for c in p["cells"] if c["state"] == "run"}
    expect(rate["host"] < 60 and rate["dmabuf"] < 60, rate)


def main():
    alone()
    return cases([
        ("sound", sound),
        # Rows of the table of errno, call and environment.
        ("524 is a topology that the driver refuses", registration, 524, "dmabuf-topology-refused"),
        ("12 is BAR1", registration, 12, "bar1-exhausted-dmabuf"),
        ("a host without queue pairs", fabric, "create_qp=ENOMEM", "ibv_create_qp"),
        ("a host that gets no connection", fabric, "modify_qp_rtr=ETIMEDOUT", "ibv_modify_qp"),
        ("a lossy wire", lossy),
        ("a slow wire", alike),
    ], sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
