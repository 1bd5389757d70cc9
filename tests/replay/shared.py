# SPDX-License-Identifier: Apache-2.0
"""What the replay tests share: where third-party machine data lies, and running the program."""
import json
import os
import pathlib
import subprocess
import sys

SKIP = 77


def data(relative: str) -> pathlib.Path:
    """A folder of the shared data, or the end of this test with status 77 and the reason."""
    top = pathlib.Path(__file__).resolve().parent.parent.parent
    base = pathlib.Path(os.environ.get("PEERPATH_SHARED", top.parent / "shared"))
    path = base / "data" / relative
    if not path.is_dir():
        print(f"skipped: {path} is not here (third-party data; PEERPATH_SHARED names its folder)")
        sys.exit(SKIP)
    return path


def table(path: pathlib.Path) -> list:
    """A file of tab-separated values with a header, as a list of dicts."""
    lines = [line for line in path.read_text().split("\n") if line and not line.startswith("#")]
    head = lines[0].split("\t")
    return [dict(zip(head, line.split("\t"))) for line in lines[1:]]


def run(program: str, *args: str):
    """Exit code, standard output and standard error; a hang is a failure."""
    done = subprocess.run([program, *args], capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def document(program: str, schema: str, *args: str):
    """Exit code and the one JSON document that the program printed (None: nothing)."""
    code, out, err = run(program, *args, "--json")
    doc = json.loads(out) if out else None
    if doc and doc["schema"] != schema:
        raise SystemExit(f"{args}: schema {doc['schema']}, want {schema}")
    return code, doc, err
