#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the observer costs the one who registers, and the one who posts.

usage: observe.py PEERPATH OBSERVER OBSERVE_LOOP [--rounds N]

The loop registers and gives back a MiB of host memory, and posts receives, on the software device: alone and under the
observer, in turn. The middle of each run, and the median of the rounds' differences, since what slows a round slows both.
A device whose registration itself takes longer (a NIC's pins pages) pays the same difference on top.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile


def run(args, folder):
    more = {"LD_AUDIT": args.observer, "PEERPATH_OBSERVE": folder} if folder else {}
    words = [args.peerpath, "soft", "-c", "name=soft0,address=127.0.0.1", "--", "env", *(f"{k}={v}" for k, v in more.items()), args.loop]
    script = 'ip link set lo up; exec "$@"'
    done = subprocess.run(["unshare", "-rn", "sh", "-c", script, "sh", *words], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        sys.exit(f"{words}: {done.returncode} {done.stderr}")
    return {key: int(value) for key, value in re.findall(r"(\w+)_ns (\d+)", done.stdout)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("peerpath", "observer", "loop"):
        p.add_argument(name, type=os.path.abspath)
    p.add_argument("--rounds", type=int, default=9)
    args = p.parse_args()
    pairs = []
    with tempfile.TemporaryDirectory(prefix="peerpath-perf-") as top:
        for i in range(args.rounds):
            folder = pathlib.Path(top, str(i))
            folder.mkdir()
            pairs.append((run(args, None), run(args, str(folder))))
            records = sum(len(f.read_text().splitlines()) for f in folder.iterdir())
    print(f"{args.rounds} rounds, {records} records a run")
    for what in ("registration", "post"):
        alone = statistics.median(a[what] for a, _ in pairs)
        more = [b[what] - a[what] for a, b in pairs]
        print(f"  {what:14} alone {alone / 1000:8.2f} us, observed {statistics.median(more) / 1000:+8.2f} us ({min(more) / 1000:+.2f} to {max(more) / 1000:+.2f})")


main()
