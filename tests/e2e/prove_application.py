#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gate 4 of prove: a workload that prints figures, with and without a baseline, kept and replayed.

usage: prove_application.py PEERPATH MESH

MESH: a verbs program of the project, which the software device carries.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soft"))
import as_live  # noqa: E402
import bundle  # noqa: E402
import soft  # noqa: E402

PEERPATH, MESH = (os.path.abspath(a) for a in sys.argv[1:3])
FILE = """[workload]
name = made
[run]
repeats = 5
timeout = 30s
[metric speed]
pattern = tokens/s: ([0-9.]+)
direction = higher
margin = 5%
unit = tokens/s
slo = 50
"""
faults = []


def check(what, good):
    if not good:
        faults.append(str(what))


def run(top, *argv, code, command=None):
    argv = [PEERPATH, *argv] + (["--", *command] if command else [])
    done = subprocess.run(argv, cwd=top, capture_output=True, text=True, timeout=200)
    if done.returncode != code:
        faults.append(f"{argv}: exit {done.returncode}, not {code}: {done.stdout[-600:]}{done.stderr[-600:]}")
    return done


def prints(speed):
    return ["sh", "-c", f"echo tokens/s: {speed}"]


def gate(document):
    return document["gates"][4]


def measured(top):
    done = run(top, "prove", "--canary", "c.ini", "-o", "b.tar.zst", "--json", code=2, command=prints(100))
    d = json.loads(done.stdout)
    g, a = gate(d), d["application"]
    check(g, g["asked"] and g["verdict"] == "pass" and g["claim_state"] == "proven" and g["next"] is None)
    check(g, "at least 50: 5 of 5" in g["evidence"] and "not looked at" in g["evidence"])
    check(a, [r["values"]["speed"] for r in a["canary"]["runs"]] == [100.0] * 5 and "comparison" not in a)
    check("through", d["through"] == "application")
    check("the command's lines are not in the document", done.stderr.count("tokens/s: 100") == 5)
    # The bundle verifies, holds the record of the trial, and gives the same gates without any command.
    run(top, "bundle", "verify", "b.tar.zst", code=0)
    again = json.loads(run(top, "prove", "--replay", "b.tar.zst", "--no-bundle", "--json", code=2).stdout)
    check("replayed gates", again["gates"] == d["gates"] and again["verdict"] == d["verdict"])
    check("replayed trial", again["application"] == a)
    shown = json.loads(run(top, "bundle", "show", "b.tar.zst", "--json", code=0).stdout)
    check("shown", shown["gates"][4]["verdict"] == "pass")
    unlike = run(top, "compare", "b.tar.zst", "b.tar.zst", code=2).stdout
    check(unlike, "runs before" in unlike)
    text = run(top, "prove", "--canary", "c.ini", "--no-bundle", code=2, command=prints(100)).stdout
    check(text, "4 application    pass" in text and "Gate 4" in text)
    check(f"width: {text}", max(map(len, text.splitlines())) <= 100)


def judged(top):
    """Missed: fails and says so; runs that differ, that do not count: unknown."""
    for command, code, verdict, says in (
            (prints(10), 1, "fail", "misses its service level: speed"),
            (["sh", "-c", "echo tokens/s: 100; exit 3"], 2, "unknown", "no run of made counts"),
            (["true"], 2, "unknown", "no run of made counts"),
            (["sh", "-c", 'test -e n && s=10 || s=100; touch n; echo "tokens/s: $s"'], 2, "unknown", "do not tell")):
        (top / "n").unlink(missing_ok=True)
        g = gate(json.loads(run(top, "prove", "--canary", "c.ini", "--no-bundle", "-j", code=code, command=command).stdout))
        check(g, g["verdict"] == verdict and says in g["claim"] and g["raise"] and g["next"])
    # A baseline makes the comparison the gate's verdict; what is unlike is refused there, too.
    run(top, "prove", "--canary", "c.ini", "-o", "after.tar.zst", "--before", "b.tar.zst", code=2, command=prints(80))
    d = json.loads(run(top, "prove", "--replay", "after.tar.zst", "--no-bundle", "-j", code=2).stdout)
    c = d["application"]["comparison"]
    check(c, c["runs_before"] == 5 and c["verdict"] == gate(d)["verdict"] == "unknown" and c["sentence"] == gate(d)["claim"])


def not_asked(top):
    """Without a canary file nothing runs, and the row says how it would."""
    d = json.loads(run(top, "prove", "--no-bundle", "--json", code=2).stdout)
    check(gate(d), not gate(d)["asked"] and gate(d)["next"] == "peerpath prove --canary FILE -- COMMAND")
    check("application", "application" not in d)
    d = json.loads(run(top, "prove", "--no-bundle", "--json", "--through", "4", code=2).stdout)
    check(gate(d), gate(d)["asked"] and gate(d)["verdict"] == "unknown" and "no workload was measured" in gate(d)["claim"])
    # Behind a gate that failed no command runs, unless it is wanted.
    (top / "rules").mkdir()
    (top / "rules/made.rules").write_text(bundle.FAILING_RULE)
    for more, ran in (([], False), (["--keep-going"], True)):
        (top / "ran").unlink(missing_ok=True)
        d = json.loads(run(top, "prove", "--canary", "c.ini", "--rules", "rules", "--no-bundle", "-j", *more, code=1,
                           command=["sh", "-c", "touch ran; echo tokens/s: 100"]).stdout)
        check(f"{more}: {d['gates'][1]}", d["gates"][1]["verdict"] == "fail")
        check(f"{more}: ran", (top / "ran").exists() == ran)
        check(gate(d), gate(d)["verdict"] == ("pass" if ran else "unknown"))
    # Replayed, the chain goes on where the run's did.
    live = json.loads(run(top, "prove", "--canary", "c.ini", "--rules", "rules", "--keep-going", "-o", "k.tar.zst", "-j", code=1,
                          command=prints(100)).stdout)
    again = json.loads(run(top, "prove", "--replay", "k.tar.zst", "--rules", "rules", "--no-bundle", "-j", code=1).stdout)
    check(again["gates"], again["gates"] == live["gates"] and again["keep_going"] is True and not again["stopped"])


def refused(top):
    for argv, command, says in (
            ([], ["true"], "unexpected operand 'true'"),
            (["--canary", "c.ini"], None, "-- COMMAND"),
            (["--before", "b.tar.zst"], None, "--before goes with --canary"),
            (["--canary", "c.ini", "--through", "3"], ["true"], "does not reach"),
            (["--canary", "c.ini", "--replay", "b.tar.zst"], ["true"], "--replay shows files"),
            (["--canary", "c.ini", "--root", "/"], ["true"], "--root shows files"),
            (["--canary", "c.ini", "--no-bundle"], ["./none-such"], "none-such")):
        done = run(top, "prove", *argv, code=64, command=command)
        check(f"{argv}: {done.stderr}", done.stderr.count("\n") == 1 and says in done.stderr and not done.stdout)
    for argv, says in ((["--canary", "none.ini"], "none.ini"), (["--canary", "c.ini", "--before", "none"], "none"),
                       (["--canary", "c.ini", "--before", "c.ini"], "c.ini")):
        done = run(top, "prove", *argv, code=65, command=["true"])
        check(f"{argv}: {done.stderr}", done.stderr.count("\n") == 1 and says in done.stderr)
    # Interrupted: no bundle, nothing left.
    p = subprocess.Popen([PEERPATH, "prove", "--canary", "c.ini", "-o", "i.tar.zst", "--", "sh", "-c", "echo up; exec sleep 985"],
                         cwd=top, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check("up", p.stdout.readline() == "up\n")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    check(f"interrupted: {p.returncode}", p.returncode == 130 and not (top / "i.tar.zst").exists())


def simulated(top):
    """What the software device carries is a simulation, whoever started it there, and proves nothing."""
    on_soft = [PEERPATH, "soft", "--", MESH, "-n", "2", "-c", "20"]
    (top / "m.ini").write_text(FILE.replace("pattern = tokens/s: ([0-9.]+)", "seconds = wall").replace(
        "direction = higher", "direction = lower"))
    d = json.loads(run(top, "prove", "--canary", "m.ini", "--no-bundle", "-j", code=2, command=on_soft).stdout)
    check(gate(d), gate(d)["verdict"] == "unknown" and "simulation" in gate(d)["claim"])
    check("canary", d["application"]["canary"]["simulated"] and d["application"]["gate"]["simulated"])
    done = json.loads(run(top, "canary", "-f", "m.ini", "-j", "--repeats", "1", code=0, command=on_soft).stdout)
    check("canary alone", done["simulated"])
    done = json.loads(run(top, "canary", "-f", "m.ini", "-j", "--repeats", "1", code=0, command=["true"]).stdout)
    check("no device was opened", not done["simulated"])
    # Asked for: the command itself is run there, and a passed simulation is exit status 0.
    def simulate(name, *argv, code, command=None):
        """What it printed, and its document; a replay must come to both."""
        text = run(top, "prove", "--simulate", *argv, "-s", "64K,1M", "--repeats", "2", "-D", "20ms", "-o", name, code=code,
                   command=command).stdout
        faults.extend(as_live.faults(PEERPATH, top, name, code, text))
        return text, json.loads((as_live.opened(top, name) / "result.json").read_text())

    on_mesh = [MESH, "-n", "2", "-c", "20"]
    _, d = simulate("n.tar.zst", "--through", "4", "--canary", "m.ini", code=2, command=on_mesh)
    check(d["simulation"], d["simulation"] == "not run")  # gate 3 was asked for, and has no GPU
    text, d = simulate("s.tar.zst", "--canary", "m.ini", code=0, command=on_mesh)
    check(d["simulation"], d["simulation"] == "passed" and d["application"]["gate"]["passed"])
    check(text, all(line in text for line in ("\nGate 2, simulated\n", "\nGate 4, simulated\n", "simulation            passed")))
    # The machine's gates know nothing of it, and nobody who simulates is told to simulate.
    for g in d["gates"][2:]:
        check(g, g["verdict"] == "unknown" and g["evidence"] == "none: what ran here ran in simulation" and "--simulate" not in g["next"])
    # Compared with that, which is kept for whoever replays it.
    _, d = simulate("r.tar.zst", "--after-reboot", "s.tar.zst", code=0)
    check("compared", as_live.files(as_live.opened(top, "r.tar.zst")).get("before/bench.json") ==
          as_live.files(as_live.opened(top, "s.tar.zst"))["bench.json"])


def older(top):
    """Bundles that do not say that they are of a simulation, or say otherwise than what they hold."""
    live = json.loads((as_live.opened(top, "s.tar.zst") / "result.json").read_text())
    opened = bundle.unpack(top / "s.tar.zst", top / "old")
    path = opened / "result.json"

    def replay(*argv, code):
        bundle.sign(opened)
        return json.loads(run(top, "prove", "--replay", "old", "--no-bundle", "-j", *argv, code=code).stdout)

    for change in ({"simulated": False}, {"simulated": None}, {"simulated": "yes", "simulation": 7}):
        path.write_text(json.dumps({key: value for key, value in (live | change).items() if value is not None}))
        faults.extend(as_live.differs(as_live.found(live), as_live.found(replay(code=0)), str(change)))
    # Gates 0 and 1 are the machine's own.
    for words in (["--through", "1"], ["--quick"]):
        d = replay(*words, code=2)
        check(d, d["through"] == "prerequisites" and d["simulated"] is False and "simulation" not in d and
              not {"memory", "application"} & set(d))
    # No result that can be read: what was simulated is none of the gates' all the same.
    for text in ("[]", "7", '{"memory": {"not_measured": 7}}'):
        path.write_text(text)
        d = replay("--through", "2", code=0)
        check(d["gates"][2], d.get("simulation") == "passed" and d["gates"][2]["evidence"] == "none: what ran here ran in simulation")
        d = replay(code=2)
        check(text, d["through"] == "prerequisites" and d["simulated"] is False)


def lost(top):
    """A capture that the run did not get is missing in the replay's bundle, too, and is said there."""
    def lose(opened, manifest):
        gone = next((opened / "nodes").glob("*/capture.tar.zst"))
        gone.unlink()
        (opened / "nodes.errors").write_text(f"{gone.parent.name}\tit gave none\nno such line\n")
        manifest["files"] = [f for f in manifest["files"] if f["path"] != str(gone.relative_to(opened))]
        manifest["files"].append({"path": "nodes.errors", "bytes": 0, "sha256": "0" * 64})
        manifest["files"].sort(key=lambda f: f["path"])
        manifest["complete"] = False
        names.append(gone.parent.name)

    names = []
    bundle.PEERPATH = PEERPATH
    bundle.edited(top, "lost", top / "s.tar.zst", lose)
    d = json.loads(run(top, "prove", "--replay", "lost", "-o", "lost.copy", "-j", code=0).stdout)
    check(d.get("nodes_left_out"), d.get("nodes_left_out") == [{"node": names[0], "why": "it gave none"}])
    check("counted", d["complete"] is False and d["left_out"] == 1)
    copied = as_live.files(top / "lost.copy")
    check("nodes.errors", copied.get("nodes.errors") == as_live.files(top / "lost")["nodes.errors"])
    check("the other's", sum(name.endswith("/capture.tar.zst") for name in copied) == 1)
    run(top, "bundle", "verify", "lost.copy", code=0)


def kept(top):
    """What a bundle has kept of gates 2 and 4 is judged again; what is damaged is refused, with its name."""
    opened = bundle.unpack(top / "s.tar.zst", top / "kept")
    for path in (opened / "bench.json", opened / "result.json"):
        path.write_text(path.read_text().replace('"simulated": true', '"simulated": false'))
    bundle.sign(opened)
    d = json.loads(run(top, "prove", "--replay", "kept", "--no-bundle", "-j", code=2).stdout)
    check(d["gates"][2], d["gates"][2]["asked"] and "was not measured" not in d["gates"][2]["claim"] and
          "0 of" in d["gates"][2]["evidence"] and d["memory"]["transfer"]["verdict"] == d["gates"][2]["verdict"])
    run(top, "prove", "--replay", "kept", "-o", "again.tar.zst", code=2)
    again = json.loads(run(top, "prove", "--replay", "again.tar.zst", "--no-bundle", "-j", code=2).stdout)
    check("a replay's own bundle", again["gates"] == d["gates"])
    for name in ("bench.json", "canary.json", "before/bench.json"):
        opened = bundle.unpack(top / "r.tar.zst", top / "kept2") if name.startswith("before") else opened
        whole = (opened / name).read_text()
        for text in (whole[:100], "[]", '{"schema": "peerpath.bench/99"}'):
            (opened / name).write_text(text)
            bundle.sign(opened)
            done = run(top, "prove", "--replay", opened, "--no-bundle", code=65)
            check(f"{name}: {done.stderr}", name in done.stderr and done.stderr.count("\n") == 1 and not done.stdout)
        (opened / name).write_text(whole)


def main():
    soft.alone(needed=True)
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        (top / "c.ini").write_text(FILE)
        for part in (measured, judged, not_asked, refused, simulated, older, lost, kept):
            part(top)
    print("\n".join(faults) or "measured, kept, replayed, refused")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
