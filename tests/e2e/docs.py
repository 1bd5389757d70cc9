#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Help, manual pages and completion say the same: every verb and option of one is in the others.

usage: docs.py PEERPATH PROJECT-ROOT
"""
import pathlib
import re
import subprocess
import sys


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def options(text):
    return set(re.findall(r"--([a-z][a-z0-9-]+)", text))


def main():
    peerpath, root = sys.argv[1], pathlib.Path(sys.argv[2])
    faults = []
    everything = run(peerpath, "--help")
    verbs = re.findall(r"^  ([a-z]+) +\S", everything, re.M)
    if len(verbs) < 4:
        sys.exit(f"only {len(verbs)} verbs found in --help")
    main_page = (root / "man/peerpath.1.scd").read_text()
    completion = run(peerpath, "completion")
    subprocess.run(["bash", "-n"], input=completion, text=True, check=True)
    common = options(run(peerpath, "identity", "--help")) - {"facts"}
    for verb in verbs:
        if f"*{verb}*" not in main_page:
            faults.append(f"{verb}: not in peerpath(1)")
        listed = set(re.findall(r"^  .{4}--([a-z0-9-]+)", run(peerpath, verb, "--help"), re.M))
        own = listed - common
        for option in sorted(listed):
            line = re.search(rf"^\t{verb}\) options=\"(.*)\"", completion, re.M)
            if not line or f"--{option}" not in line[1].split():
                faults.append(f"{verb} --{option}: not completed")
        page = root / f"man/peerpath-{verb}.1.scd"
        if verb in ("completion", "help"):
            continue
        if not page.exists():
            faults.append(f"{verb}: no {page.name}")
            continue
        section = page.read_text().split("# OPTIONS", 1)
        written = options(section[1].split("\n# ", 1)[0].replace("\\", "")) if len(section) > 1 else set()
        for option in sorted(own - written):
            faults.append(f"{verb} --{option}: not in {page.name}")
        for option in sorted(written - own - common):
            faults.append(f"{page.name}: --{option} is no option of the verb")
    for text in [everything] + [run(peerpath, verb, "--help") for verb in verbs]:
        faults += [f"{len(line)} columns: {line}" for line in text.splitlines() if len(line) > 80]
    for verb, words in {"bundle": "show verify", "nccl": "judge run perf", "help": "topo prove"}.items():
        line = re.search(rf"^\t{verb}\) options=\"(.*)\"", completion, re.M)
        if not set(words.split()) <= set(line[1].split()):
            faults.append(f"{verb}: its operands are not completed")
    if completion.count("--fail-on)") != 1:
        faults.append("completion: --fail-on has not one case")
    for verb in ("help", "completion"):
        if options(run(peerpath, verb, "--help")) & {"json", "root", "replay"}:
            faults.append(f"{verb}: offers what it does not heed")
    if "version" not in options(everything) or not common <= options(everything):
        faults.append("--help does not list the options of all verbs")
    for argv in (["--help"], ["--version"], ["help"], ["topo", "--help"], ["completion"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([peerpath, *argv], stdout=full, stderr=-1, text=True)
        if done.returncode != 70 or done.stderr.count("\n") != 1:
            faults.append(f"{argv} to a full disk: {done.returncode}: {done.stderr}")
    done = subprocess.run([peerpath, "--json", "check"], capture_output=True, text=True)
    if done.returncode != 64 or "verb comes first: peerpath check --json" not in done.stderr:
        faults.append(f"--json check: {done.returncode}: {done.stderr}")
    for option in sorted(common):
        if f"--{option}" not in main_page:
            faults.append(f"--{option}: not in peerpath(1)")
    print("\n".join(faults) or f"{len(verbs)} verbs agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
