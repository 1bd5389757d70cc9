#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath fleet and history as a user has them: fleet.py PEERPATH ROOT PART

    add       files of every kind, damaged ones among them; nothing twice, nothing half
    engines   SQLite and PostgreSQL: the same faults found, the same bytes of JSON
    disk      a full disk: a clear error, and what was there before is there
    server    the server stopped in the middle, and back: nothing lost, nothing doubled
    together  ingests of the same files at once
    prune     old results go: the answers stay, and are those of a fleet that only has the rest
    moved     a database that is deleted, moved away or replaced under the server
    words     what is no verdict, no database, no word; a pipe; what a failure says
    silent    who was not heard from, and why a verdict is what it is
    terminal  every answer fits 80 columns, and breaks no word
    push      HTTP: what must be refused, and what goes in
    curl      the lines of the documentation by which a node pushes
    page      the page in a headless Chromium, at 1440 and 390 pixels; SHOTS=DIR keeps pictures
"""
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

PEERPATH, ROOT, PART = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/fixtures")]
import chromium  # noqa: E402
import make_fleet  # noqa: E402
import postgres  # noqa: E402

NODES, RESULTS = 120, 6
TOKEN = "0123456789abcdef0123456789abcdef"


def peerpath(*args, database=None, code=0, env=None, **kw):
    e = {k: v for k, v in os.environ.items() if not k.startswith("PEERPATH_DATABASE")}
    if database:
        e["PEERPATH_DATABASE"] = str(database)
    e.update(env or {})
    done = subprocess.run([PEERPATH, *map(str, args)], capture_output=True, text=True, env=e, timeout=240, check=False, **kw)
    if code is not None:
        assert done.returncode == code, f"{args}: {done.returncode}, not {code}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


def answer(*args, database, code=0):
    return json.loads(peerpath(*args, "-j", database=database, code=code).stdout)


def make(tmp, nodes=NODES, results=RESULTS):
    out = tmp / "results"
    out.mkdir()
    plan = make_fleet.Plan(nodes, results)
    make_fleet.write(plan, range(nodes), out)
    return plan, out


def bundle(tmp, name="node", faults=""):
    machine, path = tmp / f"{name}.machine", tmp / f"{name}.tar.zst"
    args = ["good2"] + (["--faults", faults] if faults else [])
    subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", *args, machine], check=True)
    peerpath("prove", "--replay", machine, "-o", path, code=None)
    assert path.exists()
    return path


def counts(database):
    """All that is kept, as one asks for it."""
    return {view: answer("fleet", view, database=database, code=None) for view in ("list", "classes", "odd", "rails")} | {
        "history": answer("history", database=database)}


def part_add(tmp):
    plan, out = make(tmp, 8, 4)
    db = tmp / "fleet.db"
    good = bundle(tmp)
    done = peerpath("fleet", "list", code=64)
    assert "which database?" in done.stderr and done.stderr.count("\n") == 1
    peerpath("fleet", "list", database=db, code=64)
    assert not db.exists(), "asking makes no database"

    r = answer("fleet", "add", out, good, database=db)
    assert (r["files"], r["results"], r["known"], r["failed"]) == (9, 33, 0, 0), r
    assert db.stat().st_mode & 0o777 == 0o640
    before = counts(db)
    assert before["list"]["total"] == 9
    r = answer("fleet", "add", out, good, database=db)
    assert (r["results"], r["known"]) == (0, 33), r
    # the same bundle unpacked is the same bundle
    unpacked = tmp / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", good, "-C", unpacked], check=True)
    assert answer("fleet", "add", unpacked, database=db)["known"] == 1
    assert counts(db) == before, "nothing counts twice"

    # Damaged ones among good ones: named, left out, the rest goes in.
    mixed = tmp / "mixed"
    mixed.mkdir()
    shutil.copytree(unpacked, mixed / "tampered", symlinks=True)
    facts = mixed / "tampered/facts.json"
    facts.write_text(facts.read_text().replace("6.8.0-60", "6.8.0-61"))
    shutil.copy(good, mixed / "cut.tar.zst")
    os.truncate(mixed / "cut.tar.zst", good.stat().st_size // 2)
    (mixed / "empty.json").write_text("")
    (mixed / "other.json").write_text('{"schema": "peerpath.topo/1"}')
    (mixed / "newer.json").write_text('{"schema": "peerpath.prove/9"}')
    (mixed / "deep.json").write_text("[" * 100000)
    ahead = make_fleet.prove(plan, 3, 0)
    ahead.update(started="2199-01-01T00:00:00Z", judged="2199-01-01T00:00:00Z")
    (mixed / "ahead.json").write_text(json.dumps(ahead))
    # A replay says no start; what it was judged at is a time like another.
    for name, judged in (("word", "yesterday"), ("later", "2199-01-01T00:00:00Z"), ("february", "2026-02-30T00:00:00Z"), ("never", None)):
        (mixed / f"{name}.json").write_text(json.dumps(make_fleet.prove(plan, 3, 0) | {"started": None, "judged": judged}))
    lines = list(make_fleet.results(make_fleet.Plan(20, 4), 15))
    (mixed / "half.jsonl").write_text("\n".join(lines[:2] + ['{"schema": "peerpath.prove/1"}'] + lines[2:]))
    (mixed / "good.jsonl").write_text("\n".join(make_fleet.results(make_fleet.Plan(20, 4), 18)))
    (mixed / "readme.txt").write_text("not a result")
    r = answer("fleet", "add", mixed, tmp / "none", database=db, code=65)
    left = {os.path.basename(x["file"]): x["why"] for x in r["left_out"]}
    assert set(left) == {"tampered", "cut.tar.zst", "empty.json", "other.json", "newer.json", "deep.json", "ahead.json", "half.jsonl", "none",
                         "word.json", "later.json", "february.json", "never.json"}, left
    assert "ahead of the clock" in left["ahead.json"], left
    assert "facts.json" in left["tampered"] and "line 3" in left["half.jsonl"] and "newer" in left["newer.json"], left
    assert (r["files"], r["results"]) == (1, 4), r
    hosts = {n["host"] for n in answer("fleet", "list", database=db)["nodes"]}
    assert make_fleet.host(18) in hosts and make_fleet.host(15) not in hosts, "half a file is nothing"

    # A replay of what was judged long ago is no news of its node.
    old = make_fleet.prove(plan, 3, 0) | {"started": None, "judged": "2025-01-02T03:04:05Z", "replayed": True, "verdict": "fail"}
    (tmp / "old.json").write_text(json.dumps(old))
    news = answer("fleet", "show", make_fleet.host(3), database=db)
    assert answer("fleet", "add", tmp / "old.json", database=db)["results"] == 1
    now = answer("fleet", "show", make_fleet.host(3), database=db)
    assert (now["verdict"], now["at"]) == (news["verdict"], news["at"]), (now, news)
    assert "2025-01-02T03:04:05Z" in {r["at"] for r in now["results"]}

    # What is damaged is found before the database is locked: it needs no writer to end.
    writer = sqlite3.connect(db, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    r = answer("fleet", "add", mixed / "half.jsonl", mixed / "deep.json", database=db, code=65)
    assert r["failed"] == 2 and "line 3" in r["left_out"][0]["why"], r
    writer.execute("ROLLBACK")
    writer.close()

    # What was simulated is told apart, whatever else is asked.
    sim = json.dumps(make_fleet.prove(plan, 3, 9, simulated=True))
    (tmp / "sim.json").write_text(sim.replace('"verdict": "pass"', '"verdict": "fail"'))
    measured = counts(db)
    assert answer("fleet", "add", tmp / "sim.json", ROOT / "docs/results/bench-h200-cuda.json", database=db)["results"] == 2
    after = counts(db)
    assert after == measured, "a simulation changed what was measured"
    assert [n["host"] for n in answer("fleet", "list", "--simulated", database=db)["nodes"] if n["verdict"] == "fail"] == [make_fleet.host(3)]
    assert answer("history", "--simulated", database=db)["gains"], "and is shown when asked for"

    # A node is its parts: another name, one GPU replaced, and it is the same.
    doc = make_fleet.prove(plan, 2, 20)
    doc["node"]["host"] = "renamed"
    doc["node"]["facts"][13]["value"] = "GPU-ffffffff-1111-4222-a333-444444444444"
    (tmp / "renamed.json").write_text(json.dumps(doc))
    answer("fleet", "add", tmp / "renamed.json", database=db)
    ids = {n["host"]: n["node"] for n in measured["list"]["nodes"]}
    now = {n["host"]: n["node"] for n in answer("fleet", "list", database=db)["nodes"]}
    assert now["renamed"] == ids[make_fleet.host(2)] and make_fleet.host(2) not in now
    assert answer("fleet", "show", "GPU-ffffffff-1111-4222-a333-444444444444", database=db)["host"] == "renamed"
    peerpath("fleet", "show", "nobody", database=db, code=64)
    peerpath("fleet", "shwo", database=db, code=64)
    (tmp / "text.db").write_text("no database\n" * 1000)
    peerpath("fleet", "list", database=tmp / "text.db", code=65)


CANARY = """[workload]
name = made
[run]
repeats = 5
[metric speed]
pattern = tokens/s: ([0-9.]+)
direction = higher
margin = 5%
unit = tokens/s
"""


def application(tmp, plan):
    """Results of prove whose gate 4 ran, and the comparison alone: what the program itself measured and compared."""
    (tmp / "c.ini").write_text(CANARY)
    for name, speed in (("before", 100), ("after", 120)):
        (tmp / "speed").write_text(f"tokens/s: {speed}\n")
        trial = json.loads(peerpath("canary", "-f", "c.ini", "-j", "--", "cat", "speed", cwd=tmp, code=0).stdout)
        trial["nodes"][0]["topology_class"] = "c1"  # of a machine without GPUs it is not known
        (tmp / f"{name}.json").write_text(json.dumps(trial))
    comparison = json.loads(peerpath("compare", "before.json", "after.json", "-j", cwd=tmp, code=None).stdout)
    assert comparison["alike"] and comparison["metrics"][0]["change"] == "better", comparison
    (tmp / "comparison.json").write_text(json.dumps(comparison))
    inner = {"gate": {"verdict": comparison["verdict"]}, "canary": trial, "comparison": comparison}
    docs = {"four": make_fleet.prove(plan, 3, 40), "alone": make_fleet.prove(plan, 4, 40), "none": make_fleet.prove(plan, 5, 40),
            "soft": make_fleet.prove(plan, 6, 40), "bad": make_fleet.prove(plan, 7, 40), "worse": make_fleet.prove(plan, 8, 40)}
    docs["four"]["application"] = inner
    docs["alone"]["application"] = {"gate": inner["gate"], "canary": trial}
    docs["none"]["application"] = {"not_measured": "no workload was measured"}
    docs["soft"]["application"] = {**inner, "canary": {**trial, "simulated": True}}
    docs["bad"]["application"] = {**inner, "canary": {**trial, "runs": "five"}}
    docs["worse"]["application"] = {**inner, "comparison": {**comparison, "metrics": [{"metric": 7}]}}
    for name, doc in docs.items():
        for part in ("canary", "comparison"):
            doc["application"][part] = {k: v for k, v in doc["application"].get(part, {}).items() if k not in ("schema", "version")} or None
        (tmp / f"{name}.json").write_text(json.dumps(doc))
    return [tmp / f"{name}.json" for name in docs], tmp / "comparison.json"


def gains_of_application(tmp, plan, databases):
    """What gate 4 measured is a figure of its node, what it compared is a gain: as of the documents of canary and compare."""
    files, alone = application(tmp, plan)
    peerpath("fleet", "add", alone, database=tmp / "alone.db")
    expected = answer("history", "--what", "canary speed", database=tmp / "alone.db")["gains"]
    assert len(expected) == 1 and expected[0]["median_ratio"] == 1.2 and expected[0]["last_with"] == 120, expected
    kept = ("what", "unit", "way", "against", "size_bytes", "measured", "proven", "median_ratio", "last_with", "last_without", "better")
    for where in databases:
        r = answer("fleet", "add", *files, database=where, code=65)
        left = {os.path.basename(x["file"]): x["why"] for x in r["left_out"]}
        assert set(left) == {"bad.json", "worse.json"} and "runs" in left["bad.json"] and "metric" in left["worse.json"], left
        gains = answer("history", "--what", "canary speed", database=where)["gains"]
        assert [[g[k] for k in kept] for g in gains] == [[g[k] for k in kept] for g in expected], (gains, expected)
        # Of the node and no other, of this wiring and software.
        assert gains[0]["topology"] == make_fleet.digest("wiring", plan.wiring(3)), gains
        assert gains[0]["software"] == make_fleet.software(plan, 3, 40), gains
        for i, n in ((3, 1), (4, 1), (5, 0), (6, 0)):
            figures = [f["value"] for f in answer("history", make_fleet.host(i), database=where)["figures"] if f["what"] == "canary speed"]
            assert figures == [120] * n, (i, figures)


def part_engines(tmp):
    plan, out = make(tmp)
    db = tmp / "fleet.db"
    good = ROOT / "tests/fixtures/machines/h200-2gpu.tar.zst"
    with postgres.Server() as server:
        url = server.create("fleet")
        for where in (db, url):
            r = answer("fleet", "add", out, good, database=where)
            assert (r["results"], r["known"], r["failed"]) == (NODES * RESULTS + 1, 0, 0), r
        asks = [("fleet", v) for v in ("list", "classes", "odd", "rails")]
        asks += [("fleet", "list", "GPU0001", "--limit", "7"), ("fleet", "list", "--verdict", "fail"),
                 ("fleet", "list", "--module", "proprietary"), ("fleet", "list", "_%'"),
                 ("fleet", "show", "gpu00042"), ("fleet", "diff", "gpu00011", "gpu00007"), ("history",),
                 ("history", "gpu00011"), ("history", "--what", "busbw"), ("fleet", "show", "GPU-71c53c3d-a0ff-1cd3-c544-b8d52ecba287")]
        for ask in asks:
            one, two = (peerpath(*ask, "-j", database=w, code=None) for w in (db, url))
            assert one.returncode == two.returncode and one.stdout == two.stdout, f"{ask} differ"
            assert json.loads(one.stdout)["schema"]
        # The planted faults, and nothing else.
        odd = answer("fleet", "odd", database=url, code=1)["odd"]
        found = {}
        for o in odd:
            found.setdefault(o["what"], set()).add(o["host"])
        names = lambda numbers: {make_fleet.host(i) for i in numbers}  # noqa: E731
        assert found["software"] == names(plan.drifted() + plan.other_module()), found
        assert found["module"] == names(plan.other_module()), found
        assert found["verdict"] == names(plan.failed()), found
        assert found["wiring"] == names([7]) | {"node-8c0497"}, found  # two GPUs where others have eight
        one = next(o for o in odd if o["host"] == make_fleet.host(11))
        assert one["since"] == make_fleet.when(make_fleet.START + RESULTS // 2 * make_fleet.DAY + 11), one
        assert one["differs"] == "kernel.release: 6.8.0-71-generic here, 6.8.0-60-generic there", one
        slow = {(r["topology"], r["rail"]) for r in answer("fleet", "rails", database=url, code=1)["rails"] if r["slow_everywhere"]}
        assert slow == {(make_fleet.digest("wiring", "one"), 3)}, slow
        classes = answer("fleet", "classes", database=url)
        assert sum(c["nodes"] for c in classes["classes"]) == classes["total"] == NODES + 1
        assert [m["flavours"] for m in classes["mixed"]] == ["open 94, proprietary 1"], classes["mixed"]
        gain = answer("history", "--what", "busbw", database=url)["gains"]
        assert gain and all(abs(g["median_ratio"] - 3.75) < 1e-9 and g["way"] == "dmabuf" for g in gain), gain
        gains_of_application(tmp, plan, (db, url))
        ask = ("history", "--what", "canary speed", "-j")
        assert peerpath(*ask, database=db).stdout == peerpath(*ask, database=url).stdout, "gate 4 differs"
        print(f"{len(asks)} answers are equal bytes; every planted fault and no other")


def full_disk(tmp):
    """Inside a mount namespace of its own."""
    plan = make_fleet.Plan(400, 4)
    small = tmp / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", small], check=True)
    out = tmp / "many"
    out.mkdir()
    make_fleet.write(plan, range(400), out)
    db = small / "fleet.db"
    first = sorted(out.iterdir())[:5]
    answer("fleet", "add", *first, database=db)
    before = answer("fleet", "list", database=db)["total"]
    (small / "ballast").write_bytes(b"x" * (1 << 20))
    done = peerpath("fleet", "add", "-j", out, database=db, code=70)
    assert "disk is full" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    r = json.loads(done.stdout)
    (small / "ballast").unlink()
    after = answer("fleet", "list", "--limit", 1000, database=db)
    # The peer of the last one is known by its GPUs.
    assert after["total"] == len({n["node"] for n in after["nodes"]}) == r["files"] + 1 >= before, (after["total"], r)
    assert r["known"] == 20 and r["results"] == 4 * (r["files"] - 5), r
    # Bigger again: the same command does the rest.
    subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
    r = answer("fleet", "add", out, database=db)
    assert r["known"] + r["results"] == 1600 and r["failed"] == 0, r
    assert answer("fleet", "list", database=db)["total"] == 400
    print(f"full after {after['total']} of 400 files; whole files only; then the rest")


def part_disk(tmp):
    if os.environ.get("FLEET_INSIDE"):
        full_disk(pathlib.Path(os.environ["FLEET_INSIDE"]))
        return
    probe = ["unshare", "-m"] + ([] if os.geteuid() == 0 else ["-r"])
    if subprocess.run(probe + ["true"], check=False, stderr=subprocess.DEVNULL).returncode:
        print("skipped: no mount namespace here")
        sys.exit(77)
    inside = dict(os.environ, FLEET_INSIDE=str(tmp))
    done = subprocess.run(probe + [sys.executable, *sys.argv], env=inside, check=False)
    assert done.returncode == 0


def part_server(tmp):
    _, out = make(tmp, 60, 4)
    with postgres.Server("-c fsync=off") as server:
        url = server.create("fleet")
        files = sorted(out.iterdir())
        answer("fleet", "add", *files[:10], database=url)
        reader = subprocess.Popen([PEERPATH, "fleet", "add", "-j", out], env=dict(os.environ, PEERPATH_DATABASE=url),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while answer("fleet", "list", database=url)["total"] < 15 and time.monotonic() < deadline:
            pass
        server.stop("immediate")
        text, errors = reader.communicate(timeout=120)
        if reader.returncode == 0:
            print("it was done before the server stopped")
        else:
            assert reader.returncode == 70 and errors.count("\n") == 1 and "PostgreSQL" in errors, (reader.returncode, errors)
            told = json.loads(text)["files"]
        peerpath("fleet", "list", database=url, code=70)
        server.start()
        if reader.returncode:
            kept = answer("fleet", "list", database=url)["total"]
            # One more when the server took the last commit and could not say so.
            assert max(told, 10) <= kept <= max(told + 1, 10), (told, kept)
        r = answer("fleet", "add", out, database=url)
        assert r["known"] + r["results"] == 240 and r["failed"] == 0, r
        assert answer("fleet", "list", database=url)["total"] == 60
        # One that is stopped, not gone, does not hold the program for ever.
        os.kill(server.postmaster(), signal.SIGSTOP)
        try:
            done = peerpath("fleet", "list", database=url, code=70)
            assert "did not answer in 5 s" in done.stderr, done.stderr
        finally:
            os.kill(server.postmaster(), signal.SIGCONT)


def part_first(tmp):
    """Four that find no database each make it, or find it made."""
    _, out = make(tmp, 1, 2)
    for i in range(25):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            all_of = list(pool.map(lambda _: answer("fleet", "add", out, database=tmp / f"{i}.db"), range(4)))
        assert sum(r["results"] for r in all_of) == 2, all_of


def part_together(tmp):
    plan, out = make(tmp, 40, 4)
    one = tmp / "one.db"
    answer("fleet", "add", out, database=one)
    places = [tmp / "many.db"]
    with postgres.Server("-c fsync=off") as server:
        places.append(server.create("fleet"))
        for where in places:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                all_of = list(pool.map(lambda _: answer("fleet", "add", out, database=where), range(4)))
            assert sum(r["results"] for r in all_of) == 160, all_of
            assert sum(r["known"] for r in all_of) == 480, all_of
            now, then = counts(where), counts(one)
            for view, what in then.items():
                assert now[view] == what, f"{view}: not what one after the other gives: {now[view]}"[:3000]
    # Results that come late, in any order, tell the same in the end.
    lines = [line for f in sorted(out.iterdir()) for line in f.read_text().splitlines()]
    random.Random(9).shuffle(lines)
    (tmp / "shuffled.jsonl").write_text("\n".join(lines))
    other = tmp / "shuffled.db"
    answer("fleet", "add", tmp / "shuffled.jsonl", database=other)
    ids = ("node", "one_of_them")  # of the first document that told of a node's parts
    bare = lambda x: ({k: bare(v) for k, v in x.items() if k not in ids} if isinstance(x, dict) else  # noqa: E731
                      [bare(v) for v in x] if isinstance(x, list) else x)
    key = lambda x: json.dumps(x, sort_keys=True)  # noqa: E731
    for view, what in counts(one).items():
        now = bare(counts(other)[view])
        what = bare(what)
        for k in now:
            if isinstance(now[k], list):
                assert sorted(now[k], key=key) == sorted(what[k], key=key), f"{view} {k}"
            else:
                assert now[k] == what[k], f"{view} {k}"
    del plan


def with_kernel(line, name):
    doc = json.loads(line)
    for f in doc.get("node", {}).get("facts", []):
        f["value"] = {"kernel.release": name, "digest.software": make_fleet.digest(name)}.get(f["fact"], f["value"])
    return json.dumps(doc)


def prune_inputs(tmp):
    """Files of results: those given first, late ones, and some that come while old ones go."""
    plan = make_fleet.Plan(60, 22)
    first, late, more = [], [], []
    for i in range(60):
        lines = list(make_fleet.results(plan, i))
        if i == 9:  # silent since
            lines = lines[:4]
        if i == 20:  # flaps
            lines = [x.replace('"verdict":"pass"', '"verdict":"fail"') if k % 2 else x for k, x in enumerate(lines)]
        if i in (25, 27):  # went and came back, so that what is now tells nothing of what was
            kernel = {27: lambda k: "other" if 5 <= k < 16 else "", 25: lambda k: "other" if 16 <= k < 19 else "third" if k == 19 else ""}[i]
            lines = [with_kernel(x, kernel(k)) if kernel(k) else x for k, x in enumerate(lines)]
        for k, line in enumerate(lines):
            (late if k == 19 and i % 3 == 0 else more if k == 20 and i % 7 == 1 else first).append(line)
    # Jobs, which do not say what their nodes were: long ago, and one that is told of late.
    first.append(json.dumps(make_fleet.nccl_run(plan, 27, 8)))
    job = make_fleet.nccl_run(plan, 25, 18)
    for r in job["runs"]:
        r["started_ns"] += 18 * 3600 * 10**9
    late.append(json.dumps(job))
    # The last figures of a rail, and a node that is known by another's result alone: both long ago, without gains.
    for k, rungs in ((1, {}), (2, {"host": "another way"})):
        doc = make_fleet.prove(plan, 9, k, with_memory=True)
        memory = doc["memory"]
        memory["transfer"]["figures"] = [dict(f, rung=rungs[f["rung"]], to_host_ratio=None) for f in memory["transfer"]["figures"] if f["rung"] in rungs]
        if not rungs:
            memory["nodes"][1]["host"] = "once"
            for p in memory["pairs"]:
                p["ends"][1]["gpu_uuid"] = make_fleet.uuid(1000, p["rail"])
        first.append(json.dumps(doc))
    for k in (0, 5, 7):
        first.append(json.dumps(make_fleet.prove(plan, 4, k, simulated=True)))
    for name, lines in (("first", first), ("late", late), ("more", more)):
        (tmp / f"{name}.jsonl").write_text("\n".join(lines))
    return plan, first, late, more


def at_of(line):
    doc = json.loads(line)
    return doc.get("started") or make_fleet.when(doc["runs"][0]["started_ns"] // 10**9)


def part_prune(tmp):
    plan, first, late, more = prune_inputs(tmp)
    lines = first + late + more
    cut = make_fleet.START + 18 * make_fleet.DAY + make_fleet.DAY // 2  # between two results of each node
    age = f"{round((time.time() - cut) / 3600)}h"
    views = lambda w: {v: x for v, x in counts(w).items() if v != "history"} | {  # noqa: E731
        "simulated": answer("fleet", "list", "--simulated", database=w), "gains": answer("history", database=w)}
    whole = tmp / "whole.db"
    answer("fleet", "add", tmp / "first.jsonl", database=whole)
    before = views(whole)
    answer("fleet", "add", tmp / "late.jsonl", tmp / "more.jsonl", database=whole)
    after = views(whole)
    assert before != after
    told, left = [], []
    with postgres.Server("-c fsync=off") as server:
        for where in (tmp / "fleet.db", server.create("fleet")):
            answer("fleet", "add", tmp / "first.jsonl", database=where)
            prune = lambda *how, **kw: answer("fleet", "prune", "--older-than", age, *how, database=where, **kw)  # noqa: E731, B023
            dry = prune("--dry-run")
            assert views(where) == before and dry["dry_run"], "a dry run changes nothing"
            done = prune()
            for what in ("results", "rows", "figures", "gains", "kept"):
                assert done[what] == dry[what], (what, dry, done)
            assert done["results"] > 800 and done["figures"] > 2000 and done["gains"] == 0 and done["facts"] == 0, done
            assert views(where) == before, "what a node is and since when"
            one = next(o for o in answer("fleet", "odd", database=where, code=1)["odd"] if o["host"] == make_fleet.host(11))
            assert one["since"] == make_fleet.when(make_fleet.START + 11 * make_fleet.DAY + 11), "which was long before"
            again = prune()
            assert again["results"] == again["figures"] == 0 and again["kept"] == done["kept"], again
            told.append({k: v for k, v in done.items() if k not in ("file_bytes", "free_bytes", "before")})
            shown = answer("fleet", "show", make_fleet.host(9), database=where)["results"]
            silent = make_fleet.when(make_fleet.START + 3 * make_fleet.DAY + 9)
            assert silent in {r["at"] for r in shown} and len({r["at"] for r in shown}) < 10, "the newest of its own"
            # Late ones, and one that comes while others are pruned and asked.
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                jobs = [pool.submit(answer, "fleet", "add", tmp / f"{n}.jsonl", database=where) for n in ("late", "more")] + [pool.submit(prune)]
                assert sum(j.result()["results"] for j in jobs[:2]) == len(late) + len(more)
            assert views(where) == after, "and late results tell what they would have told"
            for bad in (("--older-than", "90"), ("--older-than", "0d"), ("--older-than", "d"), ("--older-than", "9999999999999d"), (),
                        ("--older-than", "90d", "x")):
                peerpath("fleet", "prune", *bad, database=where, code=64)
            assert views(where) == after
        assert told[0] == told[1], f"the engines differ: {told}"
        assert "PostgreSQL" in peerpath("fleet", "prune", "--older-than", age, "--compact", database=where, code=64).stderr
        # A fleet that was only ever given the rest.
        db = sqlite3.connect(tmp / "fleet.db")
        digests = {d for (d,) in db.execute("SELECT digest FROM documents")}
        rest = [line for line in lines if hashlib.sha256((line + "\n").encode()).hexdigest() in digests or
                hashlib.sha256(line.encode()).hexdigest() in digests]
        assert len(rest) == len(digests) < len(lines) * 0.4, (len(rest), len(digests), len(lines))
        new = [line for line in lines if at_of(line) >= make_fleet.when(cut)]
        assert set(new) <= set(rest), "nothing newer went"
        (tmp / "rest.jsonl").write_text("\n".join(rest))
        for where in (tmp / "rest.db", server.create("rest")):
            assert answer("fleet", "add", tmp / "rest.jsonl", database=where)["results"] == len(rest)
            assert views(where) == after
        # Gains when asked; then the file gives back what is free in it.
        for where in (tmp / "fleet.db", server.create("fleet2")):
            if where != tmp / "fleet.db":
                answer("fleet", "add", *(tmp / f"{n}.jsonl" for n in ("first", "late", "more")), database=where)
                answer("fleet", "prune", "--older-than", age, database=where)
            done = answer("fleet", "prune", "--older-than", age, "--gains", database=where)
            left.append(answer("history", database=where))
            assert done["gains"] > 200 and {k: v for k, v in views(where).items() if k != "gains"} == {k: v for k, v in after.items() if k != "gains"}
            assert all(g["last_at"] >= make_fleet.when(cut) for g in left[-1]["gains"]), left[-1]
        assert left[0] == left[1]
        size = (tmp / "fleet.db").stat().st_size
        done = answer("fleet", "prune", "--older-than", age, "--gains", "--compact", database=tmp / "fleet.db")
        assert done["free_bytes"] == 0 and done["file_bytes"] == (tmp / "fleet.db").stat().st_size < size, (done, size)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert {k: v for k, v in views(tmp / "fleet.db").items() if k != "gains"} == {k: v for k, v in after.items() if k != "gains"}
    # Facts and pictures that nobody has any more: of a node that had six kernels and two drawings.
    # The first stays (its wiring is that old), and the last two (its software was another before).
    one = tmp / "one.db"
    (tmp / "two").mkdir()
    answer("fleet", "add", bundle(tmp), database=one)
    answer("fleet", "add", bundle(tmp / "two", faults="acs-redirect"), database=one)
    for k in range(6):
        doc = make_fleet.prove(plan, 1, k)
        doc["node"]["facts"][0]["value"] = f"6.8.0-{k}"
        for f in doc["node"]["facts"]:
            f["value"] = make_fleet.digest(k) if f["fact"] == "digest.software" else f["value"]
        (tmp / "kernel.json").write_text(json.dumps(doc))
        answer("fleet", "add", tmp / "kernel.json", database=one)
    db = sqlite3.connect(one)
    count = lambda what: db.execute(f"SELECT count(DISTINCT digest) FROM {what}").fetchone()[0]  # noqa: E731
    had = count("sets"), count("pictures")
    done = answer("fleet", "prune", "--older-than", age, database=one)
    assert done["results"] == 3 and (count("sets"), count("pictures")) == (had[0] - 3, 1) and had[1] == 2, (done, had)
    assert answer("fleet", "show", make_fleet.host(1), database=one)["facts"], "its facts are there"
    print(f"{told[0]['results']} of {len(lines)} results gone, {told[0]['kept']} old ones stay; both engines alike")


class Serving:
    def __init__(self, tmp, database, *args, token=True):
        self.token = tmp / "token"
        self.token.write_text(TOKEN + "\n")
        self.token.chmod(0o600)
        extra = ["--token-file", self.token] if token else []
        self.process = subprocess.Popen([PEERPATH, "fleet", "serve", "--port", "0", *map(str, extra), *args],
                                        env=dict(os.environ, PEERPATH_DATABASE=str(database)), stderr=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert "http://127.0.0.1:" in line, line
        self.url = line.split()[2]
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    def ask(self, method, path, body=None, headers=None, host="127.0.0.1"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        c.putheader("Host", host)
        for k, v in (headers or {}).items():
            c.putheader(k, v)
        if body is not None and "Content-Length" not in (headers or {}):
            c.putheader("Content-Length", str(len(body)))
        c.endheaders()
        if body:
            c.send(body)
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, data, r.headers

    def push(self, body, token=TOKEN, **headers):
        return self.ask("POST", "/push", body, {"Authorization": f"Bearer {token}", **headers})

    def memory(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1])
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        out, err = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, (self.process.returncode, err)


def part_push(tmp):
    plan, out = make(tmp, 4, 3)
    db = tmp / "fleet.db"
    good = bundle(tmp)
    one = make_fleet.prove(plan, 0, 0)
    # Refused before it listens: a token that others may read, a short one.
    loose = tmp / "loose"
    loose.write_text(TOKEN)
    loose.chmod(0o644)
    done = peerpath("fleet", "serve", "--token-file", loose, database=db, code=64)
    assert "chmod 600" in done.stderr and done.stderr.count("\n") == 1 and TOKEN not in done.stderr, done.stderr
    with Serving(tmp, db, "--max-push", "8M") as s:
        text = json.dumps(one).encode()
        for given in (None, "", "wrong", TOKEN[:-1], TOKEN + "0"):
            headers = {} if given is None else {"Authorization": f"Bearer {given}"}
            status, data, h = s.ask("POST", "/push", text, headers)
            assert status == 401 and h["WWW-Authenticate"] == "Bearer" and TOKEN.encode() not in data, (given, status)
        assert s.ask("POST", "/push", text, {"Authorization": TOKEN})[0] == 401
        before = s.memory()
        assert s.push(b"", **{"Content-Length": str(1 << 30)})[0] == 413, "a GiB, before any of it is sent"
        for bad in ("-1", "1x", "99999999999999999999999"):
            try:
                assert s.push(b"", **{"Content-Length": bad})[0] in (400, 411, 413), bad
            except (ConnectionError, http.client.BadStatusLine):
                pass
        assert s.ask("POST", "/push", b"5\r\nhello\r\n0\r\n\r\n", {"Authorization": f"Bearer {TOKEN}", "Transfer-Encoding": "chunked", "Content-Length": "0"})[0] in (400, 411, 422)
        assert s.memory() < before + 4096, "kB"
        for body in (b"", b"{}", b"[]", b"\x00" * 1000, b'{"schema":"peerpath.topo/1"}', b'{"schema":"peerpath.prove/2"}',
                     b"[" * 200000, good.read_bytes()[:-100], b"\x28\xb5\x2f\xfd" + os.urandom(5000)):
            status, data, _ = s.push(body)
            assert status == 422 and json.loads(data)["error"], (body[:20], status, data)
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/push/../api/odd", "/api/../push", "/.git/config",
                     "/api/nodes/", "/API/NODES", "/" + "a" * 5000):
            assert s.ask("GET", path)[0] == 404, path
        for method, path in (("GET", "/push"), ("PUT", "/push"), ("DELETE", "/api/nodes"), ("POST", "/"), ("OPTIONS", "/push"), ("TRACE", "/")):
            assert s.ask(method, path)[0] == 405, (method, path)
        for host in ("evil.example", "evil.example:80", "", "127.0.0.1.evil.example"):
            assert s.ask("GET", "/api/nodes", host=host)[0] in (400, 403), host
            assert s.ask("POST", "/push", text, {"Authorization": f"Bearer {TOKEN}"}, host=host)[0] in (400, 403), host
        assert not json.loads(s.ask("GET", "/api/nodes")[1])["nodes"], "nothing of that went in"

        status, data, _ = s.push(text)
        assert (status, json.loads(data)["results"]) == (200, 1)
        assert json.loads(s.push(text)[1]) == {"schema": "peerpath.fleet/1", "view": "push", "results": 0, "known": 1}
        assert json.loads(s.push(good.read_bytes())[1])["results"] == 1
        lines = (out / f"{make_fleet.host(1)}.jsonl").read_bytes()
        assert json.loads(s.push(lines)[1])["results"] == 3
        # The same answers as the command line's.
        for path, ask in (("/api/nodes", ("list",)), ("/api/odd", ("odd",)), ("/api/classes", ("classes",)), ("/api/rails", ("rails",)),
                          ("/api/node?node=gpu00001", ("show", "gpu00001")), ("/api/diff?a=gpu00000&b=gpu00001", ("diff", "gpu00000", "gpu00001"))):
            assert s.ask("GET", path)[1].decode() == peerpath("fleet", *ask, "-j", database=db, code=None).stdout, path
        status, svg, h = s.ask("GET", "/picture.svg?node=made-node")
        assert status == 200 and svg.startswith(b"<svg") or b"<svg" in svg[:200] and "default-src 'none'" in h["Content-Security-Policy"]
        assert s.ask("GET", "/picture.svg?node=gpu00000")[0] == 404
        assert s.ask("GET", "/api/node")[0] == 400 and s.ask("GET", "/api/node?node=nobody")[0] == 404
        status, page, h = s.ask("GET", "/")
        policy = h["Content-Security-Policy"]
        for tag, what in ((b"script", "script-src"), (b"style", "style-src")):
            inside = page.split(b"<" + tag + b">")[1].split(b"</" + tag + b">")[0]
            import base64
            assert f"{what} 'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode()}'" in policy, policy
        assert "unsafe" not in policy and "default-src 'none'" in policy and b"http" not in page.replace(b"http-equiv", b"")

        # Bounded connections: idle ones do not keep others out for ever, and slow ones end.
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(80)]
        slow = held[0]
        slow.sendall(b"POST /push HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\nContent-Length: 100000\r\n\r\n")
        began = time.monotonic()
        slow.settimeout(5)
        ended = False
        while not ended and time.monotonic() - began < 90:
            try:
                slow.sendall(b"x")
                time.sleep(0.5)
                slow.setblocking(False)
                ended = slow.recv(100) == b""
            except (BlockingIOError, TimeoutError):
                slow.settimeout(5)
            except OSError:
                ended = True
            else:
                slow.settimeout(5) if not ended else None
        assert ended, "a client that sends a byte now and then was never cut off"
        for h in held:
            h.close()
        assert s.ask("GET", "/api/nodes")[0] == 200
    with Serving(tmp, db, token=False) as s:
        assert s.ask("POST", "/push", b"{}", {"Authorization": "Bearer "})[0] == 401
        assert s.ask("GET", "/api/nodes", host="fleet.example")[0] == 403
    with Serving(tmp, db, "--host", "fleet.example") as s:
        assert s.ask("GET", "/api/nodes", host="fleet.example:443")[0] == 200


def part_curl(tmp):
    """As they are written, but for the server's name and where the header lies: what goes in, and what curl says of a refusal."""
    if not shutil.which("curl"):
        print("no curl here")
        sys.exit(77)
    lines = [line.strip() for page in ("docs/fleet.md", "man/peerpath-fleet.1.scd") for line in (ROOT / page).read_text().splitlines()
             if "curl -" in line and "/push" in line]
    assert len(lines) == 2, lines
    db, header, program = tmp / "fleet.db", tmp / "push.header", tmp / "bin"
    program.mkdir()
    (program / "peerpath").symlink_to(PEERPATH)
    bundle(tmp)

    def push(line, s, code, path="/push"):
        line = line.replace("https://fleet.example/push", f"http://127.0.0.1:{s.port}{path}").replace("http://127.0.0.1:18517/push", f"http://127.0.0.1:{s.port}{path}")
        line = line.replace("@/etc/peerpath/push.header", "@push.header")
        done = subprocess.run(["sh", "-c", line], cwd=tmp, capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "no_proxy": "*"})
        assert done.returncode == code, f"{line}: {done}"
        return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout

    with Serving(tmp, db) as s:
        for line in lines:
            header.write_text(f"Authorization: Bearer {TOKEN}\n")
            answered = push(line, s, 0)
            assert (answered["results"], answered["known"]) == (1, 0), answered
        # The very same again; without the token; what is no result.
        assert push(lines[1], s, 0)["known"] == 1
        before = counts(db)
        (tmp / "node.tar.zst").write_text("no bundle")
        assert push(lines[1], s, 22)["error"]
        header.write_text("Authorization: Bearer wrong\n")
        for line in lines:
            assert "Bearer" not in str(push(line, s, 22))
        assert counts(db) == before and before["list"]["total"] == 2, before["list"]


def part_words(tmp):
    plan, out = make(tmp, 2, 2)
    db = tmp / "fleet.db"
    one = (out / f"{make_fleet.host(0)}.jsonl").read_text()
    assert json.loads(peerpath("fleet", "add", "-j", "-", database=db, input=one).stdout)["results"] == 2
    refused = lambda *ask, code=64, **kw: (lambda e: (e, e.count("\n") == 1 or sys.exit(f"{ask}: {e!r}"))[0])(  # noqa: E731
        peerpath("fleet", *ask, database=db, code=code, **kw).stderr)
    assert "standard input" in refused("add", "-", code=65, input="{}")
    # words that are none, and options of another word: never an empty answer
    assert "degraded" in refused("list", "--verdict", "perfect")
    assert "digest" in refused("list", "--wiring", "zz") and "digest" in refused("list", "--software", "0g")
    assert "--verdict" in refused("odd", "--verdict", "fail") and "--port" in refused("add", "--port", "1", out)
    assert "classes, rails" in refused("frob") and "'list'" in refused("lsit")
    assert "--max-push" in refused("serve", "--max-push", "0") and "--host" in refused("serve", "--host", "bad host")
    assert "--silent-after" in refused("list", "--silent-after", "long")
    assert len(answer("fleet", "list", "--limit", "0", database=db)["nodes"]) == answer("fleet", "list", database=db)["total"]
    # a file is named once, and an empty one is empty
    (tmp / "empty.tar.zst").write_text("")
    (tmp / "cut.tar.zst").write_bytes(bundle(tmp).read_bytes()[:2000])
    assert ": empty," in refused("add", tmp / "empty.tar.zst", code=65)
    assert refused("add", tmp / "cut.tar.zst", code=65).count("cut.tar.zst") == 1
    # databases that are none: the cause, and the status of the man page
    where = tmp / "nowhere" / "fleet.db"
    failed = peerpath("fleet", "add", out, database=where, code=70).stderr
    assert str(where.parent) + "'" in failed and "No such file" in failed, failed
    failed = peerpath("fleet", "list", database="mysql://u:secret@h/x", code=64).stderr
    assert "mysql://" in failed and "secret" not in failed, failed
    with sqlite3.connect(tmp / "blank.db") as blank:
        blank.execute("PRAGMA user_version = 1")
    failed = peerpath("fleet", "list", database=tmp / "blank.db", code=65).stderr
    assert "no fleet's" in failed and failed.count("\n") == 1, failed
    if os.geteuid() == 0 and shutil.which("setpriv"):
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", PEERPATH, "fleet", "add", "--database", tmp / "no.db", out],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 70 and "Permission denied" in done.stderr, done
    with Serving(tmp, db) as s:
        for query in ("limit=x", "limit=-1", "offset=1e3", "verdict=perfect", "wiring=zz"):
            assert s.ask("GET", "/api/nodes?" + query)[0] == 400, query
        error = json.loads(s.push((tmp / "cut.tar.zst").read_bytes())[1])["error"]
        assert "/proc" not in error and "cut" in error, error
    serving = subprocess.Popen([PEERPATH, "fleet", "serve", "--listen", "0.0.0.0", "--port", "0", "--database", db], stderr=subprocess.PIPE, text=True)
    assert "--host" in serving.stderr.readline()
    serving.send_signal(signal.SIGINT)
    assert serving.wait(30) == 0, "told to end is no failure"


def part_silent(tmp):
    """Against the clock of this machine: heard from an hour ago, four days ago, long ago."""
    plan = make_fleet.Plan(5, 1)
    db, now = tmp / "fleet.db", int(time.time())
    docs = []
    for i, hours in enumerate((1, 1, 1, 96, 24 * 30)):
        doc = make_fleet.prove(plan, i, 0) | {"started": make_fleet.when(now - hours * 3600), "topology_class": "ab" * 32}
        docs.append(doc)
    docs[1]["verdict"] = docs[1]["gates"][1]["verdict"] = "fail"
    docs[1]["gates"][1]["claim"] = "ACS redirects " + "\u00e9" * 200
    (tmp / "all.jsonl").write_text("".join(json.dumps(d) + "\n" for d in docs))
    answer("fleet", "add", tmp / "all.jsonl", database=db)
    silent = lambda *more: sorted(n["host"] for n in answer("fleet", "list", *more, database=db)["nodes"] if n["silent"])  # noqa: E731
    host = make_fleet.host
    assert silent() == [host(3), host(4)]
    assert silent("--silent-after", "5d") == [host(4)]
    assert silent("--silent-after", "0") == []
    r = answer("fleet", "list", database=db)
    assert r["verdicts"] == {"fail": 1, "unknown": 0, "degraded": 0, "pass": 4, "none": 0} and r["silent"] == 2, r
    assert r["nodes"][0]["host"] == host(1), "failures first"
    text = peerpath("fleet", "list", database=db).stdout
    assert text.count("silent (pass)") == 2, text
    odd = answer("fleet", "odd", database=db, code=1)["odd"]
    assert sorted(o["host"] for o in odd if o["what"] == "silent") == [host(3), host(4)], odd
    assert not [o for o in answer("fleet", "odd", "--silent-after", "0", database=db, code=1)["odd"] if o["what"] == "silent"]
    why = next(o["differs"] for o in odd if o["what"] == "verdict")
    assert why.startswith("prerequisites: ACS redirects \u00e9") and why.endswith("\u00e9...") and len(why) < 180, why


def part_terminal(tmp):
    import terminal

    _, out = make(tmp, 30, 4)
    db = tmp / "fleet.db"
    answer("fleet", "add", out, bundle(tmp, faults="acs-redirect"), database=db)
    told = {}
    for ask in (("fleet", "list"), ("fleet", "odd"), ("fleet", "classes"), ("fleet", "rails"), ("fleet", "show", "gpu00011"), ("history",),
                ("fleet", "diff", "gpu00007", "gpu00011"), ("history", "gpu00011")):
        for columns in (80, 200):
            text = terminal.on_terminal(*ask, "--database", str(db), "--color", "never", columns=columns)
            assert len(text) > 100, text
            for line in text.splitlines():
                assert len(line) <= columns, f"{ask}: {len(line)} columns: {line}"
            told[ask, columns] = text
    head = told[("fleet", "list"), 200].splitlines()[0].split()
    assert head == ["NODE", "NAME", "VERDICT", "SINCE", "MODULE", "WIRING", "SOFTWARE", "GPUS", "SEEN"], head
    assert told[("fleet", "list"), 80].splitlines()[0].split() == ["NAME", "VERDICT", "SINCE", "WIRING", "SEEN"]
    assert "6.8.0-71-generic" in told[("fleet", "odd"), 80]
    assert "WIRING" in told[("history",), 80].splitlines()[0]


def part_moved(tmp):
    """What was answered with 200 is in the file that the path names."""
    plan, _ = make(tmp, 1, 1)
    place = tmp / "place"
    place.mkdir()
    db, other = place / "fleet.db", tmp / "other.db"
    docs = [json.dumps(make_fleet.prove(plan, 0, k)).encode() for k in range(6)]
    wal = lambda p: [p.with_name(p.name + end) for end in ("", "-wal", "-shm")]  # noqa: E731
    seen = lambda s: json.loads(s.ask("GET", "/api/nodes")[1])["total"]  # noqa: E731
    kept = lambda p: len(answer("fleet", "show", "gpu00000", database=p)["results"])  # noqa: E731
    with Serving(tmp, db) as s:
        def push(k):
            status, data, _ = s.push(docs[k])
            assert status == 200 and json.loads(data)["results"] == 1, (k, status, data)

        push(0)
        push(1)
        # deleted: what comes then is in the new file
        for f in wal(db):
            f.unlink(missing_ok=True)
        assert seen(s) == 0
        push(2)
        assert kept(db) == seen(s) == 1
        # moved away, without the files beside it: each has its own, and nothing of the other's
        db.rename(other)
        push(3)
        push(4)
        assert kept(db) == 2
        assert kept(other) == 1
        # replaced: the same result is new to the old file, since it is another one
        for f in wal(db):
            f.unlink(missing_ok=True)
        other.rename(db)
        push(3)
        assert kept(db) == 2
        assert s.ask("GET", "/healthz", host="10.0.0.7")[:2] == (200, b"ok\n")
        # nowhere to make one: an error with the reason, and all is well when it is there again
        away = tmp / "away"
        place.rename(away)
        for status, data, _ in (s.push(docs[5]), s.ask("GET", "/api/nodes"), s.ask("GET", "/healthz")):
            assert status == 503 and str(db) in json.loads(data)["error"], (status, data)
        away.rename(place)
        push(5)
        assert kept(db) == 3
        # somebody else's
        for f in wal(db):
            f.unlink(missing_ok=True)
        db.write_text("no database\n" * 1000)
        for _ in range(2):
            for status, data, _ in (s.push(docs[0]), s.ask("GET", "/api/odd"), s.ask("GET", "/healthz")):
                assert status == 503 and json.loads(data)["error"], (status, data)
        assert db.read_text().startswith("no database")


HOSTILE = "<img src=x onerror=alert(1)>\"'&<script>document.title='owned'</script>"


def part_page(tmp):
    plan, out = make(tmp, 260, 3)
    db = tmp / "fleet.db"
    good = bundle(tmp, faults="acs-redirect")
    doc = make_fleet.prove(plan, 0, 5)
    doc["node"]["host"] = HOSTILE
    doc["gates"][1]["claim"] = HOSTILE
    for f in doc["node"]["facts"]:
        f["value"] = HOSTILE if f["fact"] == "os.id" else f["value"]
    (tmp / "hostile.json").write_text(json.dumps(doc))
    answer("fleet", "add", out, good, tmp / "hostile.json", database=db)
    shots = pathlib.Path(os.environ.get("SHOTS", tmp / "shots"))
    shots.mkdir(exist_ok=True)
    with Serving(tmp, db) as s, chromium.Browser() as browser:
        hostile = next(n["node"] for n in json.loads(s.ask("GET", "/api/nodes?limit=1000")[1])["nodes"] if n["host"].startswith("<img"))
        views = {"nodes": "", "odd": "#/odd", "classes": "#/classes", "rails": "#/rails", "history": "#/history",
                 "node": "#/node/made-node", "hostile": f"#/node/{hostile}", "diff": "#/diff/gpu00007/gpu00011", "nobody": "#/node/nobody"}
        for width, height, dark in ((1440, 900, False), (390, 844, True), (390, 844, False), (1440, 900, True)):
            for name, where in views.items():
                page = browser.page(width, height, dark)
                page.open(s.url + where)
                page.wait("document.body && document.body.dataset.shown")
                page.wait("[...document.images].every((i) => i.complete)")
                if name == "nobody":  # a 404 of ours is an entry of the log's, and said on the page
                    page.errors = [e for e in page.errors if "404" not in e]
                    page.wait("document.querySelector('[role=alert]')")
                assert not page.errors, (name, page.errors)
                elsewhere = [u for u in page.requests if not u.startswith(s.url) and not u.startswith("data:")]
                assert not elsewhere, elsewhere
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name}: wider than {width}"
                assert page.evaluate("document.title") == "peerpath fleet"
                assert page.evaluate("document.querySelectorAll('script').length") == 1
                colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (colour == "rgb(18, 22, 28)") == dark, colour
                if name == "node":
                    natural = page.evaluate("document.images[0].naturalWidth")
                    assert natural > 100
                    # read as it is drawn, in a box that scrolls; not a white sheet in the dark
                    assert width > 700 or page.evaluate("document.images[0].getBoundingClientRect().width") >= natural
                    paper = page.evaluate("getComputedStyle(document.querySelector('.picture')).backgroundColor")
                    assert (paper == "rgb(255, 255, 255)") != dark, paper
                    assert (page.evaluate("getComputedStyle(document.images[0]).filter") == "none") != dark
                if name == "nodes":
                    head = page.evaluate("document.querySelector('.counts').innerText")
                    assert "pass" in head and "silent" in head, head
                    assert "UTC" in page.evaluate("document.querySelector('tbody tr').innerText")
                    assert "silent" in page.evaluate("document.querySelector('tbody tr .verdict').textContent")
                if name == "hostile":
                    assert "silent (" in page.evaluate("document.querySelector('.cards').textContent")
                if name == "odd":
                    assert "not heard from" in page.evaluate("document.querySelector('main').innerText")
                if width == 390 and name in ("nodes", "node"):
                    # a row's values begin in one line, whatever letters they are of
                    lefts = page.evaluate("""[...new Set([...document.querySelectorAll('.stack td')].filter((t) => t.childNodes.length).map((t) => {
                        const r = document.createRange(); r.selectNodeContents(t); return Math.round(r.getBoundingClientRect().left); }))]""")
                    assert len(lefts) == 1, lefts
                page.screenshot(shots / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        page = browser.page(800, 900)
        page.open(s.url + "#/history")
        page.wait("document.querySelector('.sideways')")
        assert page.evaluate("document.querySelector('.scroll').classList.contains('wide')")
        page.screenshot(shots / "history-800.png")
        keyboard(browser, s)
    print(f"{len(views)} views, two widths, dark and light: no error, no request out")


def keyboard(browser, s):
    page = browser.page()
    page.open(s.url)
    page.wait("document.querySelectorAll('tbody tr').length === 200")
    assert "262 nodes" not in page.evaluate("document.getElementById('total').textContent")
    page.key("/")
    for c in "gpu00011":
        page.key(c)
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    page.key("Escape")
    page.key("j")
    page.key("c")
    page.key("Enter")
    page.wait("location.hash.startsWith('#/node/') && document.querySelector('h2')?.textContent === 'gpu00011'")
    page.key("Escape")
    page.wait("location.hash === '' || location.hash === '#/'")
    page.key("2")
    page.wait("location.hash === '#/odd' && document.querySelectorAll('tbody tr').length > 3")
    page.evaluate("location.hash = '#/node/gpu00007'")
    page.wait("document.getElementById('mark') && document.querySelector('h2')?.textContent === 'gpu00007'")
    page.key("c")
    page.wait("location.hash.startsWith('#/diff/') && document.querySelector('h2')?.textContent?.includes('gpu00011')")
    page.evaluate("document.getElementById('theme').click()")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    page.evaluate("location.hash = '#/'")
    page.wait("document.querySelectorAll('select').length === 2")
    page.evaluate("{ const e = document.querySelectorAll('select')[1]; e.value = 'proprietary'; e.dispatchEvent(new Event('change')); }")
    page.evaluate("{ const e = document.getElementById('search'); e.value = ''; e.dispatchEvent(new Event('input')); }")
    page.wait("[...document.querySelectorAll('tbody tr')].length === 3")
    # Typed, and elsewhere before it was asked for: then the other page is shown and nothing more is asked.
    asked = sum("/api/nodes" in u for u in page.requests)
    page.evaluate("{ const e = document.getElementById('search'); e.value = 'gpu'; e.dispatchEvent(new Event('input')); location.hash = '#/odd'; }")
    page.wait("!document.getElementById('search') && document.querySelectorAll('tbody tr').length > 3")
    page.evaluate("new Promise((r) => setTimeout(r, 500))")
    assert sum("/api/nodes" in u for u in page.requests) == asked, page.requests[-4:]
    assert not page.errors, page.errors


def main():
    # Short: a unix socket's path has 107 bytes.
    tmp = pathlib.Path(tempfile.mkdtemp(prefix="ppfleet."))
    tmp.chmod(0o755)
    try:
        globals()["part_" + PART](tmp)
    except (postgres.Absent, chromium.Absent) as why:
        print(f"skipped: {why}")
        return 77
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
