#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench and prove's gate 2 as mistyped, misplaced and alone: one clear line, the right exit status.

usage: bench_usage.py PEERPATH
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

PEERPATH = sys.argv[1]
FAULTS = []


def run(*argv, env=None, timeout=60):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("PEERPATH_TOKEN", "SLURM_", "PMI", "OMPI_"))}
    start = time.monotonic()
    done = subprocess.run([PEERPATH, *argv], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, env={**clean, **(env or {})})
    return done, time.monotonic() - start


def expect(argv, code, *words, env=None):
    done, took = run(*argv, env=env)
    name = " ".join(argv)
    if done.returncode != code:
        FAULTS.append(f"{name}: exit {done.returncode}, not {code}: {done.stderr.strip()}")
    lines = done.stderr.strip().splitlines()
    if len(lines) != 1:
        FAULTS.append(f"{name}: {len(lines)} lines: {done.stderr.strip()}")
    for word in words:
        if word not in done.stderr:
            FAULTS.append(f"{name}: does not say '{word}': {done.stderr.strip()}")
    if done.stdout:
        FAULTS.append(f"{name}: printed a result: {done.stdout[:100]}")
    return took


def options():
    expect(["bench"], 64, "with whom", "--here", "srun")
    expect(["bench", "--here", "--listen"], 64, "--here excludes --listen")
    expect(["bench", "--here", "localhost"], 64, "--here excludes a HOST")
    expect(["bench", "--here", "--once"], 64, "--once goes with --listen")
    expect(["bench", "localhost"], 64, "with which token", "PEERPATH_TOKEN")
    for size in ("0", "2G", "1M:4K", "x", "4K,", "4K:"):
        expect(["bench", "--here", "--size", size], 64, "--size does not take")
    expect(["bench", "--here", "--all", "--size", "1M"], 64, "--all excludes --size")
    expect(["bench", "--here", "--rungs", "hosts"], 64, "did you mean 'host'")
    expect(["bench", "--here", "--op", "write,red"], 64, "did you mean 'read'")
    expect(["bench", "--here", "--measure", ""], 64, "--measure does not take ''")
    expect(["bench", "--here", "--mtu", "1500"], 64, "256, 512, 1024, 2048 or 4096")
    expect(["bench", "--here", "--qp", "65"], 64, "1 to 64")
    expect(["bench", "--here", "--gid-index", "-1"], 64, "0 to 65535")
    expect(["bench", "--here", "--duration", "0"], 64, "--duration does not take")
    expect(["bench", "--here", "--pattern", "rings"], 64, "did you mean 'ring'")
    expect(["bench", "--here", "--port", "70000"], 64, "1 to 65535")
    expect(["bench", "--here", "--sizes", "1M"], 64, "did you mean '--size'")
    expect(["prove", "--no-bundle", "--size", "1M"], 64, "--size goes with --peer or --simulate")
    expect(["prove", "--no-bundle", "--simulate", "--root", "/"], 64, "on a live node only")
    expect(["prove", "--no-bundle", "--simulate", "--after-reboot", "/nowhere"], 65, "/nowhere")
    for option in (["--peer", "localhost"], ["--simulate"], ["--after-reboot", "x", "--peer", "localhost"]):
        expect(["prove", "--no-bundle", *option, "--through", "1"], 64, "--through prerequisites does not reach")
    many = run("identity", "-" + "j" * 5000)[0]
    if many.returncode != 0:
        FAULTS.append(f"5000 letters in a word: exit {many.returncode}")


def tokens(place):
    shown = place / "token"
    shown.write_text("a-token-that-is-long-enough\n")
    shown.chmod(0o644)
    expect(["bench", "localhost", "--token-file", str(shown)], 64, "token")
    expect(["bench", "localhost", "--token-file", str(place / "none")], 64, "none")
    expect(["bench", "localhost"], 64, "token", env={"PEERPATH_TOKEN": "short"})


def launchers():
    broken = {"SLURM_PROCID": "4", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0",
              "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "a[1-2]"}
    expect(["bench"], 64, "SLURM_PROCID", env=broken)


def nobody():
    """A port where nobody listens, and one where somebody else does."""
    token = {"PEERPATH_TOKEN": "0123456789abcdef"}
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        free = other.getsockname()[1]
        other.listen()
        took = expect(["bench", f"127.0.0.1:{free}"], 2, f"127.0.0.1:{free}", env=token)
        if took > 45:
            FAULTS.append(f"a silent stranger was waited for {took:.0f} s")
    expect(["bench", "no.such.host.invalid"], 2, "no.such.host.invalid", env=token)


def no_device():
    if any(pathlib.Path("/sys/class/infiniband").glob("*")):
        print("skipped: this machine has an hca")
        return
    expect(["bench", "--here"], 2, "no RDMA device", "--simulate")


def main():
    options()
    with tempfile.TemporaryDirectory() as place:
        tokens(pathlib.Path(place))
    launchers()
    nobody()
    no_device()
    print("\n".join(FAULTS) or "all said in one line")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
