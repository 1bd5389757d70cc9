# SPDX-License-Identifier: Apache-2.0
"""Is a replay what the live run was: the same document, text, exit status, and the same again from the bundle it writes?"""
import difflib
import itertools
import json
import shutil
import subprocess

# When, from where and how long: of the run, not of what was found.
OWN = ("judged", "replayed", "source", "took_s", "bundle", "complete", "left_out")
WRITTEN = ("manifest.json", "result.json")


def found(document):
    """What of a document of prove a replay must say, too."""
    d = {key: value for key, value in document.items() if key not in OWN}
    # A replay judges by the logs, and says so where the run said that it keeps them.
    for entry in d.get("library", {}).get("logs", ()):
        entry.pop("logs")
    return d


def lines(text):
    """From the table on: what a command of gate 4 printed stands before it."""
    table = itertools.dropwhile(lambda line: not line.startswith("GATE "), text.splitlines())
    return [line for line in table if not line.startswith("  bundle ")]


def unlike(before, after):
    return "\n".join(difflib.unified_diff(lines(before), lines(after), "live", "replayed", n=0, lineterm=""))


def differs(a, b, where=""):
    """One line for each place where two documents do."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [line for key in sorted(set(a) | set(b)) for line in differs(a.get(key), b.get(key), f"{where}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in differs(x, y, f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {str(a)[:200]} became {str(b)[:200]}"]


def files(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*")
            if p.is_file() and not p.is_symlink() and str(p.relative_to(top)) not in WRITTEN}


def opened(where, bundle):
    if (where / bundle).is_dir():
        return where / bundle
    to = where / f"{bundle}.opened"
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    subprocess.run(["tar", "--zstd", "-xf", where / bundle, "-C", to], check=True)
    return to


def faults(program, where, bundle, status, text=None):
    """What the replay of @bundle, which a run that ended with @status and printed @text wrote, does otherwise: lines."""
    def replay(of, *words):
        done = subprocess.run([program, "prove", "--replay", of, *words], cwd=where, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != status:
            bad.append(f"{bundle}: replay of {of} {words}: exit {done.returncode}, not {status}: {done.stderr[-300:]}")
        return done.stdout

    bad, copy = [], f"{bundle}.copy"
    first = opened(where, bundle)
    live = found(json.loads((first / "result.json").read_text(encoding="utf-8")))
    shutil.rmtree(where / copy, ignore_errors=True)
    said = replay(bundle, "-o", copy)
    if text is not None and unlike(text, said):
        bad.append(f"{bundle}: the replay's text is another:\n{unlike(text, said)}")
    bad += [f"{bundle}: {line}" for line in differs(live, found(json.loads(replay(bundle, "-j", "--no-bundle"))))]
    # what it writes is as good as what it read
    again = replay(copy, "--no-bundle")
    if unlike(said, again):
        bad.append(f"{copy}: its text is another:\n{unlike(said, again)}")
    bad += [f"{copy}: {line}" for line in differs(live, found(json.loads(replay(copy, "-j", "--no-bundle"))))]
    before, after = files(first), files(where / copy)
    bad += [f"{copy}: {name}: {'another' if name in before and name in after else 'in one of the two'}"
            for name in sorted(set(before) | set(after)) if before.get(name) != after.get(name)]
    return bad
