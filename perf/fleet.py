#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fleet of 10,000 nodes with 30 results each: ingest, drift, page, in SQLite and PostgreSQL.

    fleet.py PEERPATH [--nodes N] [--results N] [--engine sqlite|postgresql|both] [--dir DIR]

Results are made in portions, so that the made text (12 KB each) never lies on the disk whole; making
them is not in the figures. Per engine: results a second (wall, and CPU of the program), the slowest of
five asks of what drifted, of the page and of the answers that the page waits for. Both engines must
answer alike. Bounds: ingest 500 results/s, drift 1 s, page 1 s; exit 1 when one is missed.
"""
import argparse
import http.client
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/fixtures")]
import make_fleet  # noqa: E402
import postgres  # noqa: E402

PORTION = 250
BOUNDS = {"ingest": 500.0, "drift": 1.0, "page": 1.0}


def run(peerpath, where, *args):
    env = dict(os.environ, PEERPATH_DATABASE=str(where))
    began, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([peerpath, "fleet", *map(str, args)], env=env, capture_output=True, check=False)
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"{args[0]}: {done.returncode}: {done.stderr.decode()[-500:]}")
    return done.stdout, took, after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime


def ingest(peerpath, places, plan, tmp):
    """Each portion into all places by turns; {name: (seconds, CPU seconds)}."""
    spent = {name: [0.0, 0.0] for name in places}
    for first in range(0, plan.nodes, PORTION):
        out = tmp / "portion"
        out.mkdir()
        numbers = range(first, min(first + PORTION, plan.nodes))
        make_fleet.write(plan, numbers, out)
        for name, where in places.items():
            text, took, cpu = run(peerpath, where, "add", "-j", out)
            told = json.loads(text)
            assert told["results"] == len(numbers) * plan.results and not told["failed"], told
            spent[name][0] += took
            spent[name][1] += cpu
        shutil.rmtree(out)
        if first // PORTION % 8 == 7:
            done = (first + PORTION) * plan.results
            print(f"  {done} results: " + ", ".join(f"{n} {done / s[0]:.0f}/s" for n, s in spent.items()), file=sys.stderr)
    return spent


def slowest(times):
    return f"{max(times):.3f} s (median {sorted(times)[len(times) // 2]:.3f})"


def page(peerpath, where):
    """The page itself, and the first list, as a browser asks for them."""
    server = subprocess.Popen([peerpath, "fleet", "serve", "--port", "0"], env=dict(os.environ, PEERPATH_DATABASE=str(where)),
                              stderr=subprocess.PIPE, text=True)
    times = {}
    try:
        port = int(server.stderr.readline().split()[2].rstrip("/").rsplit(":", 1)[1])
        for name, paths in {"page": ("/", "/api/nodes?limit=200"), "page, searching": ("/api/nodes?limit=200&text=0777",),
                            "page, odd": ("/api/odd",), "page, node": ("/api/node?node=gpu00011", "/api/history?node=gpu00011"),
                            "page, rails": ("/api/rails",), "page, history": ("/api/history",)}.items():
            times[name] = []
            for _ in range(5):
                began = time.monotonic()
                for path in paths:
                    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                    c.request("GET", path)
                    r = c.getresponse()
                    r.read()
                    assert r.status == 200, (path, r.status)
                    c.close()
                times[name].append(time.monotonic() - began)
    finally:
        server.terminate()
        server.wait()
    return times


def measure(peerpath, places, plan, tmp):
    missed = []
    spent = ingest(peerpath, places, plan, tmp)
    total = plan.nodes * plan.results
    answers = {}
    for name, where in places.items():
        wall, cpu = spent[name]
        print(f"{name}: {total} results in {wall:.1f} s: {total / wall:.0f} results/s; {total / cpu:.0f} a CPU second of the program")
        drift = []
        for _ in range(5):
            text, took, _ = run(peerpath, where, "odd", "-j")
            drift.append(took)
        answers[name] = text
        print(f"  drift: {slowest(drift)}, {len(json.loads(text)['odd'])} odd ones of {json.loads(text)['total']}")
        pages = page(peerpath, where)
        for what, times in pages.items():
            print(f"  {what}: {slowest(times)}")
        for what, good in {"ingest": total / wall >= BOUNDS["ingest"], "drift": max(drift) <= BOUNDS["drift"],
                           "page": max(pages["page"]) <= BOUNDS["page"]}.items():
            if not good:
                missed.append(f"{name} {what}")
        if isinstance(where, pathlib.Path):
            print(f"  {where.stat().st_size / 1e6:.0f} MB")
    if len(set(answers.values())) > 1:
        sys.exit("the engines do not answer alike")
    print("missed: " + ", ".join(missed) if missed else "all bounds kept")
    return 1 if missed else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("peerpath")
    p.add_argument("--nodes", type=int, default=10000)
    p.add_argument("--results", type=int, default=30)
    p.add_argument("--engine", choices=("sqlite", "postgresql", "both"), default="both")
    p.add_argument("--dir", help="where databases and made results go")
    args = p.parse_args()
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="ppfleet.", dir=args.dir))
    tmp.chmod(0o755)
    plan = make_fleet.Plan(args.nodes, args.results)
    places, server = {}, None
    print(f"{args.nodes} nodes x {args.results} results, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    try:
        if args.engine != "postgresql":
            places["SQLite"] = tmp / "fleet.db"
        if args.engine != "sqlite":
            server = postgres.Server(where=str(tmp / "pg")) if (tmp / "pg").mkdir() is None else None
            server.start()
            places["PostgreSQL"] = server.create("fleet")
        return measure(os.path.abspath(args.peerpath), places, plan, tmp)
    except postgres.Absent as why:
        print(f"skipped: {why}")
        return 77
    finally:
        if server:
            server.__exit__()
        shutil.rmtree(tmp, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
