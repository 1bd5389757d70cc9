#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The observer under a client that loads verbs as NCCL does, under perftest and under UCX: results and errno are
the program's own, every registration is written down, questions with descriptor -1 are marked as such.

usage: observe.py PEERPATH OBSERVER CLIENT
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from soft import LOOP, alone, on, port, skip

PEERPATH, OBSERVER, CLIENT = map(os.path.abspath, sys.argv[1:4])
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


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        skip("an auditor takes the first place, which ASan's run-time wants; unit-observe runs its code")
    alone()
    with tempfile.TemporaryDirectory(prefix="peerpath-observe.") as top:
        by_loader(pathlib.Path(top))
        silent(pathlib.Path(top))
        programs(pathlib.Path(top))
    for line in failures:
        print("bad:", line[:600])
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
