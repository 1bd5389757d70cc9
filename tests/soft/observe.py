#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The observer under a client that loads verbs as NCCL does, under perftest and under UCX: results and errno are
the program's own, every registration is written down, questions with descriptor -1 are marked as such.

usage: observe.py PEERPATH OBSERVER CLIENT SANITIZED-CLIENT FAKE-NCCL FAKE-CUDA
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from soft import LOOP, alone, on, port, skip

PEERPATH, OBSERVER, CLIENT = map(os.path.abspath, sys.argv[1:4])
SANITIZED, NCCL, CUDA = sys.argv[4:7]
THREADS, ROUNDS = 4, 50  # of observed.c
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def words(folder):
    """A command's words behind env: the auditor is for the program alone, not for what starts it."""
    return ["env", f"LD_AUDIT={OBSERVER}", f"PEERPATH_OBSERVE={folder}"] if folder else ["env"]


def run(folder, *command):
    done = subprocess.run(on(PEERPATH, LOOP, [*words(folder), *command]), capture_output=True, text=True,
                          timeout=100, check=False)
    expect(done.returncode == 0, command, done.returncode, done.stderr)
    return done


def records(folder):
    """Of each process: its first record, and the others."""
    for path in sorted(pathlib.Path(folder).iterdir()):
        expect(path.stat().st_mode & 0o777 == 0o600, path, oct(path.stat().st_mode))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        expect(lines[0]["call"] == "start" and lines[0]["schema"] == "peerpath.observation/1", lines[0])
        yield lines[0], lines[1:]


def by_loader(top):
    plain = run(None, CLIENT)
    folder = top / "loader"
    folder.mkdir()
    watched = run(folder, CLIENT)
    expect(plain.stdout == watched.stdout and watched.stderr == plain.stderr, plain, watched)
    said = dict((line.rsplit(" ", 1)) for line in plain.stdout.splitlines())
    (start, seen), = records(folder)
    expect(start["program"] == CLIENT, start)
    expect(all(r["device"] == "soft0" for r in seen), seen[:3])
    reg = [r for r in seen if r["call"] == "ibv_reg_mr"]
    iova2 = [r for r in seen if r["call"] == "ibv_reg_mr_iova2"]
    expect(len(reg) == 2 + THREADS * ROUNDS and len(iova2) == THREADS * ROUNDS, len(reg), len(iova2))
    expect(reg[0]["memory"] == "host" and reg[0]["length"] == 8192 and "errno" not in reg[0], reg[0])
    expect(reg[1]["memory"] == "reserved" and str(reg[1]["errno"]) == said["reserved refused"], reg[1], said)
    expect(all(r["errno"] == 22 for r in reg[2:]), reg[2:4])
    # Keys of what was registered are those that were deregistered, each once.
    made = [r["lkey"] for r in seen if "lkey" in r and r["call"] != "ibv_dereg_mr"]
    gone = [r["lkey"] for r in seen if r["call"] == "ibv_dereg_mr"]
    expect(sorted(made) == sorted(gone) and len(made) == 2 + THREADS * ROUNDS, len(made), len(gone))
    ask, closed, memfd = [r for r in seen if r["call"] == "ibv_reg_dmabuf_mr"]
    expect(ask["probe"] and ask["errno"] == 9 and ask["fd"] == -1, ask)
    expect("probe" not in closed and closed["errno"] == 9, closed)
    expect("probe" not in memfd and memfd["lkey"] in gone and memfd["length"] == 8192, memfd)
    good, large = [r for r in seen if r["call"] == "ibv_create_qp"]
    expect(good["type"] == 2 and good["qpn"] > 0, good)
    expect(str(large["errno"]) == said["large qp refused"], large, said)


def silent(top):
    """Where nothing can be written the program does not notice; without a folder nothing is watched."""
    full = pathlib.Path("/dev/full")
    for folder in (top / "not-there", full):
        done = run(folder, CLIENT)
        expect("rounds good" in done.stdout and not done.stderr, folder, done)
    before = set(top.rglob("*"))
    done = run("relative", CLIENT)
    expect("rounds good" in done.stdout and set(top.rglob("*")) == before, done)


def pair(top, name, server, client, good):
    if not shutil.which(server[0]):
        print(f"{server[0]} is not installed: not watched")
        return []
    folder = top / name
    folder.mkdir()
    with subprocess.Popen(on(PEERPATH, LOOP, [*words(folder), *server]), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as first:
        subprocess.run(["sleep", "2"], check=True)
        second = run(folder, *client)
        text = first.communicate(timeout=60)[0]
    expect(first.returncode == 0 and good in second.stdout, name, text, second)
    return [seen for _, seen in records(folder)]


def programs(top):
    where = port()
    seen = pair(top, "perftest", ["ib_write_bw", "-n", "50", "-p", where], ["ib_write_bw", "-n", "50", "-p", where,
                                                                           "127.0.0.1"], "BW average")
    for one in seen:
        calls = [r["call"] for r in one]
        expect("ibv_create_qp" in calls and any(c.startswith("ibv_reg_mr") for c in calls), calls)
        expect(any(r.get("memory") == "host" and r["length"] >= 65536 for r in one), one)
    where = port()
    tool = ["ucx_perftest", "-t", "tag_bw", "-n", "100", "-s", "65536", "-p", str(where)]
    os.environ["UCX_TLS"] = "rc_verbs,ud_verbs"
    for one in pair(top, "ucx", tool, [*tool, "127.0.0.1"], "Final:"):
        expect(any(r["call"].startswith("ibv_reg_mr") for r in one), [r["call"] for r in one])


def failing(folder, server, client, fault):
    """Both ends with every registration refused from the n-th on: (statuses, what they say of it)."""
    config = f"name=soft0,address=127.0.0.1,trains=no,fault={fault}"
    ends = []
    with subprocess.Popen(on(PEERPATH, config, [*words(folder), *server]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as first:
        subprocess.run(["sleep", "1"], check=True)
        second = subprocess.run(on(PEERPATH, config, [*words(folder), *client]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        try:
            text = first.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            first.kill()
            text = first.communicate()[0]
        ends = [(second.returncode, second.stdout), (first.returncode, text)]
    # numbers of processes, addresses, times
    return [(code, sorted(set(re.sub(r"0x[0-9a-f]+|[0-9]+", "N", line) for line in said.splitlines()
                              if re.search("allocate|fail|error|memory|ERR", line, re.I)))) for code, said in ends]


def refused(top):
    """A registration that fails ends perftest and UCX in the same way and with the same words, watched or not."""
    tools = {"ib_write_bw": lambda where: ["ib_write_bw", "-n", "50", "-p", where],
             "ucx_perftest": lambda where: ["ucx_perftest", "-t", "tag_bw", "-n", "100", "-s", "65536", "-p", str(where)]}
    for name, make in tools.items():
        if not shutil.which(name):
            print(f"{name} is not installed: not watched")
            continue
        ends = []
        for folder in (None, top / f"refused-{name}"):
            if folder:
                folder.mkdir()
            tool = make(port())
            ends.append(failing(folder, tool, [*tool, "127.0.0.1"], "reg_mr=ENOMEM"))
        expect(ends[0] == ends[1] and ends[0][0][0] != 0, name, "alone:", ends[0], "watched:", ends[1])
        seen = [r for path in (top / f"refused-{name}").iterdir() for r in map(json.loads, path.read_text().splitlines())]
        expect(any(r.get("errno") == 12 for r in seen), name, "the refusal is not written down", seen[:3])


def sanitized(top):
    """A client that is sanitized (the auditor has the first place: ASan must not insist on it) is clean, and says the same."""
    if not os.access(SANITIZED, os.X_OK):
        print("no client with a sanitizer: not watched")
        return
    os.environ["ASAN_OPTIONS"] = "verify_asan_link_order=0:exitcode=99"
    os.environ["UBSAN_OPTIONS"] = "halt_on_error=1"
    plain = run(None, SANITIZED)
    folder = top / "sanitized"
    folder.mkdir()
    watched = run(folder, SANITIZED)
    expect("rounds good" in plain.stdout and plain.stdout == watched.stdout, plain, watched)
    expect("Sanitizer" not in watched.stderr + plain.stderr and "runtime error" not in watched.stderr, watched.stderr)
    expect(len(list(records(folder))) == 1, "not watched")


def nccl(top):
    """tests/fake's NCCL: the same results, and the same failure of a registration, watched or not."""
    env = {**os.environ, "LD_LIBRARY_PATH": f"{NCCL}:{CUDA}", "NCCL_NET": "IB", "NCCL_DEBUG": "INFO"}
    tool = [PEERPATH, "nccl", "perf", "all_reduce", "--ranks", "2", "--one-gpu", "-b", "8", "-e", "1M", "-f", "64", "-n", "2", "-w", "1", "--json"]
    for kind, code in (("", 0), ("wrong@1:2", 1), ("init@1", 1)):
        ends = []
        for folder in (None, top / f"nccl-{kind or 'right'}"):
            if folder:
                folder.mkdir()
            done = subprocess.run(on(PEERPATH, LOOP, [*words(folder), *tool]), capture_output=True, text=True, timeout=100, check=False,
                                  env={**env, **({"PP_FAKE_NCCL": kind} if kind else {})})
            rows = json.loads(done.stdout).get("results", []) if done.stdout else []
            ends.append((done.returncode, [(r.get("size"), r["out_of_place"]["nwrong"]) for r in rows if "out_of_place" in r]))
        expect(ends[0] == ends[1] and ends[0][0] == code, kind, "alone:", ends[0], "watched:", ends[1])
    seen = [r for path in (top / "nccl-right").iterdir() for r in map(json.loads, path.read_text().splitlines())]
    made = [r for r in seen if r["call"] == "ibv_reg_dmabuf_mr" and "lkey" in r]
    # of a rank with two channels NCCL 2.28 registers ten times GPU memory
    expect(len(made) == 20, "DMA-BUF registrations:", len(made), sorted({r["call"] for r in seen}))


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        skip("an auditor takes the first place, which ASan's run-time wants; unit-observe runs its code")
    alone()
    os.environ.pop("LD_LIBRARY_PATH", None)  # of the build's own libraries: each program is given what it needs
    with tempfile.TemporaryDirectory(prefix="peerpath-observe.") as top:
        by_loader(pathlib.Path(top))
        silent(pathlib.Path(top))
        programs(pathlib.Path(top))
        refused(pathlib.Path(top))
        sanitized(pathlib.Path(top))
        nccl(pathlib.Path(top))
    for line in failures:
        print("bad:", line[:600])
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
