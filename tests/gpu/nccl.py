#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL on the software device with a real GPU, or two: every way its memory can take.

usage: nccl.py BUILD OUT [SECONDS]

BUILD is a build of this project, OUT a folder for result.json, summary.txt and logs.tar.gz. Each step has a time limit of
its own; what does not fit into SECONDS (default 460) is named. Two ranks: on one GPU under MPS, each with a host of its
own for NCCL (NCCL_HOSTID); on two GPUs one each. Exit 77: no GPU, or no NCCL. The payload is compared at every size.
"""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

from show import shown

HERE = pathlib.Path(__file__).resolve().parent
BUILD, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
UNTIL = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) > 3 else 460)
PEERPATH, CLIENT, LIBRARY = BUILD / "src/cli/peerpath", BUILD / "tests/gpu/gpu_traffic", BUILD / "src/soft/lib"
LO = "name=soft0,address=127.0.0.1"
WAYS = {"direct": LO, "staged": LO + ",same-host-gpu=staged", "wire": LO + ",same-host=no"}
SIZES = [8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20, 256 << 20]
SMALL = [8 << 10, 128 << 10, 2 << 20, 32 << 20]
result = {"schema": "peerpath.soft-nccl/1", "simulated": True, "steps": []}
logs = pathlib.Path(tempfile.mkdtemp(prefix="peerpath-nccl-"))


def run(*argv, timeout=20):
    try:
        return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        return subprocess.CompletedProcess(argv, 124, "", str(fault))


def find_nccl():
    """Where a Python has it, or the loader's cache."""
    for pattern in (os.environ.get("NCCL_LIBRARY", ""), "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
                    *(f"{p}/nvidia/nccl/lib/libnccl.so.2" for p in sys.path if p)):
        for path in glob.glob(pattern) if pattern else ():
            return path
    found = re.search(r"libnccl\.so\.2 .*=> (\S+)", run("/sbin/ldconfig", "-p").stdout)
    return found.group(1) if found else None


def bufinfo():
    listing = pathlib.Path("/sys/kernel/debug/dma_buf/bufinfo")
    try:
        return len(re.findall(r"\bnv_dmabuf\b", listing.read_text()))
    except OSError:
        return None


class Seen:
    """The most of what processes showed during a step."""

    def __init__(self):
        self.qps, self.gpus, self.dmabufs = {}, {}, None

    def look(self):
        for process in shown():
            for device in process["devices"]:
                for qp in device["queue_pairs"]:
                    if "gpu_memory" in qp:
                        self.qps[process["pid"], qp["qpn"]] = {k: qp[k] for k in (
                            "gpu_memory", "not_direct", "direct_bytes", "staged_bytes", "link") if k in qp}
            for gpu in process.get("gpus", ()):
                self.gpus[process["pid"], gpu["bdf"]] = gpu
        count = bufinfo()
        if count is not None:
            self.dmabufs = max(self.dmabufs or 0, count)

    def summary(self):
        ways = {}
        for qp in self.qps.values():
            way = ways.setdefault(qp["gpu_memory"], {"queue_pairs": 0, "direct_bytes": 0, "staged_bytes": 0})
            way["queue_pairs"] += 1
            way["direct_bytes"] += qp["direct_bytes"]
            way["staged_bytes"] += qp["staged_bytes"]
            if "not_direct" in qp:
                way.setdefault("not_direct", qp["not_direct"])
        return {"ways": ways, "gpus": list(self.gpus.values()), "nv_dmabufs_most": self.dmabufs}


class Mps:
    """One server for what needs one; made anew after a client was killed, whose work its successors trip over."""

    def __init__(self):
        self.there, self.dir = False, None

    def start(self):
        self.dir = tempfile.mkdtemp()
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.environ["CUDA_MPS_LOG_DIRECTORY"] = self.dir
        self.there = bool(shutil.which("nvidia-cuda-mps-control")) and run(
            "nvidia-cuda-mps-control", "-d", timeout=30).returncode == 0
        if not self.there:
            self.forget()
        return self.there

    def forget(self):
        for word in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.environ.pop(word, None)

    def stop(self):
        if self.there:
            try:
                subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, timeout=20, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            except (OSError, subprocess.TimeoutExpired):
                pass
        self.there = False
        self.forget()


mps = Mps()


def write():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "result.json").write_text(json.dumps(result, indent=1) + "\n")


def note(step):
    result["steps"].append(step)
    rows = step.get("rows", ())
    speed = ", ".join(f"{row['bytes'] >> 10}K {row['algbw_gbps']:.1f}" if row["bytes"] > 131072 else
                      f"{row['bytes'] >> 10}K {row['us']:.0f}us" for row in rows if row.get("op") == "all_reduce")
    ways = "/".join(f"{way}:{n['queue_pairs']}" for way, n in step.get("seen", {}).get("ways", {}).items())
    line = f"{step['name']}: {step['verdict']}, {step['seconds']:.1f} s {ways} {step.get('why', '')} {speed}".rstrip()
    print(line, flush=True)
    with open(OUT / "summary.txt", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    write()


def environment(way, log, rank, gpus, more):
    env = {**os.environ, "NCCL_LIBRARY": result["nccl"]["library"], "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(log),
           "NCCL_SOCKET_IFNAME": "lo", "PP_GPU": str(rank if gpus > 1 else 0), **more}
    if way in WAYS and not result["peerpath_runs"]:
        env.update(PEERPATH_SOFT=WAYS[way], NCCL_IB_HCA="=soft0", NCCL_NET_GDR_LEVEL=env.get("NCCL_NET_GDR_LEVEL", "SYS"),
                   NCCL_NET_PLUGIN="none", NCCL_GIN_TYPE="0", LD_LIBRARY_PATH=f"{LIBRARY}:{env.get('LD_LIBRARY_PATH', '')}")
    if way in WAYS:
        env["NCCL_NET"] = "IB"
        env["NCCL_HOSTID"] = f"peerpath-{rank}"
    elif way == "socket":
        env.update(NCCL_NET="Socket", NCCL_HOSTID=f"peerpath-{rank}")
    elif way == "shm":
        env["NCCL_P2P_DISABLE"] = "1"
    return env


def start(way, argv, env, out):
    front = [PEERPATH, "soft", "-c", WAYS[way], "--"] if way in WAYS and result["peerpath_runs"] else []
    # The auditor of Python's own signals is in nobody's way: a group of its own, to be ended whole.
    return subprocess.Popen([str(a) for a in [*front, *argv]], env=env, stdout=out, stderr=subprocess.STDOUT,
                            start_new_session=True)


def end_all(jobs):
    for job in jobs:
        if job.poll() is None:
            try:
                os.killpg(job.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    for job in jobs:
        try:
            job.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass


def follow(jobs, limit, seen, during=None):
    """Until all have ended, or the time is over. true: they have."""
    until = time.monotonic() + limit
    begin = time.monotonic()
    while time.monotonic() < until:
        if all(job.poll() is not None for job in jobs):
            return True
        seen.look()
        if during and during(time.monotonic() - begin):
            during = None
        time.sleep(0.2)
    seen.look()
    return False


def rows_of(text):
    """The objects among its lines."""
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def read_rows(path):
    return rows_of(path.read_text(errors="replace"))


def channels(files):
    """Lines of channels by the network, and how many say /GDRDMA."""
    text = "".join(file.read_text(errors="replace") for file in files if file.exists())
    lines = [line for line in text.splitlines() if " via NET/" in line]
    return {"by_network": len(lines), "gdrdma": sum("/GDRDMA" in line for line in lines),
            "warnings": [line[-300:] for line in text.splitlines() if " NCCL WARN " in line][:10]}


def judge(files):
    if not result["peerpath_runs"]:
        return None
    done = run(PEERPATH, "nccl", "judge", "--json", *files, timeout=30)
    try:
        document = json.loads(done.stdout)
        return {"status": done.returncode, **{k: document[k] for k in ("claim", "data_path", "mechanism", "state") if k in document}}
    except ValueError:
        return {"status": done.returncode, "said": (done.stderr or done.stdout)[-300:]}


def ranks(name, way, plan, limit, gpus, expect=None, **more):
    """One job of two ranks. @expect: how the queue pairs' memory must have gone."""
    if time.monotonic() + limit > UNTIL:
        note({"name": name, "verdict": "not run", "seconds": 0.0, "why": "no time left"})
        return None
    seen, begin, jobs, files, outs = Seen(), time.monotonic(), [], [], []
    with tempfile.TemporaryDirectory() as meeting:
        for rank in range(2):
            stem = re.sub(r"[^a-z0-9]+", "-", name.lower())
            files.append(logs / f"{stem}.rank{rank}.log")
            outs.append(logs / f"{stem}.rank{rank}.out")
            with open(outs[-1], "w", encoding="utf-8") as out:
                jobs.append(start(way, [sys.executable, HERE / "nccl_rank.py", rank, 2, meeting, json.dumps(plan)],
                                  environment(way, files[-1], rank, gpus, more), out))
        ended = follow(jobs, limit, seen)
        if not ended:
            inside = [gpu.get("inside") or gpu.get("slow") for p in shown() for gpu in p.get("gpus", ())]
        end_all(jobs)
    rows = read_rows(outs[0])
    step = {"name": name, "way": way, "seconds": time.monotonic() - begin, "status": [job.returncode for job in jobs],
            "rows": [row for row in rows if "us" in row], "said": [row for row in rows if "us" not in row],
            "seen": seen.summary(), "channels": channels(files), "judge": judge(files), "mps": mps.there}
    step["verdict"] = "ok" if ended and not any(step["status"]) and rows and rows[-1].get("done") else "FAILED"
    if not ended:
        step["why"] = f"not done in {limit} s, GPUs: {inside}"
    elif step["verdict"] == "FAILED":
        step["why"] = outs[0].read_text(errors="replace")[-400:].strip().replace("\n", " | ")
    elif expect and set(step["seen"]["ways"]) - {expect}:
        # The first messages are staged while the peer maps.
        most = max(step["seen"]["ways"].items(), key=lambda kv: kv[1]["direct_bytes"] + kv[1]["staged_bytes"])[0]
        if most != expect:
            step["verdict"], step["why"] = "FAILED", f"went {most}, not {expect}"
    note(step)
    return step


def client(name, config, *args, limit=30, expect=0, **env):
    """One run of the project's own client."""
    if time.monotonic() + limit > UNTIL:
        note({"name": name, "verdict": "not run", "seconds": 0.0, "why": "no time left"})
        return
    begin, seen = time.monotonic(), Seen()
    out = logs / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".out")
    with open(out, "w", encoding="utf-8") as file:
        job = subprocess.Popen([str(CLIENT), *args], env={**os.environ, "PEERPATH_SOFT": config, **env,
                                                          "LD_LIBRARY_PATH": f"{LIBRARY}:{os.environ.get('LD_LIBRARY_PATH', '')}"},
                               stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    ended = follow([job], limit, seen)
    inside = [] if ended else [gpu.get("inside") or gpu.get("slow") for p in shown() for gpu in p.get("gpus", ())]
    end_all([job])
    said = out.read_text(errors="replace").strip().splitlines()
    step = {"name": name, "seconds": time.monotonic() - begin, "status": [job.returncode], "said": said[-12:],
            "seen": seen.summary(), "mps": mps.there,
            "verdict": "ok" if ended and job.returncode in (expect, 0) else "skipped" if job.returncode == 77 else "FAILED"}
    step["why"] = f"HANGS, GPUs: {inside}" if not ended else " | ".join(said[-2:])[-300:]
    note(step)


def killed(gpus):
    """A rank dies in the middle of it: the other ends with an error, and neither hangs."""
    name, limit = "rank killed, direct", 40
    if time.monotonic() + limit > UNTIL:
        note({"name": name, "verdict": "not run", "seconds": 0.0, "why": "no time left"})
        return
    seen, begin, jobs, files = Seen(), time.monotonic(), [], []
    plan = json.dumps({"sizes": [1 << 20], "ops": ["all_reduce"], "few": True, "seconds": 30})
    with tempfile.TemporaryDirectory() as meeting:
        for rank in range(2):
            files.append(logs / f"killed.rank{rank}.log")
            with open(logs / f"killed.rank{rank}.out", "w", encoding="utf-8") as out:
                jobs.append(start("direct", [sys.executable, HERE / "nccl_rank.py", rank, 2, meeting, plan],
                                  environment("direct", files[-1], rank, gpus, {"NCCL_IB_TIMEOUT": "14", "NCCL_IB_RETRY_CNT": "2"}),
                                  out))
        def kill(after):
            if after < 6 or jobs[1].poll() is not None:
                return False
            os.killpg(jobs[1].pid, signal.SIGKILL)
            return True
        # NCCL tells of the fault; a rank that spins in its kernel is ended by us.
        follow(jobs, 16, seen, kill)
        fate = jobs[0].poll()
        end_all(jobs)
    warnings = channels(files)["warnings"]
    told = [line for line in warnings if "ompletion" in line]
    note({"name": name, "seconds": time.monotonic() - begin, "status": [fate, jobs[1].returncode], "said": warnings,
          "seen": seen.summary(),
          "verdict": "ok" if told and jobs[1].returncode == -signal.SIGKILL else "FAILED",
          "why": (told or ["NCCL told of no completion that failed"])[0][-200:]})


def torch_ddp():
    """DDP of PyTorch, if it is there: the loss curve over this device and over Socket."""
    if run(sys.executable, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())", timeout=60).returncode:
        note({"name": "PyTorch DDP", "verdict": "not run", "seconds": 0.0, "why": "no PyTorch with CUDA here"})
        return
    curves = {}
    for way in ("direct", "socket"):
        name, limit = f"PyTorch DDP, {way}", 90
        if time.monotonic() + limit > UNTIL:
            note({"name": name, "verdict": "not run", "seconds": 0.0, "why": "no time left"})
            return
        begin, seen, jobs, files = time.monotonic(), Seen(), [], []
        with tempfile.TemporaryDirectory() as meeting:
            for rank in range(2):
                files.append(logs / f"ddp-{way}.rank{rank}.log")
                with open(logs / f"ddp-{way}.rank{rank}.out", "w", encoding="utf-8") as out:
                    jobs.append(start(way, [sys.executable, HERE / "nccl_ddp.py", rank, 2, meeting, 50],
                                      environment(way, files[-1], rank, result["gpus"], {}), out))
            ended = follow(jobs, limit, seen)
            inside = [] if ended else [gpu.get("inside") or gpu.get("slow") for p in shown() for gpu in p.get("gpus", ())]
            end_all(jobs)
        rows = read_rows(logs / f"ddp-{way}.rank0.out")
        curves[way] = [row["loss"] for row in rows if "loss" in row]
        good = ended and not any(job.returncode for job in jobs) and len(curves[way]) == 50
        note({"name": name, "seconds": time.monotonic() - begin, "status": [job.returncode for job in jobs],
              "loss": curves[way], "seen": seen.summary(), "channels": channels(files), "said": rows[-1:],
              "verdict": "ok" if good else "FAILED",
              "why": "" if good else f"HANGS {inside}" if not ended else (logs / f"ddp-{way}.rank0.out").read_text()[-300:]})
    if len(curves.get("direct", ())) == len(curves.get("socket", ())) == 50:
        same = all(abs(a - b) <= 1e-5 * max(1.0, abs(b)) for a, b in zip(curves["direct"], curves["socket"]))
        note({"name": "PyTorch DDP: the same loss curve", "verdict": "ok" if same else "FAILED", "seconds": 0.0})


def facts():
    if not shutil.which("nvidia-smi"):
        print("no GPU: no nvidia-smi")
        sys.exit(77)
    names = run("nvidia-smi", "--query-gpu=name,driver_version,uuid", "--format=csv,noheader").stdout.strip().splitlines()
    library = find_nccl()
    if not names or not library:
        print("no GPU" if not names else "no NCCL: NCCL_LIBRARY names it")
        sys.exit(77)
    if os.geteuid() == 0 and not pathlib.Path("/sys/kernel/debug/dma_buf").exists():
        run("mount", "-t", "debugfs", "none", "/sys/kernel/debug")
    run("ip", "link", "set", "lo", "up")
    result.update(machine={"gpus": names, "processors": os.cpu_count(), "kernel": os.uname().release,
                           "topology": run("nvidia-smi", "topo", "-m").stdout[:2000]},
                  gpus=min(len(names), 2), nccl={"library": library},
                  peerpath_runs=run(PEERPATH, "soft", "show").returncode == 0)
    print(names, library, "peerpath runs" if result["peerpath_runs"] else "peerpath does not run here", flush=True)


def own_client():
    """What NCCL needs of the device, one thing at a time, before NCCL."""
    pairs = (("vmm", "vmm"), ("alloc", "alloc"), ("vmm", "alloc"), ("alloc", "vmm"))
    two = ("-g",) if result["gpus"] > 1 else ()
    for source, target in pairs:
        client(f"bytes, direct, {source} to {target}", LO, *two, "-s", source, "-t", target, "-i", "20480", "bytes")
    for kind in ("vmm", "alloc"):
        client(f"to itself, {kind}", LO, "-s", kind, "-t", kind, "-n", "8", "self")
        client(f"1000 regions, {kind}", LO, *two, "-s", kind, "-t", kind, "-n", "1000", "regions")
        client(f"to host memory, {kind}", LO, "-s", kind, "-t", "host", "bytes", PP_GPU_ALSO="1")
        client(f"lines of 128 bytes, {kind}", LO, *two, "-s", kind, "-t", kind, "-n", "6", "lines")


def calls():
    """Calls of CUDA beside a kernel that waits for the peer (each hung an engine in the application's context)."""
    for kind in ("vmm", "alloc"):
        for call in ("peer-dereg", "cuMemFree", "cuMemFreeHost", "cuModuleLoadData", "cuMemHostRegister"):
            client(f"call beside a waiting kernel, {kind}, {call}", LO, "-s", kind, "-t", kind, "-c", call, "call", limit=12)


def ends():
    for kind in ("vmm", "alloc"):
        for what in ("sdereg", "rdereg", "sdestroy", "sclose", "skill", "rkill"):
            client(f"ends in the middle, {kind}: {what}", LO, "-s", kind, "-t", kind, "-c", what, "-n", "3", "ends",
                   limit=20, expect=-9)
            # What the next ones meet is the server's, not theirs.
            if mps.there and "kill" in what:
                mps.stop()
                mps.start()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "summary.txt").write_text("")
    facts()
    gpus = result["gpus"]
    full = {"sizes": SIZES, "ops": ["all_reduce"], "mixed": 60}
    short = {"sizes": SMALL, "ops": ["all_reduce"], "mixed": 40}
    # On one GPU two processes take turns without MPS: no speed means anything then.
    if gpus == 1:
        mps.start()
    result["mps"] = mps.there
    try:
        ranks("all_reduce, direct", "direct", full, 60, gpus, expect="direct")
        ranks("all_reduce, staged", "staged", full, 60, gpus, expect="staged")
        ranks("all_reduce, Socket", "socket", full, 90, gpus)
        ranks("all_reduce, wire", "wire", {**short, "sizes": SMALL + [256 << 20]}, 60, gpus, expect="wire")
        if gpus > 1:
            ranks("all_reduce, SHM", "shm", full, 60, gpus)
            ranks("all_reduce, P2P", "p2p", full, 60, gpus)
        own_client()
        for proto in ("LL", "LL128", "Simple"):
            ranks(f"{proto}, direct", "direct", short, 40, gpus, NCCL_PROTO=proto)
            ranks(f"{proto}, staged", "staged", {**short, "sizes": SMALL[:3]}, 40, gpus, NCCL_PROTO=proto)
        ranks("allocated buffers (NCCL_CUMEM_ENABLE=0), direct", "direct", short, 40, gpus, expect="direct", NCCL_CUMEM_ENABLE="0")
        ranks("8 channels, direct", "direct", {**full, "mixed": 0}, 40, gpus, expect="direct", NCCL_MIN_NCHANNELS="8")
        ranks("every operation, direct", "direct",
              {"sizes": [64 << 10, 4 << 20], "ops": ["all_gather", "reduce_scatter", "broadcast", "send_recv"], "mixed": 100}, 40, gpus)
        ranks("forced flush, direct", "direct", short, 40, gpus, NCCL_NET_FORCE_FLUSH="1", NCCL_GDR_FLUSH_DISABLE="0")
        ranks("registered buffers, direct", "direct", {**short, "register": True}, 40, gpus)
        ranks("GDR off, host memory", "direct", {**short, "sizes": SMALL[:3]}, 40, gpus, NCCL_NET_GDR_LEVEL="LOC")
        calls()
        torch_ddp()
        ends()
        killed(gpus)
        mps.stop()
        if gpus == 1:
            ranks("no MPS, direct: right, however slow", "direct",
                  {"sizes": [8 << 10, 2 << 20], "ops": ["all_reduce"], "few": True, "mixed": 10}, 60, gpus)
    finally:
        mps.stop()
        write()
        with tarfile.open(OUT / "logs.tar.gz", "w:gz") as tar:
            for file in sorted(logs.iterdir()):
                if file.stat().st_size < 4 << 20:
                    tar.add(file, arcname=file.name)
        shutil.rmtree(logs, ignore_errors=True)
    bad = [step["name"] for step in result["steps"] if step["verdict"] == "FAILED"]
    print("failed: " + ", ".join(bad) if bad else "all passed", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
