#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rdma-core's own tests, as Debian installs them, on the software device: what is listed in
pyverbs.expected passes, and nothing fails. They skip nothing but what is listed in pyverbs.skipped,
under our reason; their own are printed.

usage: pyverbs.py PEERPATH EXPECTED SKIPPED [--write]
"""
import collections
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from soft import LOOP, alone, not_sanitized, on, skip

PEERPATH, EXPECTED, SKIPPED = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
TESTS = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # the one that Debian's pyverbs is for

# Runs them all and writes the outcome of each: the text of unittest is for people.
RUNNER = """
import json, sys, unittest
sys.path[:0] = ["tests", "."]
where = sys.argv.pop()
from args_parser import parser
parser.parse_args()
import tests

class Result(unittest.TestResult):
    seen = []
    def addSuccess(self, test): self.seen.append((test.id(), "ok", ""))
    def addSkip(self, test, reason): self.seen.append((test.id(), "skipped", str(reason)))
    def addFailure(self, test, err): self.seen.append((test.id(), "failed", self._exc_info_to_string(err, test)))
    addError = addFailure
    def addSubTest(self, test, part, err):
        if err:
            self.addFailure(test, err)

unittest.defaultTestLoader.loadTestsFromModule(tests).run(Result())
json.dump(Result.seen, open(where, "w"))
"""


def outcomes(folder):
    for file in TESTS.iterdir():
        body = file.read_bytes()
        (folder / "tests" / file.name.removesuffix(".gz")).write_bytes(
            gzip.decompress(body) if file.suffix == ".gz" else body)
    (folder / "runner.py").write_text(RUNNER, encoding="ascii")
    run = subprocess.run(on(PEERPATH, LOOP, [PYTHON, "-B", "runner.py", "--dev", "soft0", "--port", "1", "--gid", "0",
                                             "seen.json"]), cwd=folder, capture_output=True, text=True, timeout=240,
                         check=False)
    if run.returncode:
        print(f"exit {run.returncode}: {run.stdout[-2000:]}{run.stderr[-4000:]}")
        sys.exit(1)
    return json.loads((folder / "seen.json").read_text(encoding="utf-8"))


def main():
    not_sanitized()
    if not TESTS.is_dir() or not shutil.which(PYTHON) or subprocess.run(
            [PYTHON, "-c", "import pyverbs"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip(f"no pyverbs, or no {TESTS} (Debian: python3-pyverbs, rdma-core)")
    alone()
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tests").mkdir()
        seen = outcomes(pathlib.Path(folder))
    passed = {name for name, how, _ in seen if how == "ok"}
    if sys.argv[4:] == ["--write"]:
        EXPECTED.write_text("".join(f"{name}\n" for name in sorted(passed)), encoding="ascii")
    allowed = {name for name in SKIPPED.read_text(encoding="ascii").splitlines() if not name.startswith("#")}
    expected = set(EXPECTED.read_text(encoding="ascii").split())
    failed = [(name, why) for name, how, why in seen if how == "failed"]
    skipped = collections.Counter(why for _, how, why in seen if how == "skipped")
    for why, number in skipped.most_common():
        print(f"{number} skipped: {why}")
    for name, why in failed:
        print(f"failed {name}: {why}")
    for name in sorted(expected - passed):
        print(f"passed before, not now: {name}")
    unexplained = sorted(name for name, how, _ in seen if how == "skipped" and name not in allowed)
    for name in unexplained:
        print(f"skipped, and no reason is listed for it: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {sum(skipped.values())} skipped; {len(expected)} must pass")
    return 1 if failed or unexplained or expected - passed or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
