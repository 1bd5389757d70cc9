#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath nccl perf from outside, on an NCCL and a CUDA that need no GPU (tests/fake): ranks are processes, bytes
really move, and what is planted (a wrong element, a death, a rank that never ends, an error of NCCL) must be found.

The judges: the formulas of nccl-tests, worked out here again from each row; the fake's own arithmetic, which is not
the program's; 'nccl judge', which reads tables of nccl-tests; the kernel (/proc: who is left).

usage: nccl_perf.py PEERPATH FAKE-DIR SOFT-DIR PART
"""
import json
import mmap
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

PEERPATH, FAKE, SOFT, PART = (os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4])
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))  # then not each type with each operation
if SANITIZED and PART == "registered":
    print("skipped: a plain library of the software device is needed")
    sys.exit(77)
LIMIT = 120  # seconds after which a thing that should have happened has not; nothing is measured by it
FAULTS = []
ALL = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send_recv")
SIZES = {"int8": 1, "int32": 4, "half": 2, "float": 4, "double": 8, "bfloat16": 2}
SHORT = ("-n", "3", "-w", "1")
TOP = pathlib.Path(tempfile.mkdtemp(prefix="test-nccl-perf-"))


def need(good, *what):
    if not good:
        FAULTS.append(" ".join(map(str, what))[:1500])
        print("FAULT:", FAULTS[-1], flush=True)


def environment(nccl=True, cuda=True, **more):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith(("NCCL_", "SLURM_", "OMPI_", "PMI", "LD_LIBRARY", "PEERPATH_RANK", "CUDA_VISIBLE", "VIRTUAL_ENV"))}
    path = ([f"{FAKE}/nccl"] if nccl else []) + ([f"{FAKE}/cuda"] if cuda else [])
    return {**kept, "LD_LIBRARY_PATH": ":".join(path), **more}


def start(*words, env=None):
    return subprocess.Popen([PEERPATH, "nccl", "perf", *map(str, words)], env=env or environment(), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        need(False, process.args[2:], "did not end:", err[-500:])
    need("Sanitizer" not in err and "runtime error" not in err, process.args[2:], err[-1500:])
    return process.returncode, out, err


def perf(*words, env=None):
    return finish(start(*words, env=env))


def here(n):
    return ("--ranks", n, "--one-gpu")


def document(*words, env=None):
    status, out, err = perf("--json", *words, env=env)
    try:
        return status, json.loads(out), err
    except json.JSONDecodeError:
        need(False, words, "no document:", status, out[-300:], err[-500:])
        return status, {}, err


def shape(collective, size, asked, n):
    """Bytes and count as nccl-tests has them: parts are multiples of 16 bytes."""
    if collective in ("all_reduce", "send_recv"):
        return asked // size * size, asked // size
    part = asked // size // n // (16 // size) * (16 // size)
    return part * n * size, part


FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "reduce_scatter": lambda n: (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
          "all_to_all": lambda n: (n - 1) / n, "send_recv": lambda n: 1}


def rows_of(text):
    return [line.split() for line in text.splitlines() if re.match(r" +\d", line)]


def near(a, b, what):
    need(abs(a - b) <= 0.006 + 0.012 * abs(b), what, a, b)


def table(text, collective, kind, n, asked):
    """Every row of one collective's table, by nccl-tests' formulas."""
    rows = rows_of(text)
    need(len(rows) == len(asked), collective, kind, n, "rows", len(rows), len(asked))
    for row, size in zip(rows, asked):
        what = f"{collective} {kind} of {n}: {' '.join(row)}"
        size, count = shape(collective, SIZES[kind], size, n)
        reduces = collective in ("all_reduce", "reduce_scatter")
        need(row[:5] == [str(size), str(count), kind, "sum" if reduces else "none", "-1"] and len(row) == 13, what)
        for place in (row[5:9], row[9:13]):
            time_us, alg, bus = map(float, place[:3])
            if time_us:
                near(alg, size / time_us / 1e3, what)
                near(bus, size / time_us / 1e3 * FACTOR[collective](n), what)
        checked = collective not in ("all_to_all", "send_recv")
        need(row[8] == "0" and row[12] == ("0" if checked else "N/A"), what)


def part_right():
    """Two and four ranks, every collective and type; sizes that are no multiple of anything too."""
    asked = [8, 1000, 300000]
    for n in (2, 4):
        for kind in SIZES if not SANITIZED or n == 2 else ("half",):
            status, out, err = perf(*ALL, *here(n), "-d", kind, "--sizes", ",".join(map(str, asked)), *SHORT)
            need(status == 0 and not err, n, kind, status, err)
            parts = out.split("# Collective test starting: ")[1:]
            need([p.split("_perf")[0] for p in parts] == list(ALL), n, kind, "tables")
            for text, collective in zip(parts, ALL):
                table(text, collective, kind, n, asked)
                need("# Out of bounds values : 0 OK\n" in text, n, kind, collective)
                average = re.search(r"^# Avg bus bandwidth    : ([0-9.e-]+)$", text, re.M)
                every = [float(row[i]) for row in rows_of(text) for i in (7, 11)]
                near(float(average[1]), sum(every) / len(every), f"{collective} average")
    for op in ("sum", "prod", "max", "min", "avg"):
        for kind in SIZES if not SANITIZED or op == "avg" else ("half",):
            status, out, err = perf("all_reduce", "reduce_scatter", *here(4), "-d", kind, "-o", op, "--sizes", "4000", *SHORT)
            need(status == 0 and out.count("OK\n") == 2, op, kind, status, out[-300:], err)
    status, out, err = perf("-g", "1", "-b", "1K", "-e", "4K", *SHORT)
    need(status == 0 and len(rows_of(out)) == 3, "one rank", status, err)
    status, out, err = perf(*ALL, *here(3), "--memory", "cuda-vmm", "-m", "2", "-c", "3", "-b", "4K", "-e", "64K", "-i", "10000", *SHORT)
    need(status == 0 and len(rows_of(out)) == 5 * 7, "three ranks", status, err, len(rows_of(out)))


def two_gpus():
    """Two GPUs of one host: nothing is set, and NCCL goes through shared memory."""
    status, out, err = perf("-g", "2", "-b", "1M", "-e", "1M", *SHORT,
                            env=environment(NCCL_DEBUG="INFO", CUDA_DEVICE_ORDER="PCI_BUS_ID"))
    need(status == 0 and "via SHM" in out and "NCCL_HOSTID" not in out, "two GPUs", status, err, out[:3000])
    need("[0000:3b:00]" in out and "[0000:9a:00]" in out, "two GPUs", out[:3000])
    status, out, err = perf("-g", "2", "--apart", "-b", "1M", "-e", "1M", *SHORT, env=environment(NCCL_DEBUG="INFO"))
    need(status == 0 and "via NET/Socket" in out and "# NCCL_HOSTID is set" in out, "apart", status, err)
    status, out, err = perf("-g", "3", "-b", "1M", "-e", "1M", *SHORT)
    need(status == 2 and "CUDA sees 2" in err, "three of two GPUs", status, err)


def part_wrong():
    """One element of one rank's result, from its n-th operation on: told, and where."""
    for collective in ALL:
        for n, rank in ((2, 1), (4, 2)):
            status, d, err = document(collective, *here(n), "--sizes", "4K,64K", *SHORT, env=environment(PP_FAKE_NCCL=f"wrong@{rank}"))
            need(status == 1 and d.get("verdict") == "fail" and not err, collective, n, status, err)
            for row in d.get("collectives", [{}])[0].get("results", []):
                place = row["out_of_place"]
                need((place["wrong_elements"], place["first_wrong_rank"], place["first_wrong_element"]) == (1, rank, 0), collective, place)
                need(place["checked_elements"] == row["count"] * n * (n if collective in ("all_gather", "all_to_all") else 1), collective, row)
    status, out, err = perf(*here(2), "--sizes", "4K", *SHORT, env=environment(PP_FAKE_NCCL="wrong@0"))
    row = rows_of(out)[0]
    need(status == 1 and (row[8], row[12]) == ("1", "1") and "# Out of bounds values : 2 FAILED" in out, "text", status, row, out[-900:])
    need("first at rank 0, element 0" in out, "text", out[-900:])
    status, out, err = perf(*here(2), "--sizes", "4K", "-c", "0", *SHORT, env=environment(PP_FAKE_NCCL="wrong@0"))
    row = rows_of(out)[0]
    need(status == 2 and (row[8], row[12]) == ("N/A", "N/A") and "Nothing was verified" in out and "OK" not in out, "-c 0", status, row)


def family(process):
    """All that lives of a process and its children, by the kernel."""
    found, tree = [], {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        rest = text[text.rindex(")") + 2:].split()
        tree.setdefault(int(rest[1]), []).append((int(path.parent.name), rest[0]))
    queue = [process]
    while queue:
        for pid, state in tree.get(queue.pop(), []):
            queue.append(pid)
            if state not in "ZX":
                found.append(pid)
    return found


def alive(pids):
    def lives(pid):
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        return text[text.rindex(")") + 2] not in "ZX"
    return [pid for pid in pids if lives(pid)]


def until(what, limit=LIMIT):
    end = time.monotonic() + limit
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def part_failed():
    """Each way in which a rank can fail, with the reason, and without waiting for the others."""
    cases = (("die@1:3", ("rank 1", "killed by signal 9", "all_reduce of 4096 bytes")),
             ("init-die@1", ("rank 1", "killed by signal 9", "making the communicator")),
             ("remote@0:3", ("remote process exited or there was a network error (6)", "all_reduce of 4096 bytes")),
             ("refuse@1:3", ("rank 1", "unhandled cuda error", "all_reduce of 4096 bytes")),
             ("init@0", ("rank 0", "ncclCommInitRank", "unhandled system error", "the fake was told to fail")))
    for fault, parts in cases:
        status, d, err = document(*here(3), "--sizes", "4K", *SHORT, env=environment(PP_FAKE_NCCL=fault))
        need(status == 1 and d.get("verdict") == "fail" and err.count("\n") == 1, fault, status, err, d.get("verdict"))
        for part in parts:
            need(part in err and part in (d.get("ended") or ""), fault, "lacks", part, ":", err)
    # the survivor's words about its peer follow from the death, whoever reads them
    status, out, err = perf(*here(2), "--sizes", "4K", *SHORT, env=environment(PP_FAKE_NCCL="die@1:3", NCCL_DEBUG="INFO"))
    read = {"input": out + err, "capture_output": True, "text": True, "timeout": LIMIT, "check": False}
    causes = json.loads(subprocess.run([PEERPATH, "explain", "-", "--no-node", "--json"], **read).stdout)["diagnoses"]
    errors = json.loads(subprocess.run([PEERPATH, "nccl", "judge", "--json", "-"], **read).stdout)["errors"]
    need("closed by remote peer" in out + err, "the survivor says nothing", out[-400:], err)
    need(causes[0]["rule"] == "killed-by-nine", "explain:", [c["rule"] for c in causes])
    need([e["kind"] for e in errors if e["root"]] == ["process-ended"], "judge:", errors)
    for fault in ("hang@1:3", "hang"):
        status, d, err = document(*here(2), "--sizes", "4K", "-T", "1", *SHORT, env=environment(PP_FAKE_NCCL=fault))
        need(status == 1 and "did not end in 1 s" in err and d.get("ended") in err, fault, status, err)
    status, _, err = document(*here(2), "--sizes", "4K", "-T", "1", *SHORT, env=environment(PP_FAKE_NCCL="init-hang@1"))
    need(status == 1 and "making the communicator" in err, "init-hang", status, err)
    status, _, err = document(*here(2), "--sizes", "4K", "--deadline", "1", *SHORT, env=environment(PP_FAKE_NCCL="hang"))
    need(status == 1 and "time of the run is used up" in err, "deadline", status, err)
    status, out, err = perf(*here(2), "--sizes", "4K,8K", *SHORT, env=environment(PP_FAKE_NCCL="die@1:16"))
    need(status == 1 and "Out of bounds" not in out and "# Ended early: rank 1" in out, "cut", status, out[-400:])


def part_ended():
    """Told to stop, or killed: nobody is left behind."""
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)):
        process = start(*here(2), "--sizes", "4K", *SHORT, env=environment(PP_FAKE_NCCL="hang", NCCL_DEBUG="WARN"))
        need(until(lambda p=process: len(family(p.pid)) >= 4), number, "no ranks")
        time.sleep(0.3)
        pids = family(process.pid)
        process.send_signal(number)
        got, _, err = finish(process)
        need(got == status, number, got, err)
        need(until(lambda p=pids: not alive(p), 20), number, "left:", alive(pids))


def part_absent():
    """One line, exit 2; no NCCL, no GPU, a library that is none."""
    empty = TOP / "empty.so"
    empty.write_bytes(b"no library")
    nothing = {"PATH": "/nowhere", "HOME": "/nowhere"}
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False,
                            env={**os.environ, "PATH": f"{os.environ['PATH']}:/sbin:/usr/sbin"}).stdout
    real = re.search(r"libnccl\.so\.2 .*=> (\S+)", listed)
    cases = (() if real else ((here(2), environment(nccl=False, **nothing), "no NCCL here"),)) + (
             (here(2), environment(cuda=False), "libcuda.so.1"),
             (here(2), environment(CUDA_VISIBLE_DEVICES=""), "CUDA sees none"),
             ((*here(2), "--library", empty), environment(), "cannot be loaded"),
             ((*here(2), "--library", f"{FAKE}/cuda/libcuda.so.1"), environment(), "has no nccl"),
             ((*here(2), "--gpu", "0000:77:00.0"), environment(), "no GPU 0000:77:00.0"))
    for words, env, part in cases:
        for form in ((), ("--json",)):
            status, out, err = perf(*words, *form, "-b", "4K", "-e", "4K", env=env)
            need(status == 2 and not out and err.count("\n") == 1 and part in err, words, form, status, out[:200], err)
    nvml = environment()
    nvml["LD_LIBRARY_PATH"] += f":{FAKE}/nvml"  # it has processes on 9a and none on 3b
    status, out, err = perf("-g", "1", "--gpu", "0000:9a:00.0", "--sizes", "4K", env=nvml)
    need(status == 2 and not out and "4 processes have a context on GPU 0000:9a:00.0" in err and "--busy-ok" in err, "busy", status, err)
    status, d, err = document("-g", "1", "--gpu", "0000:9a:00.0", "--sizes", "4K", "--busy-ok", env=nvml)
    need(status == 0 and d["options"]["busy_ok"] and d["ranks"][0]["gpu_users_before"] == 4, "--busy-ok", status, err)
    status, d, err = document(*here(2), "--gpu", "0000:3b:00.0", "--sizes", "4K", env=nvml)
    need(status == 0 and d["ranks"][1]["gpu_users_before"] == 0, "free", status, err)
    site = TOP / "venv/lib/python3.11/site-packages/nvidia/nccl/lib"
    site.mkdir(parents=True)
    (site / "libnccl.so.2").symlink_to(f"{FAKE}/nccl/libnccl.so.2")
    venv = {"VIRTUAL_ENV": str(TOP / "venv")}
    if real:  # an NCCL of NVIDIA's: it is named with its own version, and wants more than this CUDA is
        status, d, err = document(*here(2), "--sizes", "4K", *SHORT, env=environment(nccl=False, **venv))
        path = os.path.realpath(real[1])
        first = d.get("ranks", [{}])[0]
        need((first.get("library"), first.get("library_found_by")) == (path, "the loader's directories"), first, err)
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as held:
            need(held.find(f"NCCL version {first.get('nccl_version')}".encode()) > 0, path, first)
        need(first.get("library_of_python") == f"{FAKE}/nccl/libnccl.so.2" and status == 1 and "ncclCommInitRank" in err, first, err)
    else:
        status, out, err = perf(*here(2), "--sizes", "4K", *SHORT, env=environment(nccl=False, **venv))
        need(status == 0 and "found by a package of Python" in out, "Python's", status, err, out[:600])
    status, d, err = document("-g", "1", "--library", f"{FAKE}/nccl/libnccl.so.2", "--sizes", "4K", env=environment(nccl=False, **nothing))
    need(status == 0 and d["ranks"][0]["library_found_by"] == "--library" and d["ranks"][0]["nccl_version"] == "2.28.9", status, err)


def part_usage():
    wrong = (((), "how many ranks"), (("--ranks", "2"), "--one-gpu"), (("-g", "2", "--one-gpu"), "excludes"),
             ((*here(2), "-t", "2"), "process of its own"), ((*here(2), "-b", "x"), "--minbytes"), ((*here(2), "-b", "4K", "-e", "1K"), "more than -e"),
             ((*here(2), "-d", "flaot"), "float"), ((*here(2), "-o", "sun"), "sum"), ((*here(2), "all_reduec"), "all_reduce"),
             ((*here(2), "--sizes", "4K,1K"), "grow"), ((*here(2), "--sizes", "4K", "-b", "1"), "excludes"), ((*here(2), "-i", "1", "-f", "2"), "excludes"),
             ((*here(2), "-n", "0"), "1 to"), ((*here(2), "-T", "-1"), "--timeout"), ((*here(2), "--controls"), "takes no --controls"),
             ((*here(3), "-o", "avg"), "power of two"), ((*here(2), "-J", "-"), "--json"), ((*here(2), "-R", "1"), "R"),
             ((*here(2), "-i", "1", "-b", "1", "-e", "1M"), "more than 1024 sizes"), (("-g", "2", "--gpu", "0:0.0"), "--gpu goes with"))
    for words, part in wrong:
        status, out, err = perf(*words)
        need(status == 64 and not out and err.count("\n") == 1 and part in err, words, status, out[:200], err)
    done = subprocess.run([PEERPATH, "nccl", "judge", "-g", "2", "x"], capture_output=True, text=True, check=False)
    need(done.returncode == 64 and "--gpus" in done.stderr, "judge with -g", done)
    file = TOP / "there.json"
    file.write_text("kept")
    status, _, err = perf(*here(2), "--sizes", "4K", "-J", file)
    need(status == 64 and "--force" in err and file.read_text() == "kept", "-J", status, err)


def part_document():
    """JSON on standard output, and as a file beside the text; both say the same of the options."""
    file = TOP / "run.json"
    status, out, err = perf(*here(2), "--sizes", "8,4K", *SHORT, "-J", file, "-d", "bfloat16")
    d = json.loads(file.read_text())
    need(status == 0 and len(rows_of(out)) == 2 and d["schema"] == "peerpath.nccl_perf/1" and d["verdict"] == "pass", status, err)
    need(d["ended"] is None and d["options"]["type"] == "bfloat16" and d["options"]["one_gpu"] is True, d["options"])
    need([r["rank"] for r in d["ranks"]] == [0, 1] and len({r["hostid_set"] for r in d["ranks"]}) == 2, d["ranks"])
    need(all(r["same_clock"] and r["clock_error_us"] == 0 for r in d["ranks"]), "one kernel, one clock", d["ranks"])
    for row, text in zip(d["collectives"][0]["results"], rows_of(out)):
        need(row["size_bytes"] == int(text[0]) and row["samples"] == 3, row)
        need(0 < row["p50_us"] <= row["p99_us"], row)
        near(row["out_of_place"]["bus_gb_per_s"], float(text[7]), "bus")
        need(min(s["p50_us"] for s in row["arrival_skew"]) >= 0 and len(row["arrival_skew"]) == 2, row)
        need(row["out_of_place"]["verified"] and row["in_place"]["verified"] and row["out_of_place"]["cpu_s_per_gb"] >= 0, row)
    status, d, err = document("send_recv", *here(2), "--sizes", "4K", *SHORT)
    row = d["collectives"][0]["results"][0]
    need(d["simulated"] is False and status == 0 and row["in_place"]["verified"] is False and row["in_place"]["wrong_elements"] is None, row)


def slurm(rank, size):
    return {"SLURM_PROCID": rank, "SLURM_NTASKS": size, "SLURM_STEP_NUM_TASKS": size, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "here",
            "SLURM_LOCALID": rank, "SLURM_JOB_ID": "23", "SLURM_STEP_LAUNCHER_PORT": "41000"}


def open_mpi(rank, size):
    return {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size, "OMPI_COMM_WORLD_LOCAL_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_SIZE": size, "OMPI_MCA_ess_base_jobid": "3735"}


def own(rank, size):
    return {"PEERPATH_RANK": rank, "PEERPATH_SIZE": size, "PEERPATH_COORDINATOR": "127.0.0.1", "PEERPATH_TOKEN": "0123456789abcdef"}


def part_launched():
    """One process a rank, the same command for all; rank 0 prints."""
    for launcher, by in ((slurm, "Slurm"), (open_mpi, "Open MPI"), (own, "peerpath")):
        for words, fault, status in (((), "none", 0), ((), "die@1:3", 1)):
            command = ("--json", "--one-gpu", "--sizes", "4K", *SHORT, *words)
            ranks = [start(*command, env=environment(PP_FAKE_NCCL=fault, **launcher(str(i), "3"))) for i in range(3)]
            told = [finish(process) for process in ranks]
            what = (launcher.__name__, fault, told)
            need(told[0][0] == status, *what)
            d = json.loads(told[0][1] or "{}")
            need(d.get("launched_by") == by and len(d.get("ranks", [])) == 3, *what)
            need(all(not out for _, out, _ in told[1:]), *what)
            if status:
                need("rank 1" in (d.get("ended") or ""), *what)
            else:
                need(d["verdict"] == "pass" and all(code == 0 for code, _, _ in told), *what)
    status, _, err = perf("-g", "2", env=environment(**slurm("0", "2")))
    need(status == 64 and "Slurm" in err, "-g under Slurm", status, err)


def judged(text):
    file = TOP / "job.log"
    file.write_text(text)
    done = subprocess.run([PEERPATH, "nccl", "judge", "--json", file], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout or "{}")


def part_judged():
    """Read as nccl-tests' own: by Socket refuted; what was not checked, or was wrong, or ended early, is no proof."""
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH,TUNING"}
    status, out, err = perf(*here(2), "-b", "1M", "-e", "4M", *SHORT, env=environment(**debug))
    code, d = judged(out)
    need(status == 0 and code == 1 and d.get("path") == "socket" and d.get("ranks") == 2, status, err, code, d)
    logs = TOP / "logs"
    logs.mkdir()
    status, out, err = perf(*here(2), "-b", "1M", "-e", "1M", *SHORT, env=environment(NCCL_DEBUG_FILE=f"{logs}/%h.%p.log", **debug))
    need(status == 0 and "NCCL INFO" not in out and len(list(logs.iterdir())) == 2, "the user's own file", status, err)


def part_registered():
    """By verbs on the software device: GPU memory is registered, and the table is what a proof needs."""
    if not pathlib.Path(SOFT, "libibverbs.so.1").exists():
        print("skipped: no software device")
        sys.exit(77)
    debug = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,GRAPH,TUNING", "NCCL_NET": "IB", "NCCL_NET_GDR_LEVEL": "SYS"}
    # as if it had a PCI function: a device of an interface (soft_lo) is known by its name, too
    for level, path, pci, why in (("SYS", "gdr", False, "checked right by nccl-tests"), ("SYS", "gdr", True, "checked right by nccl-tests"),
                                  ("LOC", "host-staged", False, "")):
        env = environment(**{**debug, "NCCL_NET_GDR_LEVEL": level, **({"PP_FAKE_NCCL_PCI": "1"} if pci else {})})
        done = subprocess.run(["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", PEERPATH, "soft", "--no-nccl", "--",
                               PEERPATH, "nccl", "perf", *map(str, here(2)), "-b", "4M", "-e", "8M", *SHORT],
                              env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
        if "unshare" in done.stderr:
            print("skipped: no namespace:", done.stderr)
            sys.exit(77)
        code, d = judged(done.stdout)
        need(done.returncode == 0 and d.get("path") == path, level, done.returncode, done.stderr[-500:], d, done.stdout[-800:])
        need("# Simulated: " in done.stdout and d.get("simulated") is True and d.get("claim_gdr") != "proven", level, d)
        need(any(why in json.dumps(w) for w in d.get("why", [""])) or not why, level, d.get("why"))


PARTS = {"right": (part_right,), "wrong": (part_wrong, two_gpus), "failed": (part_failed,), "ended": (part_ended,), "absent": (part_absent,),
         "usage": (part_usage,), "document": (part_document,), "launched": (part_launched,), "judged": (part_judged,),
         "registered": (part_registered,)}

try:
    for test in PARTS[PART]:
        test()
finally:
    subprocess.run(["rm", "-rf", str(TOP)], check=False)
print(f"{len(FAULTS)} faults")
sys.exit(1 if FAULTS else 0)
