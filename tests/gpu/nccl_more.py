#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/gpu/nccl.py leaves open of NCCL on the software device, in one run of about eight minutes.

usage: nccl_more.py BUILD OUT [SECONDS [PART...]]

OUT gets result.json, summary.txt and logs.tar.gz as from nccl.py. Parts, in this order; each has its own limit, and one that
fails costs no other: few (copies of few bytes, no NCCL), graphs (CUDA graphs captured and launched again), beside (8 KiB and
256 MiB beside Socket, in turn), observer (its cost, in turn), registrations (what the observer and the kernel count), prove (on
one GPU under MPS), choices (what makes NCCL choose better). PP_OTHER_BUILD: another build, whose device is measured beside
this one's in the part beside. Exit 77: no GPU, or no NCCL.
"""
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

import nccl
from nccl import BUILD, LO, OUT, PEERPATH, note, ranks, result, rows_of

OBSERVER = BUILD / "src/plugin/libpeerpath-observe.so"
FEW = BUILD / "tests/gpu/gpu_few"
OTHER = os.environ.get("PP_OTHER_BUILD")
LARGE = 256 << 20
LAUNCHES = 20
# name, configuration of the device, environment. The first is what NCCL chooses by itself.
CHOICES = (
    ("as it is", LO, {}),
    ("8 channels", LO, {"NCCL_MIN_NCHANNELS": "8"}),
    ("16 channels", LO, {"NCCL_MIN_NCHANNELS": "16"}),
    ("messages of 4 MiB", LO, {"NCCL_BUFFSIZE": "16777216"}),
    ("8 channels, messages of 4 MiB", LO, {"NCCL_MIN_NCHANNELS": "8", "NCCL_BUFFSIZE": "16777216"}),
    ("LL128", LO, {"NCCL_PROTO": "LL128"}),
    ("Simple", LO, {"NCCL_PROTO": "Simple"}),
)


def left(limit):
    return time.monotonic() + limit < nccl.UNTIL


def timed(name, argv, limit, **env):
    """Status (None: not in time, or no time), output."""
    if not left(limit):
        note({"name": name, "verdict": "not run", "seconds": 0.0, "why": "no time left"})
        return None, ""
    with tempfile.TemporaryFile() as out:
        job = subprocess.Popen([str(a) for a in argv], env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.STDOUT, start_new_session=True)
        ended = nccl.follow([job], limit, nccl.Seen())
        nccl.end_all([job])
        out.seek(0)
        return job.returncode if ended else None, out.read().decode(errors="replace")


def part_few():
    """Without MPS, whatever the number of GPUs: a context of our own beside the application's."""
    begin = time.monotonic()
    status, text = timed("few bytes", [FEW, "256", "4096", "8192", "16384", "32768", "65536"], 60)
    rows = rows_of(text)
    note({"name": "few bytes", "verdict": "ok" if status == 0 and rows else "FAILED", "seconds": time.monotonic() - begin,
          "status": [status], "copies": rows, "why": " | ".join(text.splitlines()[-2:])[-300:]})


def part_graphs():
    plan = {"sizes": [], "ops": [], "graphs": [8 << 10, 128 << 10, 2 << 20, 32 << 20], "launches": LAUNCHES}
    for way, registers in (("direct", "1"), ("direct", "0"), ("staged", "1"), ("wire", "1"), ("socket", "1")):
        ranks(f"graphs, {way}" + ("" if registers == "1" else ", buffers not registered"), way, plan, 40, result["gpus"],
              NCCL_GRAPH_REGISTER=registers)


def medians(name, jobs, rounds, limit, plan, before=None):
    """@jobs: name -> (way, environment), in turn, so that what moves on the machine moves for all."""
    found = {job: {} for job in jobs}
    for i in range(rounds):
        for job, (way, env) in jobs.items():
            if before:
                before(job)
            step = ranks(f"{name}, {job}, {i + 1}", way, plan, limit, result["gpus"], **env)
            for row in step["rows"] if step and step["verdict"] == "ok" else ():
                found[job].setdefault(row["bytes"], []).append((row["us"], row["algbw_gbps"]))
            for row in step["said"] if step else ():
                if "init_s" in row:
                    found[job].setdefault("init_s", []).append((row["init_s"], 0))
    table = {job: {size: {"us": statistics.median(t for t, _ in of), "algbw_gbps": statistics.median(r for _, r in of),
                          "all_us": [t for t, _ in of]} for size, of in sizes.items()} for job, sizes in found.items()}
    result.setdefault("medians", {})[name] = table
    short = "; ".join(f"{job}: " + ", ".join(
        f"init {of['us']:.2f} s" if size == "init_s" else f"{size >> 10}K {of['us']:.0f} us {of['algbw_gbps']:.1f}"
        for size, of in sizes.items()) for job, sizes in table.items())
    note({"name": name, "verdict": "ok" if all(table.values()) else "FAILED", "seconds": 0.0, "why": short})
    return table


def part_beside():
    nccl.WAYS["one thread"] = nccl.WAYS["wire"] + ",wire-threads=no"
    jobs = {"direct": ("direct", {}), "wire": ("wire", {}), "wire, one thread": ("one thread", {}), "Socket": ("socket", {})}
    if OTHER:
        jobs |= {"direct, other build": ("direct", {}), "wire, other build": ("wire", {})}

    def choose_build(job):
        nccl.PEERPATH = pathlib.Path(OTHER).resolve() / "src/cli/peerpath" if "other build" in job else PEERPATH
    table = medians("beside Socket", jobs, 3, 40, {"sizes": [8 << 10, LARGE], "ops": ["all_reduce"]}, choose_build)
    nccl.PEERPATH = PEERPATH
    ratio = {}
    for job, sizes in table.items():
        for size, of in sizes.items():
            if size in table["Socket"] and size != "init_s":
                ratio[f"{job}, {size}"] = round(of["us"] / table["Socket"][size]["us"], 3)
    result["time_over_sockets"] = ratio


def part_choices():
    jobs = {}
    for name, config, env in CHOICES:
        nccl.WAYS[name] = config
        jobs[name] = (name, env)
    medians("choices", jobs, 1, 30, {"sizes": [8 << 10, 512 << 10, 2 << 20, 32 << 20, LARGE], "ops": ["all_reduce"]})


def part_observer():
    folder = tempfile.mkdtemp()
    jobs = {"without": ("direct", {}), "with": ("direct", {"LD_AUDIT": str(OBSERVER), "PEERPATH_OBSERVE": folder})}
    medians("observer", jobs, 4, 25, {"sizes": [8 << 10, 2 << 20], "ops": ["all_reduce"]})
    files = os.listdir(folder)
    result["observer_files"] = len(files)
    for file in files[:2]:
        shutil.copy(os.path.join(folder, file), nccl.logs / f"observer.{file}.log")
    shutil.rmtree(folder, ignore_errors=True)
    if not files:
        note({"name": "observer: its files", "verdict": "FAILED", "seconds": 0.0, "why": "it wrote none"})
    # A registration by itself: the client's own figures, in turn.
    cost = {"without": [], "with": []}
    for i in range(3):
        for way in cost:
            seen = tempfile.mkdtemp()
            env = {"LD_AUDIT": str(OBSERVER), "PEERPATH_OBSERVE": seen} if way == "with" else {}
            _, text = timed(f"registration, {way}, {i + 1}", [nccl.CLIENT, "-s", "alloc", "-t", "alloc", "-n", "20", "speed"], 30,
                            PEERPATH_SOFT=LO, LD_LIBRARY_PATH=f"{nccl.LIBRARY}:{os.environ.get('LD_LIBRARY_PATH', '')}", **env)
            cost[way] += [float(us) for us in re.findall(r"ibv_reg_dmabuf_mr (\d+) us", text)]
            shutil.rmtree(seen, ignore_errors=True)
    result["registration_us"] = {way: {"median": statistics.median(of) if of else None, "all": of} for way, of in cost.items()}
    note({"name": "observer, a registration", "verdict": "ok" if all(cost.values()) else "FAILED", "seconds": 0.0,
          "why": json.dumps(result["registration_us"])})


def perf(*more):
    two = ("--gpus=2", "--apart") if result["gpus"] > 1 else ("--ranks=2", "--one-gpu")
    return [PEERPATH, "nccl", "perf", "all_reduce", *two, "--minbytes=8", "--maxbytes=32M", "--stepfactor=64", "--iters=20", *more]


def part_registrations():
    """By two witnesses at once, who must agree: the observer, and the kernel's list of DMA-BUFs (40 and 40 on two GPUs so far).

    The run's own exit status is no rule: without its controls, which nobody asks for here, a simulation does not pass.
    """
    begin, document = time.monotonic(), OUT / "registrations.json"
    most = [0]
    if not left(90):
        note({"name": "registrations", "verdict": "not run", "seconds": 0.0, "why": "no time left"})
        return
    if nccl.bufinfo() is None:
        note({"name": "registrations", "verdict": "not run", "seconds": 0.0, "why": "the kernel's list of DMA-BUFs is not to be read"})
        return
    with open(nccl.logs / "registrations.out", "w", encoding="utf-8") as out:
        job = subprocess.Popen([str(a) for a in (PEERPATH, "nccl", "run", "--simulate", "--busy-ok", "--timeout=60s", "-o", document, "--force",
                                                 "--", *perf())], env={**os.environ, "NCCL_SOCKET_IFNAME": "lo"}, stdout=out,
                               stderr=subprocess.STDOUT, start_new_session=True)
        until = time.monotonic() + 80
        while job.poll() is None and time.monotonic() < until:
            most[0] = max(most[0], nccl.bufinfo() or 0)
            time.sleep(0.05)
        nccl.end_all([job])
    try:
        observed = [node["observed"] for node in json.loads(document.read_text(encoding="utf-8"))["runs"][0]["nodes"]]
        made = sum(node["registered"]["dmabuf"]["regions"] for node in observed)
    except (OSError, ValueError, KeyError, IndexError) as fault:
        observed, made = [repr(fault)], None
    result["registrations"] = {"observed": observed, "nv_dmabufs_most": most[0]}
    note({"name": "registrations", "verdict": "ok" if made and made == most[0] else "FAILED", "seconds": time.monotonic() - begin,
          "status": [job.returncode], "why": f"{made} regions by DMA-BUF (observer), {most[0]} of nv_dmabuf at most (kernel)"})


def part_prove():
    """Both ranks on one GPU, as a node with one has them; and its bundle, judged again and written anew."""
    begin = time.monotonic()
    bundle, again = OUT / "prove.tar.zst", OUT / "prove.again.tar.zst"
    place = nccl.run("nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader").stdout.split()
    only = [f"--gpu={place[0].lower().removeprefix('0000')}"] if result["gpus"] > 1 and place else []
    status, text = timed("prove, one GPU", [PEERPATH, "prove", "--simulate", "--busy-ok", *only, "-o", bundle, "--force"], 120,
                         NCCL_SOCKET_IFNAME="lo")
    (OUT / "prove.txt").write_text(text, encoding="utf-8")
    if status is None and not text:
        return
    replay, said = timed("prove, replayed", [PEERPATH, "prove", "--replay", bundle, "-o", again, "--force"], 40)
    (OUT / "prove.replay.txt").write_text(said, encoding="utf-8")
    note({"name": "prove, one GPU", "verdict": "ok" if status == 0 and replay == status else "FAILED", "seconds": time.monotonic() - begin,
          "status": [status, replay], "mps": nccl.mps.there, "why": " | ".join(text.splitlines()[-3:])[-300:]})


PARTS = {"few": part_few, "graphs": part_graphs, "beside": part_beside, "observer": part_observer,
         "registrations": part_registrations, "prove": part_prove, "choices": part_choices}


def one_part(name):
    # On one GPU two processes take turns without MPS: no speed means anything then. prove has both ranks on one.
    if name != "few" and not nccl.mps.there and (result["gpus"] == 1 or name == "prove"):
        nccl.mps.start()
    begin = time.monotonic()
    try:
        PARTS[name]()
    except Exception as fault:  # pylint: disable=broad-exception-caught
        note({"name": f"part {name}", "verdict": "FAILED", "seconds": time.monotonic() - begin, "why": repr(fault)[:300],
              "said": traceback.format_exc().splitlines()[-6:]})
    if result["gpus"] > 1:
        nccl.mps.stop()


def main():
    wanted = sys.argv[4:] or list(PARTS)
    if set(wanted) - set(PARTS):
        print("no such part:", *sorted(set(wanted) - set(PARTS)))
        sys.exit(64)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "summary.txt").write_text("", encoding="utf-8")
    nccl.facts()
    result["schema"] = "peerpath.soft-nccl-more/1"
    try:
        for name in wanted:
            one_part(name)
    finally:
        nccl.mps.stop()
        nccl.write()
        with tarfile.open(OUT / "logs.tar.gz", "w:gz") as tar:
            for file in sorted(nccl.logs.iterdir()):
                if file.stat().st_size < 2 << 20:
                    tar.add(file, arcname=file.name)
        shutil.rmtree(nccl.logs, ignore_errors=True)
    bad = [step["name"] for step in result["steps"] if step["verdict"] == "FAILED"]
    print("failed: " + ", ".join(bad) if bad else "all passed", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
