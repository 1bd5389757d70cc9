#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents of nccl run, judged apart from the job: --join, and prove --nccl.

The made job (tests/fixtures/nccl_run/two-nodes.json) moves 100 GB by all_reduce between two ranks: 100 GB leave each node,
2(n-1)/n of it. Its hcas sent 102 GB each, its controls did what they must. What is changed, is changed here.
"""
import copy
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

PEERPATH, PROJECT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
GOOD = json.loads((PROJECT / "tests/fixtures/nccl_run/two-nodes.json").read_text(encoding="utf-8"))


def need(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def arm(document, name):
    return next(r for r in document["runs"] if r["arm"] == name)


def run(*words, where):
    done = subprocess.run([PEERPATH, *map(str, words)], cwd=where, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def write(where, name, document):
    (where / name).write_text(json.dumps(document), encoding="utf-8")
    return name


def joined(where, *documents):
    names = [write(where, f"part{i}.json", d) for i, d in enumerate(documents)]
    return run("nccl", "run", "--join", "--json", *names, where=where)


def gate(where, *documents, status=None):
    code, out, err = joined(where, *documents)
    need(status is None or code == status, f"exit {code}: {out[-800:]} {err}")
    document = json.loads(out)
    need(document["schema"] == "peerpath.nccl_run/1", document["schema"])
    return document["gate"]


def parts(document):
    return [{"schema": document["schema"], "runs": [r]} for r in document["runs"]]


def test_verdicts(where):
    g = gate(where, GOOD, status=0)
    need((g["verdict"], g["claim_gdr"], g["claim_mechanism"], g["mechanism"]) == ("pass", "proven", "proven", "dmabuf"), g)
    need([c["state"] for c in g["controls"]] == ["expected"] * 3, g["controls"])
    # by the two figures of the arms: 46.5 and 12.4 GB/s, 24.5 and 30 us
    need(abs(g["gain"]["bandwidth_ratio"] - 3.75) < 0.01 and abs(g["gain"]["latency_ratio"] - 0.8167) < 0.001, g["gain"])
    need(gate(where, *parts(GOOD), status=0) == g, "arms that ran apart are judged as together")
    need(gate(where, *reversed(parts(GOOD)), status=0) == g, "in any order")
    for lacks, claims in (("A", ("unproven", "unproven")), ("B", ("proven", "unproven")), ("C", ("proven", "proven"))):
        g = gate(where, *(p for p in parts(GOOD) if p["runs"][0]["arm"] != lacks), status=2)
        need((g["claim_gdr"], g["claim_mechanism"]) == claims and g["verdict"] == "unknown", f"without {lacks}: {g}")
        need("--controls" in g["next"], g["next"])


def test_fell_to_tcp(where):
    document = copy.deepcopy(GOOD)
    a = arm(document, "A")
    a["networks"] = "Socket"
    a["judgement"]["ends"] |= {"staged": 0, "staged_sends": 0, "socket": 8}
    for node in a["nodes"]:
        node["traffic"]["ports"][0]["sent_bytes"] = 1000
    g = gate(where, document, status=2)
    need(g["controls"][0]["state"] == "other" and "TCP" in g["controls"][0]["says"], g["controls"][0])
    need(g["claim_gdr"] == "unproven", g)


def test_simulated(where):
    document = copy.deepcopy(GOOD)
    arm(document, "unchanged")["nodes"][1]["traffic"]["ports"][0]["simulated"] = True
    g = gate(where, document, status=0)
    need(g["simulated"] and g["simulation"] == "passed" and g["verdict"] == "unknown", g)
    need(g["sentence"] == "chain exercised in simulation" and "proven" not in (g["claim_gdr"], g["claim_mechanism"]), g)


def test_refused(where):
    for change, says in (({"schema": "peerpath.nccl_run/2"}, "newer"), ({"schema": "peerpath.bench/1"}, "no document"), ({"runs": [{}]}, "runs[0]"),
                         ({"runs": GOOD["runs"] * 2}, "runs"), ({"runs": 7}, "runs")):
        code, out, err = joined(where, GOOD | change)
        need(code == 65 and not out and says in err and err.count("\n") == 1, f"{change.keys()}: {code} {err}")
    code, _, err = joined(where, GOOD, GOOD)
    need(code == 65 and "too" in err, f"twice: {err}")
    other = copy.deepcopy(GOOD)
    arm(other, "B")["command"] = "all_gather_perf"
    code, _, err = joined(where, other)
    need(code == 65 and "another command" in err, f"another job: {code} {err}")
    code, _, err = joined(where, *(p for p in parts(GOOD) if p["runs"][0]["arm"] != "unchanged"))
    need(code == 2 and "own environment" in err, f"controls alone: {code} {err}")


def test_text(where):
    name = write(where, "good.json", GOOD)
    code, out, _ = run("nccl", "run", "--join", name, where=where)
    need(code == 0 and all(len(line) <= 80 for line in out.splitlines()), f"wider than 80 columns:\n{out}")
    for part in ("unchanged  gdr", "host-staged", "204.0", "46.5", "gdr-level-forced", "reverse:", "large messages between hosts went by GDR"):
        need(part in out, f"'{part}' is not in\n{out}")


def test_prove(where):
    document = copy.deepcopy(GOOD)
    foreign = write(where, "foreign.json", document)
    code, _, err = run("prove", "--nccl", foreign, "--no-bundle", where=where)
    need(code == 65 and "did not run on this node" in err, f"another node's job: {code} {err}")
    for r in document["runs"]:
        r["nodes"][0]["host"] = socket.gethostname()
    here = write(where, "here.json", document)
    code, out, err = run("prove", "--nccl", here, "--keep-going", "--json", "-o", "bundle", where=where)
    result = json.loads(out)
    row = result["gates"][3]
    need(row["asked"] and row["verdict"] == "pass" and row["claim_state"] == "proven" and "dmabuf" in row["claim"], f"{row} {err}")
    need(result["through"] == "library" and result["library"]["gate"]["verdict"] == "pass", result["through"])
    # gate 2 was not run: the whole is no better than that
    need(result["verdict"] != "pass" and code != 0, f"{result['verdict']} {code}")
    need((where / "bundle/nccl.json").read_bytes() == (where / "here.json").read_bytes(), "nccl.json is not the document")
    need(run("bundle", "verify", "bundle", where=where)[0] == 0, "the bundle does not verify")
    _, out, _ = run("prove", "--replay", "bundle", "--through", "3", "--keep-going", "--json", "--no-bundle", where=where)
    need(json.loads(out)["gates"][3] == row, "a replay judges gate 3 otherwise")
    (where / "bundle/nccl.json").write_text("{}", encoding="utf-8")
    need(run("bundle", "verify", "bundle", where=where)[0] == 65, "a tampered nccl.json verifies")
    code, _, err = run("prove", "--nccl", here, "--through", "2", "--no-bundle", where=where)
    need(code == 64 and "gate 3" in err, f"--through 2: {code} {err}")


def test_logs(where):
    """The logs of a job of one's own: kept by nccl run, in the bundle, judged again by a replay."""
    log = PROJECT / "tests/fixtures/nccl/made-proven.log"
    job = where / "all_reduce_perf"
    job.write_text(f"#!/bin/sh\ncp {log} $(echo $NCCL_DEBUG_FILE | sed 's/%h/h/; s/%p/1/')\n", encoding="ascii")
    job.chmod(0o755)
    code, out, err = run("nccl", "run", "-q", "--no-observer", "--busy-ok", "--keep-logs", "kept", "-o", "own.json", "--", job, where=where)
    need((where / "kept/unchanged/nccl.h.1.log").exists(), f"{code} {err}")
    code, out, err = run("prove", "--nccl", "own.json", "--nccl-logs", "kept", "--keep-going", "--json", "-o", "with", where=where)
    need(json.loads(out)["library"]["logs"] == [{"arm": "unchanged", "logs": "kept", "files": 1, "bytes": log.stat().st_size, "dropped_bytes": 0, "hidden": 0}], f"{out[-400:]} {err}")
    need((where / "with/nccl/unchanged/0000.log").read_bytes() == log.read_bytes(), "the log is another")
    _, out, _ = run("prove", "--replay", "with", "--json", "--no-bundle", where=where)
    need(json.loads(out)["library"]["logs"][0]["logs"] == "judged again, the same", out[-400:])
    # a log of many MiB: its beginning and end are kept, what was cut is counted, and the document counts
    (where / "kept/unchanged/nccl.h.1.log").write_bytes(log.read_bytes() + b"noise of a job that says much\n" * 100000)
    code, out, err = run("prove", "--nccl", "own.json", "--nccl-logs", "kept", "--keep-going", "--json", "-o", "cut", where=where)
    (entry,) = json.loads(out)["library"]["logs"]
    size = (where / "kept/unchanged/nccl.h.1.log").stat().st_size
    need(entry["logs"] == "cut" and entry["files"] == 2 and entry["bytes"] <= 1 << 20 and entry["bytes"] + entry["dropped_bytes"] == size, f"{entry} of {size}")
    _, out, _ = run("prove", "--replay", "cut", "--no-bundle", where=where)
    need("cut from the bundle" in " ".join(out.split()), out[-600:])
    code, _, err = run("prove", "--nccl", "own.json", "--nccl-logs", "/nowhere", "--no-bundle", where=where)
    need(code == 65 and err.count("\n") == 1 and "/nowhere/unchanged" in err, f"{code} {err}")
    code, _, err = run("prove", "--nccl-logs", "kept", "--no-bundle", where=where)
    need(code == 64 and "--nccl" in err, f"{code} {err}")


def main():
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as where:
                test(pathlib.Path(where))
    print("documents of nccl run: judged, joined, refused, in a bundle")


main()
