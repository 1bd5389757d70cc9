#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""canary and compare as a user runs them: a workload that prints figures, before and after.

usage: canary.py PEERPATH
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

PEERPATH = os.path.abspath(sys.argv[1])
FILE = """[workload]
name = made
seed = 7
[run]
repeats = 5
timeout = 20s
[metric speed]
pattern = tokens/s: ([0-9.]+)
direction = higher
margin = 5%
unit = tokens/s
slo = 50
[metric step]
json = step
direction = lower
margin = 5%
[metric cpu]
host = cpu-seconds
direction = lower
margin = 10
[change]
changed = environment
"""
# Figures spread by 1 %, in an order that no clock chooses.
WORK = """import os, pathlib
n = int(pathlib.Path("n").read_text()) if os.path.exists("n") else 0
pathlib.Path("n").write_text(str(n + 1))
print("loading")
print("tokens/s:", (100, 101, 99, 100, 100.5)[n % 5] * float(os.environ["FACTOR"]))
print('{"step": 2}')
"""
faults = []
# The test's build may name the folder of the fake driver there: it is met where it is asked for, only.
os.environ.pop("LD_LIBRARY_PATH", None)


def run(*argv, cwd, code, **kw):
    done = subprocess.run([PEERPATH, *argv], cwd=cwd, capture_output=True, text=True, timeout=120, **kw)
    if done.returncode != code:
        faults.append(f"{argv}: exit {done.returncode}, not {code}: {done.stdout[-800:]}{done.stderr[-800:]}")
    return done


def check(what, good):
    if not good:
        faults.append(what)


def measure(top, out, factor, *argv, code=0, file=FILE, command=None):
    (top / "c.ini").write_text(file)
    (top / "n").unlink(missing_ok=True)
    program = ["sh", "-c", command] if command else [sys.executable, "-c", WORK]
    return run("canary", "-f", "c.ini", *argv, "--json", "--", *program, cwd=top, code=code,
               env={**os.environ, "FACTOR": str(factor)}), top / out


def save(pair):
    done, path = pair
    path.write_text(done.stdout)
    return path


def living(word):
    """Command lines that hold the word; what has ended and is not reaped yet has none."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and "canary.py" not in line:
            found.append(line)
    return found


def forget_class(path, to="c1"):
    """A machine without GPU and hca has no class of topology that says anything."""
    d = json.loads(path.read_text())
    for node in d["nodes"]:
        node["topology_class"] = to
    path.write_text(json.dumps(d))


def odd_results(top):
    """No variance at all, one run, a metric of one arm only, a newer document, two workloads under one name."""
    same = "echo tokens/s: 100; echo '{\"step\": 2}'"

    def made(name, *argv, command=same):
        path = save(measure(top, name, 1, *argv, command=command))
        forget_class(path)
        return str(path)

    def compared(a, b):
        return json.loads(run("compare", a, b, "--json", cwd=top, code=2).stdout)

    a, b = made("flat-a.json"), made("flat-b.json")
    rows = {r["metric"]: r for r in compared(a, b)["metrics"]}
    check(f"no variance: {rows}", all(rows[m]["change"] == "same" and rows[m]["shift"] == rows[m]["shift_low"] ==
                                      rows[m]["shift_high"] == 1 for m in ("speed", "step")))
    one = compared(made("one-a.json", "--repeats", "1"), made("one-b.json", "--repeats", "1"))
    rows = {r["metric"]: r for r in one["metrics"]}
    check(f"one run: {rows}", rows["speed"]["change"] == "need more" and rows["speed"]["runs_needed"] == 3 and
          rows["speed"]["shift_low"] is None and one["sentence"].startswith("these runs do not tell"))
    # After the change the step is printed no more: its runs are void there, and that is said.
    d = json.loads(pathlib.Path(b).read_text())
    for r in d["runs"]:
        r["values"]["step"] = None
    (top / "lacks.json").write_text(json.dumps(d))
    c = compared(a, str(top / "lacks.json"))
    rows = {r["metric"]: r for r in c["metrics"]}
    check(f"missing: {rows['step']}", rows["step"]["change"] == "missing" and "not there in both arms" in c["sentence"])
    c = compared(a, made("other.json", command=same + "; true"))
    check(f"two workloads: {c['differences']}", not c["alike"] and len(c["differences"]) == 1 and
          "workload's command" in c["differences"][0])
    # Under a command that the file declares they are one.
    file = FILE.replace("seed = 7", "seed = 7\ncommand = the job")
    paths = []
    for name, command in (("named-a.json", same), ("named-b.json", same + "; true")):
        path = save(measure(top, name, 1, command=command, file=file))
        forget_class(path)
        paths.append(str(path))
    check("one workload", compared(*paths)["alike"])
    d = json.loads(pathlib.Path(b).read_text())
    for text, says in ((json.dumps({**d, "schema": "peerpath.canary/9"}), "newer"), (json.dumps(d).replace('"speed": 1', '"speed": NaN, "odd": 1', 1), "NaN"),
                       (json.dumps(d).replace('"runs"', '"runs": 3, "ran"'), "runs")):
        (top / "odd.json").write_text(text)
        done = run("compare", a, "odd.json", cwd=top, code=65)
        check(f"{says}: {done.stderr}", "odd.json" in done.stderr and done.stderr.count("\n") == 1 and not done.stdout)


def main():
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        before, after = save(measure(top, "before.json", 1)), save(measure(top, "after.json", 1.2))
        d = json.loads(before.read_text())
        check("schema", d["schema"] == "peerpath.canary/1")
        check("runs", [r["values"]["speed"] for r in d["runs"]] == [100, 101, 99, 100, 100.5])
        check("void", not any(r["void"] for r in d["runs"]))
        check("cpu", all(0 <= r["values"]["cpu"] < 10 for r in d["runs"]))
        check("kernel", d["nodes"][0]["software"]["kernel.release"] == os.uname().release)
        for path in (before, after):
            forget_class(path)
        # Faster, and nothing is known of the path: not credited.
        done = run("compare", str(before), str(after), "--json", cwd=top, code=2)
        c = json.loads(done.stdout)
        rows = {r["metric"]: r for r in c["metrics"]}
        check("better", rows["speed"]["change"] == "better" and abs(rows["speed"]["shift"] - 1.2) < 0.01)
        check("same", rows["step"]["change"] == "same" and rows["cpu"]["change"] == "same")
        check("sentence", "mechanism is unproven" in c["sentence"])
        # The other way round it is worse, whatever is proven.
        c = json.loads(run("compare", str(after), str(before), "--json", cwd=top, code=1).stdout)
        check("worse", c["verdict"] == "fail" and "worse" in c["sentence"])
        # The same, and declared proven by the document: pass.
        d = json.loads(after.read_text())
        d["path"] = {"path": "gdr", "mechanism": "dmabuf", "claim_gdr": "proven",
                     "claim_mechanism": "proven", "why": None}
        proven = top / "proven.json"
        proven.write_text(json.dumps(d))
        text = run("compare", str(before), str(proven), cwd=top, code=0).stdout
        check(f"80 columns: {text}", max(map(len, text.splitlines())) <= 100)
        check("pass", "Mechanism proven, and the service level is better" in text)
        # A page: well-formed, and nothing in it comes from elsewhere or runs.
        run("compare", str(before), str(proven), "--html", "p.html", cwd=top, code=0)
        page = (top / "p.html").read_text()
        tree = xml.etree.ElementTree.fromstring(page.split("\n", 1)[1])
        dots = [e for e in tree.iter() if e.tag.endswith("}circle") or e.tag == "circle"]
        check(f"dots: {len(dots)}", len(dots) == 30)
        check("page", "<script" not in page and "href" not in page and "src=" not in page)
        check("exists", "p.html" in run("compare", str(before), str(proven), "--html", "p.html", cwd=top,
                                        code=64).stderr)
        # Unlike: another class, another kernel, another seed.
        for what, change in (("topology class", lambda d: d["nodes"][0].update(topology_class="c2")),
                             ("kernel.release", lambda d: d["nodes"][0]["software"].update({"kernel.release": "9"})),
                             ("seed", lambda d: d["workload"].update(seed="8"))):
            d = json.loads(proven.read_text())
            change(d)
            odd = top / "odd.json"
            odd.write_text(json.dumps(d))
            c = json.loads(run("compare", str(before), str(odd), "--json", cwd=top, code=2).stdout)
            check(what, not c["alike"] and any(what in x for x in c["differences"]))
        # A directory of results is a set of them; a bundle is read as well.
        (top / "set").mkdir()
        for i in (1, 2):
            (top / f"set/{i}.json").write_text(before.read_text())
        c = json.loads(run("compare", "set", str(proven), "--json", cwd=top, code=0).stdout)
        check("set", c["runs_before"] == 10)
        measure(top, "x", 1, "-o", "b.tar.zst")
        run("bundle", "verify", "b.tar.zst", cwd=top, code=0)
        run("compare", "b.tar.zst", "b.tar.zst", cwd=top, code=2)

        # What `nccl run` found of the job's path goes in; of another node's job it does not.
        job = run("nccl", "run", "-q", "-j", "--", "true", cwd=top, code=2).stdout
        (top / "job.json").write_text(job)
        done, _ = measure(top, "x", 1, "--repeats", "1", "--evidence", "job.json")
        path = json.loads(done.stdout)["path"]
        check(f"path: {path}", path["path"] == "undetermined" and path["claim_gdr"] == "unproven" and path["why"])
        host = json.loads(job)["runs"][0]["nodes"][0]["host"]
        (top / "other.json").write_text(job.replace(f'"{host}"', '"elsewhere"'))
        done, _ = measure(top, "x", 1, "--evidence", "other.json", code=65)
        check(done.stderr, "says nothing of this node" in done.stderr)
        done, _ = measure(top, "x", 1, "--evidence", "c.ini", code=65)

        # What is void, and why.
        for command, why in (("echo tokens/s: 5; echo '{\"step\": 1}'; exit 3", "status 3"),
                             ("kill -9 $$", "killed by signal 9 (KILL)"),
                             ("echo garbage; echo 'tokens/s: nan'", "metric speed"),
                             ("true", "metric speed: pattern")):
            done, _ = measure(top, "x", 1, "--repeats", "1", code=2, command=command)
            runs = json.loads(done.stdout)["runs"]
            check(f"{command}: {runs}", len(runs) == 1 and why in (runs[0]["void"] or ""))
            check(f"{command}: stderr", why in done.stderr)
        # A GPU that is held back while the run lasts, by the fake NVML.
        (top / "c.ini").write_text(FILE)
        fake = pathlib.Path(PEERPATH).parents[2] / "tests/fake/nvml"
        done = run("canary", "-f", "c.ini", "--repeats", "1", "--json", "--", sys.executable, "-c", WORK, cwd=top, code=2,
                   env={**os.environ, "FACTOR": "1", "LD_LIBRARY_PATH": str(fake)})
        why = json.loads(done.stdout)["runs"][0]["void"] or ""
        check(f"throttled: {why}", "0000:9a:00.0 was held back: power cap, thermal" in why)
        began = time.monotonic()
        done, _ = measure(top, "x", 1, "--repeats", "1", code=2, command="trap '' TERM; sleep 987 & sleep 987; sleep 987",
                          file=FILE.replace("20s", "1s"))
        check("late", "not done after 1 s" in json.loads(done.stdout)["runs"][0]["void"])
        check("late for long", time.monotonic() - began < 60)
        check(f"left behind: {living('sleep 987')}", not living("sleep 987"))

        # The wall clock jumps in the middle of a run (tests/fake/jump.c).
        jump = pathlib.Path(PEERPATH).parents[2] / "tests/fake/jump.so"
        if jump.exists() and not os.environ.get("PEERPATH_SANITIZED"):
            done = run("canary", "-f", "c.ini", "--repeats", "1", "--json", "--", "sh", "-c",
                       "echo tokens/s: 5; echo '{\"step\": 1}'; touch jump", cwd=top, code=2,
                       env={**os.environ, "LD_PRELOAD": str(jump), "PP_FAKE_JUMP": str(top / "jump")})
            why = json.loads(done.stdout)["runs"][0]["void"] or ""
            check(f"jump: {why}", "the wall clock jumped by 3600.0 s" in why)

        odd_results(top)

        # Bad input: one line, nothing written.
        for argv, code, says in (
                (["-f", "none.ini", "--", "true"], 65, "none.ini"),
                (["--", "true"], 64, "--file"),
                (["-f", "c.ini", "--", "./no-such-program"], 64, "no-such-program"),
                (["-f", "c.ini", "--repeats", "0", "--", "true"], 64, "1 to 1000"),
                (["-f", "c.ini", "-o", "no/such/dir.tar.zst", "--", "true"], 70, "no/such")):
            done = run("canary", *argv, cwd=top, code=code)
            check(f"{argv}: {done.stderr}", done.stderr.count("\n") == 1 and says in done.stderr)
        (top / "bad.ini").write_text("[workload]\nname = x\n[metric a]\npatern = x\n")
        done = run("canary", "-f", "bad.ini", "--", "true", cwd=top, code=65)
        check(done.stderr, "bad.ini:4" in done.stderr and "did you mean 'pattern'" in done.stderr)
        (top / "cut.json").write_text(before.read_text()[:200])
        for path in ("cut.json", "no.json", "c.ini", "/dev/null"):
            done = run("compare", path, str(after), cwd=top, code=65)
            check(f"{path}: {done.stderr}", done.stderr.count("\n") == 1 and path in done.stderr)
        (top / "empty").mkdir()
        done = run("compare", "empty", str(after), cwd=top, code=65)
        check("empty", "empty" in done.stderr)

        # Ctrl-C ends the run at hand, and all.
        p = subprocess.Popen([PEERPATH, "canary", "-f", "c.ini", "--", "sh", "-c", "echo up; exec sleep 986"],
                             cwd=top, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check("up", p.stdout.readline() == "up\n")
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        check(f"interrupted: {p.returncode}", p.returncode == 130)
        check(f"left behind: {living('sleep 986')}", not living("sleep 986"))
    print("\n".join(faults) or "measured, compared, refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
