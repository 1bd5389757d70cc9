#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perftest, unmodified, between two processes on the software device: every tool and the options
that take another way through the library. The tools judge: exit status and completions.

usage: perftest.py PEERPATH [SUBSTRING-OF-A-CASE...]
"""
import itertools
import os
import re
import shutil
import subprocess
import sys
import time

PEERPATH, ONLY = sys.argv[1], sys.argv[2:]
DEVICE = "soft0"
TIMEOUT_S = 60
# An unknown part posts by ibv_post_send(), ConnectX-5's by ibv_wr_*(): perftest decides by it.
OLD = "name=soft0,address=127.0.0.1,address=::1"
NEW = OLD + ",vendor_id=0x2c9,vendor_part_id=4119"

SHORT = ["-n", "200"]
CASES = [(tool, args) for tool, args in itertools.chain(
    ((t, a) for t in ("ib_write_bw", "ib_read_bw", "ib_send_bw") for a in (
        ["-s", "65536"], ["-s", "1"], ["-a", "-n", "30"], ["-b", "-s", "4096"],
        ["-q", "8", "-s", "65536"], ["-e", "-s", "4096"], ["-l", "16", "-s", "2048"])),
    ((t, a) for t in ("ib_write_bw", "ib_send_bw") for a in (["-I", "64", "-s", "64"],)),
    ((t, a) for t in ("ib_write_lat", "ib_read_lat", "ib_send_lat") for a in (
        ["-s", "8"], ["-s", "65536"], ["-a", "-n", "30"])),
    ((t, a) for t in ("ib_send_lat", "ib_read_lat") for a in (["-e", "-s", "8"],)),
    ((t, a) for t in ("ib_write_lat", "ib_send_lat") for a in (["-I", "64", "-s", "64"],)),
    ((t, ["-A", k]) for t in ("ib_atomic_bw", "ib_atomic_lat") for k in ("FETCH_AND_ADD", "CMP_AND_SWAP")),
    (("ib_send_bw", ["-c", "UD", "-s", "1024", *more]) for more in ([], ["-b"], ["-e"], ["-q", "8"])),
    (("ib_send_lat", ["-c", "UD", "-s", "1024", *more]) for more in ([], ["-e"])),
)]


def command(config, gid, port, tool, args):
    n = [] if "-n" in args else SHORT
    return [PEERPATH, "soft", "--config", config, "--", tool, "-d", DEVICE, "-x", str(gid), "-p", str(port),
            "-F", *args, *n]


def run(config, gid, port, tool, args):
    """None, or what went wrong."""
    argv = command(config, gid, port, tool, args)
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while True:
            time.sleep(0.05)
            client = subprocess.run([*argv, "127.0.0.1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, timeout=TIMEOUT_S, check=False)
            # The server may not listen yet.
            if "Couldn't connect" not in client.stdout or server.poll() is not None:
                break
            if time.monotonic() > deadline:
                break
        said, _ = server.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as e:
        return f"no end after {TIMEOUT_S} s: {(e.output or b'')[-300:]}"
    finally:
        server.kill()
        server.wait()
    if client.returncode or server.returncode:
        return f"client {client.returncode}, server {server.returncode}: {client.stdout[-600:]}{said[-600:]}"
    rows = re.findall(r"^ *(\d+) +(\d+) +([\d.]+) +([\d.]+)", client.stdout, re.M)
    want = 8 if "-a" in args else 1
    if len(rows) < want or any(float(r[3]) <= 0 for r in rows):
        return f"{len(rows)} rows of figures: {client.stdout[-600:]}"
    return None


def main():
    tools = sorted({tool for tool, _ in CASES})
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print(f"perftest is not installed: {' '.join(missing)}")
        return 77
    port, faults, ran = 21000 + os.getpid() % 20000, 0, 0
    for (tool, args), (way, config) in itertools.product(CASES, (("old", OLD), ("new", NEW))):
        # Every second case over IPv6: index 0 is the IPv4 GID, 1 the IPv6 one.
        gid = ran % 2
        name = f"{tool} {' '.join(args)} posted the {way} way, {'IPv6' if gid else 'IPv4'}"
        if ONLY and not any(word in name for word in ONLY):
            ran += 1
            continue
        ran += 1
        port += 1
        start = time.monotonic()
        fault = run(config, gid, port, tool, args)
        print(f"{'FAULT' if fault else 'ok'} {name} {time.monotonic() - start:.2f} s {fault or ''}", flush=True)
        faults += bool(fault)
    print(f"{ran - faults} of {ran} cases right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
