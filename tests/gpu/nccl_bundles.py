#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL under observation on a machine with a GPU, or two, by the product's own commands alone.

usage: nccl_bundles.py BUILD OUT SECONDS [STEP...]

For each step but canary OUT gets STEP.txt (what the command printed), STEP.json (its document) and STEP.logs.tar.gz (NCCL's logs);
summary.txt has a line each. Steps: device socket shm nvlink host prove ddp faults canary speeds one. Two ranks: on two GPUs one each, on
one GPU both, under MPS. Exit 77: no GPU, or no NCCL.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD, OUT = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
UNTIL = time.monotonic() + float(sys.argv[3])
STEPS = sys.argv[4:]
PEERPATH = BUILD / "src/cli/peerpath"
LOGS = pathlib.Path(tempfile.mkdtemp(prefix="peerpath-bundles-"))
LO = "name=soft0,address=127.0.0.1"
SPEED_SIZES = "8K,128K,512K,2M,32M,256M"
SIZES = ("--minbytes=8", "--maxbytes=256M", "--stepfactor=8", "--iters=20")
GPUS = 0
FAILED, RESULT = [], []


def say(name, good, text):
    line = f"{name}: {'ok' if good else 'FAILED'} {text}".rstrip()
    if not good:
        FAILED.append(name)
    print(line, flush=True)
    with open(OUT / "summary.txt", "a", encoding="utf-8") as file:
        file.write(line + "\n")


def run(argv, limit, during=None, **env):
    """Status (None: it did not end in time), output, seconds. Nothing that it started outlives it."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        job = subprocess.Popen([str(a) for a in argv], env={**os.environ, "NCCL_SOCKET_IFNAME": "lo", **env}, stdout=out,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        while job.poll() is None and time.monotonic() < begin + limit:
            if during and during(time.monotonic() - begin, job):
                during = None
            time.sleep(0.1)
        status = job.poll()
        if status is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        out.seek(0)
        return status, out.read().decode(errors="replace"), time.monotonic() - begin


def keep(name, text, logs):
    (OUT / f"{name}.txt").write_text(text)
    if logs and logs.exists():
        with tarfile.open(OUT / f"{name}.logs.tar.gz", "w:gz") as tar:
            tar.add(logs, arcname=name)


def perf(*more, apart=True):
    ranks = ("--gpus=2",) if GPUS > 1 else ("--ranks=2", "--one-gpu")
    return [PEERPATH, "nccl", "perf", "all_reduce", *ranks, *(("--apart",) if apart and GPUS > 1 else ()), *SIZES, *more]


def read(name):
    try:
        return json.loads((OUT / f"{name}.json").read_text())
    except (OSError, ValueError):
        return {}


def watched(name, options, command, limit, soft=None, status=(0,), during=None, **env):
    """One `nccl run`, and what `--join` makes of its document."""
    if time.monotonic() + limit > UNTIL:
        say(name, True, "not run: no time left")
        return None
    logs = LOGS / name
    front = [PEERPATH, "soft", "-c", soft, "--sysfs", LOGS / f"{name}.sysfs", "--"] if soft else []
    got, text, took = run([*front, PEERPATH, "nccl", "run", *options, "--busy-ok", f"--timeout={limit - 15}s", "-o", OUT / f"{name}.json",
                           "--force", "--keep-logs", logs, "--", *command], limit, during, **env)
    keep(name, text, logs)
    joined = run([PEERPATH, "nccl", "run", "--json", "--join", OUT / f"{name}.json"], 20)[1]
    try:
        gate = json.loads(joined)["gate"]
    except (ValueError, KeyError):
        gate = {"joined": joined[-300:]}
    say(name, got in status, f"status {got}, {took:.1f} s, " + json.dumps(gate)[:700])
    return gate


def judged(name):
    """`nccl judge` and `explain` of the logs that a step kept."""
    files = sorted(str(f) for f in (LOGS / name / "unchanged").glob("nccl.*.log"))
    if not files:
        return
    text = run([PEERPATH, "nccl", "judge", *files], 20)[1]
    said = run([PEERPATH, "explain", files[0]], 20)[1]
    with open(OUT / f"{name}.txt", "a", encoding="utf-8") as out:
        out.write("\n==== nccl judge\n" + text + "\n==== explain\n" + said)


def witness():
    """The kernel's list of DMA-BUFs and the device's own account, while a job runs: those that show most."""
    most = [0]

    def during(_, __):
        try:
            text = pathlib.Path("/sys/kernel/debug/dma_buf/bufinfo").read_text()
        except OSError:
            return True
        count = len(re.findall(r"\bnv_dmabuf\b", text))
        if count > most[0]:
            most[0] = count
            (OUT / "device.bufinfo.txt").write_text(text)
            (OUT / "device.show.txt").write_text(run([PEERPATH, "soft", "show"], 10)[1])
        return False
    return during, most


def step_device():
    during, most = witness()
    watched("device", ["--simulate", "--controls"], perf(), 150, during=during)
    say("device-bufinfo", most[0] > 0, f"{most[0]} DMA-BUFs of nv_dmabuf at most")
    judged("device")


def step_socket():
    watched("socket", [], perf(), 60, status=(0, 1, 2), NCCL_NET="Socket")
    judged("socket")


def step_shm():
    watched("shm", [], perf(apart=False), 60, status=(0, 1, 2), NCCL_P2P_DISABLE="1")
    judged("shm")


def step_nvlink():
    watched("nvlink", [], perf(apart=False), 60, status=(0, 1, 2))
    judged("nvlink")


def step_host():
    watched("host", ["--simulate"], perf(), 60, status=(0, 1, 2), NCCL_NET_GDR_LEVEL="LOC")
    judged("host")


def step_prove():
    if time.monotonic() + 150 > UNTIL:
        say("prove", True, "not run: no time left")
        return
    got, text, took = run([PEERPATH, "prove", "--simulate", "--busy-ok", "-o", OUT / "prove.tar.zst", "--force"], 150)
    keep("prove", text, None)
    again = run([PEERPATH, "prove", "--replay", OUT / "prove.tar.zst", "--through", "3"], 60)
    (OUT / "prove.replay.txt").write_text(again[1])
    say("prove", got == 0, f"status {got}, {took:.1f} s, replayed: {again[0]}")


def training(meeting, steps):
    second = 1 if GPUS > 1 else 0
    return (f"for r in 0 1; do NCCL_HOSTID=peerpath-$r PP_GPU=$((r * {second})) {sys.executable} {HERE}/nccl_ddp.py $r 2 "
            f"{meeting} {steps} > {meeting}/out$r 2>&1 & done; wait")


def step_canary():
    """A run over Socket, one over the device, and again; then the comparison, and its page."""
    repeats, sides = 6, {"before": {"NCCL_NET": "Socket"}, "after": {}}
    for side in sides:
        (OUT / side).mkdir(exist_ok=True)
    for i in range(repeats):
        for side, env in sides.items():
            if time.monotonic() + 45 > UNTIL:
                say(f"canary-{side}-{i}", True, "not run: no time left")
                continue
            meeting = tempfile.mkdtemp()
            evidence = OUT / ("ddp-socket.json" if side == "before" else "ddp-device.json")
            front = [] if side == "before" else [PEERPATH, "soft", "-c", LO, "--"]
            got, text, took = run([PEERPATH, "canary", "-f", HERE / "ddp.ini", "--repeats=1", "--json",
                                   *([f"--evidence={evidence}"] if evidence.exists() else []), "--", *front, "sh", "-c",
                                   training(meeting, 400) + f"; cat {meeting}/out0"], 45, **env)
            at = text.find('{\n  "schema"') if '{\n  "schema"' in text else text.find('{"schema"')
            (OUT / side / f"{i}.json").write_text(text[at:] if at >= 0 else "{}")
            (OUT / f"canary.{side}.{i}.txt").write_text(text[:at] if at >= 0 else text)
            said = re.findall(r'"samples_per_s": [0-9.]+', text)
            say(f"canary-{side}-{i}", got == 0, f"status {got}, {took:.1f} s {said[:1]}")
    got, text, _ = run([PEERPATH, "compare", OUT / "before", OUT / "after", "--html", OUT / "canary.html", "--force"], 30)
    (OUT / "canary.txt").write_text(text)
    say("canary", got in (0, 2), f"status {got}: {text[-300:]}")


WAYS = (
    # name, configuration of the device, environment; None: without the device
    ("direct", LO, {}), ("direct, 8 channels", LO, {"NCCL_MIN_NCHANNELS": "8"}),
    ("staged", LO + ",same-host-gpu=staged", {}), ("wire", LO + ",same-host=no", {}),
    ("Socket", None, {"NCCL_NET": "Socket"}), ("SHM", None, {"NCCL_P2P_DISABLE": "1"}), ("P2P", None, {}),
)


def measure(name, soft, env, round_):
    """One run: of each size the time and rate of operations back to back, and the time of one at a time, p50."""
    found = {}
    if time.monotonic() + 25 > UNTIL:
        return found
    ranks = ("--gpus=2",) if GPUS > 1 else ("--ranks=2", "--one-gpu")
    apart = ("--apart",) if GPUS > 1 and name not in ("SHM", "P2P") else ()
    front = [PEERPATH, "soft", "-c", soft, "--"] if soft else []
    got, text, _ = run([*front, PEERPATH, "nccl", "perf", "all_reduce", *ranks, *apart, "--busy-ok", f"--sizes={SPEED_SIZES}", "--iters=20",
                        "--deadline=20s"], 25, **env)
    with open(OUT / "speeds.txt", "a", encoding="utf-8") as out:
        out.write(f"==== {GPUS} GPU, {name}, {round_ + 1}: status {got}\n{text}\n")
    for line in text.splitlines() if got == 0 else ():
        row = line.lstrip("# ").split()
        if len(row) == 13 and row[0].isdigit():
            found[int(row[0])] = {"us": float(row[5]), "gbps": float(row[6])}
        elif line.startswith("#") and len(row) == 8 and row[0].isdigit() and row[1].isdigit() and int(row[0]) in found:
            found[int(row[0])]["p50_us"] = float(row[2])
    return found


def compare(names, rounds):
    """The ways in turn, so that what moves on the machine moves for all; medians, and those of each round's ratio to Socket."""
    ways = [way for way in WAYS if way[0] in names]
    runs = {way[0]: [] for way in ways}
    for i in range(rounds):
        for way in ways:
            runs[way[0]].append(measure(*way, i))
    for name, of in runs.items():
        sizes = sorted(set.intersection(*({*run} for run in of)) if all(of) else ())
        row = {"gpus": GPUS, "way": name, "rounds": rounds, "runs": {}}
        for size in sizes:
            row["runs"][size] = {key: statistics.median(run[size][key] for run in of)
                                 for key in ("us", "gbps", "p50_us") if all(key in run[size] for run in of)}
            row["runs"][size]["all_gbps"] = [run[size]["gbps"] for run in of]
            row["runs"][size]["all_p50_us"] = [run[size].get("p50_us") for run in of]
            if all(size in run for run in runs.get("Socket", ({},))):
                row["runs"][size]["times_sockets"] = statistics.median(
                    run[size]["gbps"] / other[size]["gbps"] for run, other in zip(of, runs["Socket"]))
        RESULT.append(row)
        say(f"{GPUS} GPU {name}", bool(sizes), ", ".join(
            f"{size >> 10}K {at['us']:.0f}/{at.get('p50_us', 0):.0f} us {at['gbps']:.2f} ({at.get('times_sockets', 0):.2f} of Socket)"
            for size, at in row["runs"].items()))
    (OUT / "speeds.json").write_text(json.dumps({"schema": "peerpath.soft-speeds/2", "simulated": True, "what":
        "nccl perf all_reduce, fp32, ways in turn, medians; tests/gpu/nccl_bundles.py speeds one", "rows": RESULT}, indent=1) + "\n")


def step_speeds():
    compare([way[0] for way in WAYS], 5)


def step_one():
    """On one of two GPUs, under MPS."""
    global GPUS  # pylint: disable=global-statement
    was, GPUS = GPUS, 1
    mps(True)
    compare(("direct", "direct, 8 channels", "staged", "wire", "Socket"), 3)
    mps(False)
    GPUS = was


def step_ddp():
    curves = {}
    for way in ("device", "socket"):
        meeting = tempfile.mkdtemp()
        script = training(meeting, 50)
        options, env = (["--simulate"], {}) if way == "device" else ([], {"NCCL_NET": "Socket"})
        watched(f"ddp-{way}", options, ["sh", "-c", script], 90, status=(0, 1, 2), **env)
        judged(f"ddp-{way}")
        lines = [json.loads(line) for line in (pathlib.Path(meeting) / "out0").read_text().splitlines() if line.startswith("{")] \
            if (pathlib.Path(meeting) / "out0").exists() else []
        curves[way] = [row["loss"] for row in lines if "loss" in row]
        (OUT / f"ddp-{way}.loss.json").write_text(json.dumps(lines))
    a, b = curves["device"], curves["socket"]
    same = len(a) == len(b) == 50 and all(abs(x - y) <= 1e-5 * max(1.0, abs(y)) for x, y in zip(a, b))
    say("ddp-curve", same, f"{len(a)} and {len(b)} steps, largest difference {max((abs(x - y) for x, y in zip(a, b)), default=None)}")


def inject(after, *spec):
    def during(seconds, _):
        if seconds < after:
            return False
        run([PEERPATH, "soft", "fault", *spec], 10)
        return True
    return during


def kill_rank(after):
    """A process that has libnccl mapped, and is a rank of perf's."""
    def during(seconds, job):
        if seconds < after:
            return False
        for pid in sorted((int(p) for p in os.listdir("/proc") if p.isdigit()), reverse=True):
            try:
                if "libnccl" in pathlib.Path(f"/proc/{pid}/maps").read_text() and os.getsid(pid) == job.pid:
                    os.kill(pid, signal.SIGKILL)
                    return True
            except OSError:
                continue
        return False
    return during


def mps(start):
    """A server for two ranks on one GPU; anew after a client was killed, whose work its successors trip over."""
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        try:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, timeout=20, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            pass
        for word in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.environ.pop(word, None)
    if start and GPUS == 1:
        place = tempfile.mkdtemp()
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = os.environ["CUDA_MPS_LOG_DIRECTORY"] = place
        if run(["nvidia-cuda-mps-control", "-d"], 30)[0] != 0:
            say("mps", False, "its server does not start")


def step_faults():
    short = ("--minbytes=4M", "--maxbytes=4M", "--deadline=35s", "--timeout=15s")
    ranks = ("--gpus=2", "--apart") if GPUS > 1 else ("--ranks=2", "--one-gpu")
    once = [PEERPATH, "nccl", "perf", "all_reduce", *ranks, *short, "--iters=20"]
    long = [PEERPATH, "nccl", "perf", "all_reduce", *ranks, *short, "--iters=100000"]
    quick = {"NCCL_IB_TIMEOUT": "14", "NCCL_IB_RETRY_CNT": "2"}
    for number in (93, 524, 12):
        watched(f"reg-{number}", [], once, 50, soft=f"{LO},fault=reg_dmabuf_mr={number}", status=(1,), **quick)
        judged(f"reg-{number}")
        mps(True)
    for name, during in (("port-down", inject(6, "port=down")), ("qp-fatal", inject(6, "qp=fatal")), ("killed", kill_rank(6))):
        watched(name, [], long, 60, soft=LO, status=(1,), during=during, **quick)
        judged(name)
        mps(True)


def main():
    global GPUS  # pylint: disable=global-statement
    OUT.mkdir(parents=True, exist_ok=True)
    if not shutil.which("nvidia-smi"):
        print("no GPU: no nvidia-smi")
        sys.exit(77)
    names = run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], 30)[1].strip().splitlines()
    GPUS = min(len(names), 2)
    if not GPUS:
        print("no GPU")
        sys.exit(77)
    if os.geteuid() == 0 and not pathlib.Path("/sys/kernel/debug/dma_buf").exists():
        run(["mount", "-t", "debugfs", "none", "/sys/kernel/debug"], 10)
    mps(True)
    steps = {"device": step_device, "socket": step_socket, "shm": step_shm, "nvlink": step_nvlink, "host": step_host,
             "prove": step_prove, "ddp": step_ddp, "faults": step_faults, "canary": step_canary, "speeds": step_speeds, "one": step_one}
    try:
        for name in STEPS or [s for s in steps if s != "one"]:
            steps[name]()
    finally:
        mps(False)
        shutil.rmtree(LOGS, ignore_errors=True)
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
