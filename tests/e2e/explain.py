#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath explain as people use it: width, exit status, words, files, streams without end.

usage: explain.py PEERPATH PROJECT-ROOT
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

PEERPATH, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
MIB = 1 << 20
SANITIZED = bool(os.environ.get("PEERPATH_SANITIZED"))  # shadow memory breaks a limit
faults = []


def run(*args, text=b"", memory=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    done = subprocess.run([PEERPATH, "explain", *args], input=text, capture_output=True,
                          timeout=120, check=False, preexec_fn=limit if memory and not SANITIZED else None)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def expect(what, got, want):
    if got != want:
        faults.append(f"{what}: {got!r}, want {want!r}")


def width_of_every_page():
    pages = sorted((ROOT / "tests/fixtures/explain").glob("*.txt"))
    for page in pages:
        code, out, err = run("-", "--no-node", "--all", text=page.read_bytes())
        for line in out.splitlines():
            # An address cannot be broken.
            if len(line) > 80 and "https://" not in line:
                faults.append(f"{page.name}: {len(line)} columns: {line}")
        if err or code not in (0, 1, 2):
            faults.append(f"{page.name}: exit {code}: {err}")
    expect("pages", len(pages) >= 140, True)


def operands():
    code, out, _ = run("--no-node", "errno", "524", "from", "ibv_reg_dmabuf_mr")
    expect("524 as words", code, 1)
    expect("524 is ENOTSUPP", "ENOTSUPP" in out, True)
    expect("524 is nothing else", "EREMOTEIO" in out.split("   not ")[0], False)
    expect("a path that is not there", run("--no-node", "/nowhere/at/all.log")[0], 65)
    expect("a directory", run("--no-node", "/")[0], 65)
    expect("no facts to check", run("--no-node", "--check", "x")[0], 64)
    expect("nothing at all", run("--no-node")[0], 2)
    with tempfile.TemporaryDirectory() as work:
        files = [pathlib.Path(work, name) for name in ("a.log", "b.log")]
        files[0].write_text("NCCL version 2.20.5+cuda12.4\n")
        files[1].write_text("NCCL version 2.19.3+cuda12.3\n")
        code, out, _ = run("--no-node", "--json", *map(str, files))
        expect("two files", [d["rule"] for d in json.loads(out)["diagnoses"]],
               ["nccl-version-mismatch"])


def streams():
    """A novel, one line without end, bytes of every kind: silence, little memory."""
    line = b"It was the best of times, it was the worst of times, it was the age of wisdom.\n"
    cases = {
        "a novel": line * (100 * MIB // len(line)),
        "one line": b"word " * (2 * MIB),
        "every byte": bytes(range(256)) * (4 * MIB // 256),
        "escapes": b"\033[" * MIB + b"\033]" * MIB,
    }
    for what, text in cases.items():
        code, out, err = run("-", "--no-node", "--json", text=text, memory=96 * MIB)
        expect(f"{what}: exit", code, 2)
        expect(f"{what}: stderr", err, "")
        if code == 2:
            doc = json.loads(out)
            expect(f"{what}: found", (doc["diagnoses"], doc["unexplained_lines"]), ([], 0))
            expect(f"{what}: read", doc["bytes"], len(text) + 1)


def facts_of_a_recording():
    """Of a machine without RDMA devices nothing is used live; a recording that is named is."""
    with tempfile.TemporaryDirectory() as work:
        top = pathlib.Path(work)
        (top / "proc").mkdir()
        (top / "sys/module/kernel").mkdir(parents=True)  # whole, so that absence is known
        (top / "proc/modules").write_text("mlx5_ib 1 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n")
        code, out, _ = run("--replay", work, "--json",
                           "Call to ibv_reg_mr failed with error Bad address")
        doc = json.loads(out)
        expect("peermem is not loaded", (code, doc["diagnoses"][0]["rule"],
                                         doc["diagnoses"][0]["certainty"]),
               (1, "peermem-missing", "certain"))
        (top / "proc/modules").write_text("nvidia_peermem 1 0 - Live 0x0\n")
        _, out, _ = run("--replay", work, "--json",
                        "Call to ibv_reg_mr failed with error Bad address")
        doc = json.loads(out)
        expect("peermem is loaded", "peermem-missing" in [d["rule"] for d in doc["diagnoses"]],
               False)
        expect("then nothing is certain",
               [d["rule"] for d in doc["diagnoses"] if d["certainty"] == "certain"], [])


def main():
    width_of_every_page()
    operands()
    streams()
    facts_of_a_recording()
    print("\n".join(faults) or "explain answers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
