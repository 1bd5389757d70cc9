#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a build's tests and says in one line how many passed, failed and were skipped, and why.

usage: run-tests.py BUILD [MESON-TEST-ARGUMENT...]
A test that exits with 77 is skipped; the last line that it printed is the reason.
PEERPATH_TEST_COUNTS names a file that the closing line is appended to, for CI's sum over several runs;
before it lines 'bad: TEST: REASON', since the end of a long log may be all that is kept of it.
PEERPATH_TEST_LOG is meson's name for the logs (testlog), so that two runs may use one build at a time.
"""
import json
import os
import pathlib
import re
import subprocess
import sys


# What tests call their faults: ours in Python and C, cmocka's, the sanitizers', valgrind's, an assertion's.
REASON = re.compile(r"^(FAULT|bad:? |not ok|faults?:|\[ +(LINE|ERROR|FAILED) +\]|Traceback|\w+(Error|Exception): |==\d+==(ERROR| [A-Z])"
                    r"|WARNING: ThreadSanitizer|SUMMARY: |.*: runtime error: |.*Assertion .* failed)")
REASONS_MAX, REASON_CHARS = 8, 300


def reasons(test):
    """Lines that say why a test failed: those marked as such, else the last ones that it printed."""
    lines = [line.rstrip() for line in ((test.get("stdout") or "") + "\n" + (test.get("stderr") or "")).splitlines()
             if line.strip()]
    marked = list(dict.fromkeys(line for line in lines if REASON.match(line)))
    return [line[:REASON_CHARS] for line in (marked[-REASONS_MAX:] or lines[-3:] or ["nothing was printed"])]


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    logs = build / "meson-logs"
    name = os.environ.get("PEERPATH_TEST_LOG") or "testlog"
    for old in logs.glob(f"{name}*.json"):
        old.unlink()
    run = subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs",
                          "--logbase", name, *sys.argv[2:]])
    passed = failed = skipped = 0
    bad = []
    # With a wrapper meson puts its name into the log's.
    for line in (line for log in logs.glob(f"{name}*.json") for line in log.read_text().splitlines()):
        test = json.loads(line)
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            passed += 1
        elif test["result"] == "SKIP":
            skipped += 1
            said = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
            print(f"skipped {test['name']}: {said[-1] if said else 'no reason given'}")
        else:
            failed += 1
            bad += [f"bad: {test['name'].split(' / ')[-1]}: {line}" for line in [test["result"], *reasons(test)]]
    print("".join(line + "\n" for line in bad), end="")
    closing = f"{passed} passed, {failed} failed, {skipped} skipped"
    print(closing)
    if os.environ.get("PEERPATH_TEST_COUNTS"):
        with open(os.environ["PEERPATH_TEST_COUNTS"], "a", encoding="utf-8", errors="replace") as counts:
            counts.write("".join(line + "\n" for line in [*bad, closing]))
    if not passed:
        print("no test ran", file=sys.stderr)
        return 1
    return 1 if failed or run.returncode not in (0,) else 0


if __name__ == "__main__":
    sys.exit(main())
