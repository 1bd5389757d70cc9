#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath explain as people use it: width, exit status, words, files, streams without end.

usage: explain.py PEERPATH PROJECT-ROOT
"""
import bz2
import gzip
import json
import lzma
import os
import pathlib
import resource
import shutil
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
    # Most of a run is the reading of all rules: six or seven pages are explained by one. Those of one subject, which
    # beat each other, are neighbours, and do not meet. Some are alone, as people have them; under a sanitizer, which
    # looks for crashes, no others.
    alone = pages[:: 32 if SANITIZED else 8]
    for some in [[page] for page in alone] + ([] if SANITIZED else [pages[i::100] for i in range(100)]):
        code, out, err = run("--no-node", "--all", *map(str, some))
        names = " ".join(page.name for page in some)
        for line in out.splitlines():
            # An address cannot be broken: one that is too long stands alone.
            if len(line) > 80 and not line.strip().startswith("https://"):
                faults.append(f"{names}: {len(line)} columns: {line}")
            if line != line.rstrip():
                faults.append(f"{names}: blanks at the end of: {line}")
        if err or code not in (0, 1, 2):
            faults.append(f"{names}: exit {code}: {err}")
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


EFAULT = b"NCCL WARN Call to ibv_reg_mr failed with error Bad address"
CLEAN_KERNEL = b"""[    0.000000] Linux version 6.8.0-41-generic (build@x) #41-Ubuntu SMP
[    4.1] mlx5_core 0000:3b:00.0: firmware version: 28.39.1002
[    4.2] mlx5_core 0000:3b:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)
[    4.9] pcieport 0000:00:01.1: AER: enabled with IRQ 34
[    5.0] DMAR: IOMMU enabled
[    6.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.133.20
"""
CLEAN_NCCL = b"""n1:10:10 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
NCCL version 2.23.4+cuda12.6
n1:10:30 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
n1:10:30 [0] NCCL INFO Using network IB
n1:10:30 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA
n1:10:30 [0] NCCL INFO ncclCommInitRank comm 0x55 rank 0 nranks 2 cudaDev 0 busId 1000 - Init COMPLETE
"""


def dirty_text():
    """What surrounds a message does not change the answer; a clean log is no fault."""
    cases = {
        "CR LF": EFAULT + b"\r\nsecond\r\n",
        "colours": b"\033[31m" + EFAULT.replace(b"reg_mr", b"reg_\033[1mmr") + b"\033[0m\n",
        "no UTF-8": b"\xff\xfe\xc3\x28 " + EFAULT + b" \xe2\x28\xa1\n",
        "NUL": b"\0" * 5000 + EFAULT.replace(b"failed", b"failed\0") + b"\0" * 5000,
        "10 MB before it": b"x" * 10_000_000 + b" " + EFAULT + b"\n",
    }
    for what, text in cases.items():
        code, out, _ = run("-", "--no-node", "--json", text=text)
        doc = json.loads(out)
        expect(what, (code, doc["diagnoses"][0]["rule"]), (1, "peermem-missing"))
        expect(f"{what}: quoted", "ibv_reg_mr" in doc["diagnoses"][0]["evidence"][0]["text"], True)
    for what, text in (("kernel log", CLEAN_KERNEL), ("NCCL log", CLEAN_NCCL)):
        code, out, _ = run("-", "--no-node", "--json", text=text)
        doc = json.loads(out)
        expect(f"clean {what}", (code, doc["diagnoses"], doc["unexplained_lines"]), (0, [], 0))
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" explain - <&-', PEERPATH], timeout=30,
                          capture_output=True, check=False)
    expect("closed input", (done.returncode, done.stderr.count(b"\n")), (65, 1))


def no_text():
    """What Python compresses, and a program: said so, and not searched for messages."""
    with tempfile.TemporaryDirectory() as work:
        for name, pack in (("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress)):
            pathlib.Path(work, "job.log." + name).write_bytes(pack(EFAULT + b"\n"))
        shutil.copy(PEERPATH, work)
        for file in sorted(pathlib.Path(work).iterdir()):
            want = "compressed" if file.name.startswith("job") else "a program"
            for verb in (["explain", "--no-node"], ["nccl", "judge"]):
                done = subprocess.run([PEERPATH, *verb, str(file)], capture_output=True, text=True,
                                      timeout=60, check=False)
                expect(f"{verb[0]} {file.name}", (done.returncode, done.stdout, done.stderr.count("\n"),
                                                  f"{file}: {want}" in done.stderr), (65, "", 1, True))


RULE = """[own]
title = own
problem = -
match = "something of our own"
alone = likely
cause = c
decide = d
next = ls /
fix = f
reverse = r
source = https://example.org/
reviewed = 2026-11-29
"""


def broken_rules():
    """One line: the file, the line to mend, and what is wrong with it."""
    cases = {
        "": (RULE, None),
        "title left out": (RULE.replace("title = own\n", ""), "own.rules:1: rule 'own': 'title' is missing"),
        "mistyped key": (RULE.replace("match", "mtach"), "own.rules:4: unknown key 'mtach'; did you mean"),
        "open quote": (RULE.replace('our own"', "our own"), "own.rules:4: "),
        "unknown field": (RULE.replace("match = ", "match = ernno=4 "), "own.rules:4: "),
        "unknown rule": (RULE.replace("alone", "beats = gone\nalone"), "own.rules:1: rule 'own': there is no rule 'gone'"),
        "bytes": ("\0\1\2", "own.rules:1: line holds bytes that are not text"),
    }
    for what, (text, complaint) in cases.items():
        with tempfile.TemporaryDirectory() as work:
            pathlib.Path(work, "own.rules").write_text(text)
            code, out, err = run("--no-node", "--rules", work, "something of our own")
        if complaint is None:
            expect("own rules", (code, err), (1, ""))
            continue
        expect(f"{what}: exit", (code, out, err.count("\n")), (65, "", 1))
        if complaint not in err:
            faults.append(f"{what}: {err!r} lacks {complaint!r}")
    with tempfile.NamedTemporaryFile(suffix=".rules") as own:
        code, out, err = run("--no-node", "--rules", own.name, "something of our own")
    expect("a file for a directory", (code, out, "a directory with *.rules files is wanted" in err), (65, "", True))


def examples_of_the_page():
    """Those of the manual page run as they stand, and print what the page shows."""
    page = (ROOT / "man/peerpath-explain.1.scd").read_text().split("# EXAMPLES")[1].split("\n# ")[0]
    lines = [line.replace("\\*", "*") for line in page.splitlines()]
    n = 0
    with tempfile.TemporaryDirectory() as work:
        top = pathlib.Path(work)
        (top / "bin").mkdir()
        (top / "bin/peerpath").symlink_to(pathlib.Path(PEERPATH).resolve())
        (top / "node7.tar.zst/proc").mkdir(parents=True)
        (top / "node7.tar.zst/proc/modules").write_text("")
        for name in ("job.log", "rank0.log", "node7.dmesg"):
            (top / name).write_bytes(EFAULT + b"\n")
        for at, line in enumerate(lines):
            if not line.startswith("\t$ "):
                continue
            if "jq" in line and not shutil.which("jq"):
                continue
            done = subprocess.run(["/bin/sh", "-c", line[3:]], capture_output=True, timeout=60, cwd=work,
                                  check=False, text=True,
                                  env={**os.environ, "PATH": f"{top}/bin:{os.environ['PATH']}"})
            n += 1
            if done.stderr or not done.stdout or done.returncode not in (0, 1):
                faults.append(f"{line}: exit {done.returncode}: {done.stderr}")
            shown = at + 2
            while shown < len(lines) and lines[shown].strip() and lines[shown][0] in "\t ":
                want = lines[shown].strip().removesuffix("++").removesuffix("...").strip()
                if lines[shown].startswith("\t$") or want == "..." or not want:
                    break
                if want not in done.stdout:
                    faults.append(f"{line}: the page shows {want!r}")
                shown += 1
    expect("examples", n >= 4, True)


# The text does not say its cause, and no fact of a node without peermem does: a DMA-BUF call that
# failed first, host memory, a symbol that is missing because its module is not loaded yet.
NEVER_CERTAIN = (
    "NCCL WARN Call to ibv_reg_dmabuf_mr failed with error Invalid argument\n"
    "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address",
    "mlx5dv_reg_dmabuf_mr failed: Bad address; failed to register GPU memory",
    "failed to register GPU memory",
    "torch worker: ibv_reg_mr failed: Bad address (host buffer 0x0)",
    "nv_peer_mem: Unknown symbol nvidia_p2p_get_pages (err 0)",
    "nvidia: disagrees about version of symbol module_layout",
)


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
               (1, "peermem-missing", "likely"))
        # NCCL's line does not say that the address was of a GPU; perftest's lines do.
        _, out, _ = run("--replay", work, "--json", "initializing CUDA\nCouldn't allocate MR")
        doc = json.loads(out)
        expect("a GPU buffer without peermem", (doc["diagnoses"][0]["rule"],
                                                doc["diagnoses"][0]["certainty"]),
               ("gpu-mr-refused", "certain"))
        for text in NEVER_CERTAIN:
            _, out, _ = run("--replay", work, "--json", text)
            expect(f"certain by {text!r}", [d["rule"] for d in json.loads(out)["diagnoses"]
                                            if d["certainty"] == "certain"], [])
        (top / "proc/modules").write_text("nvidia_peermem 1 0 - Live 0x0\n")
        _, out, _ = run("--replay", work, "--json",
                        "Call to ibv_reg_mr failed with error Bad address")
        doc = json.loads(out)
        expect("peermem is loaded", "peermem-missing" in [d["rule"] for d in doc["diagnoses"]],
               False)
        expect("then nothing is certain",
               [d["rule"] for d in doc["diagnoses"] if d["certainty"] == "certain"], [])


NODES = (
    # faults of the made machine, a change of one answer, the text, what stands first, what is gone
    ("no-peermem", None, "ibv_reg_mr failed with error Bad address",
     "peermem-missing", "bar1-exhausted-peermem"),
    ("", ("nvml.json", '"bar1_used_bytes": 1048576', '"bar1_used_bytes": 137430000000'),
     "ibv_reg_mr failed with error Bad address", "bar1-exhausted-peermem", "peermem-missing"),
    ("", ("environment.json", '"HOME": "/root"',
          '"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"'),
     "ibv_reg_mr failed with error Bad address", "vmm-memory", "peermem-missing"),
    ("memlock-64k", None, "ibv_reg_mr failed with error Cannot allocate memory",
     "memlock-small", "bar1-exhausted-peermem"),
    ("", ("nvml.json", '"bar1_used_bytes": 1048576', '"bar1_used_bytes": 137430000000'),
     "ibv_reg_mr failed with error Cannot allocate memory", "bar1-exhausted-peermem", ""),
)


def nodes_narrow():
    """One errno, whole recordings of machines that differ in one thing: the cause follows."""
    for faults_of_node, change, text, first, gone in NODES:
        with tempfile.TemporaryDirectory() as work:
            node = os.path.join(work, "node")
            make = [sys.executable, str(ROOT / "tests/fixtures/make_machine.py"), "good2", node]
            subprocess.run([*make, *(["--faults", faults_of_node] if faults_of_node else [])],
                           check=True, timeout=120)
            if change:
                answer = pathlib.Path(node, "answers", change[0])
                before = answer.read_text()
                answer.write_text(before.replace(change[1], change[2]))
                expect(f"{change[0]} changed", before != answer.read_text(), True)
            _, out, _ = run("--replay", node, "--json", "NCCL WARN Call to " + text)
        rules = [d["rule"] for d in json.loads(out)["diagnoses"]]
        expect(f"first of {text!r} on {faults_of_node or change[0]}", rules[0], first)
        expect(f"{gone!r} is ruled out on {faults_of_node or change[0]}", gone in rules, False)


def main():
    width_of_every_page()
    operands()
    streams()
    facts_of_a_recording()
    nodes_narrow()
    dirty_text()
    no_text()
    broken_rules()
    examples_of_the_page()
    print("\n".join(faults) or "explain answers")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
