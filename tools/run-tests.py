#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a build's tests and says in one line how many passed, failed and were skipped, and why.

usage: run-tests.py BUILD [MESON-TEST-ARGUMENT...]
A test that exits with 77 is skipped; the last line that it printed is the reason.
PEERPATH_TEST_COUNTS names a file that the closing line is appended to, for CI's sum over several runs.
"""
import json
import os
import pathlib
import subprocess
import sys


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    logs = build / "meson-logs"
    for old in logs.glob("testlog*.json"):
        old.unlink()
    run = subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs",
                          *sys.argv[2:]])
    passed = failed = skipped = 0
    # With a wrapper meson puts its name into the log's.
    for line in (line for log in logs.glob("testlog*.json") for line in log.read_text().splitlines()):
        test = json.loads(line)
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif test["result"] == "SKIP":
            skipped += 1
            said = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
            print(f"skipped {test['name']}: {said[-1] if said else 'no reason given'}")
        else:
            failed += 1
            print(f"failed {test['name']}: {test['result']}")
    closing = f"{passed} passed, {failed} failed, {skipped} skipped"
    print(closing)
    if os.environ.get("PEERPATH_TEST_COUNTS"):
        with open(os.environ["PEERPATH_TEST_COUNTS"], "a", encoding="ascii") as counts:
            counts.write(closing + "\n")
    if not passed:
        print("no test ran", file=sys.stderr)
        return 1
    return 1 if failed or run.returncode not in (0,) else 0


if __name__ == "__main__":
    sys.exit(main())
