#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath nccl judge against logs with a known answer, and against hostile input.

Expected values come from what was run for the recorded logs, and from NCCL's sources (which line
is printed when) for the made ones. usage: nccl_judge.py PEERPATH
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOGS = HERE.parent / "fixtures/nccl"
EXIT = {"proven": 0, "refuted": 1, "unproven": 2}
faults = []


def judge(program, files, stdin=None, text=False):
    argv = [program, "nccl", "judge", *([] if text else ["--json"]), *map(str, files)]
    done = subprocess.run(argv, input=stdin, capture_output=True, timeout=60)
    if text:
        return done.returncode, done.stdout.decode()
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def at(document, path):
    for part in path.split("."):
        if part == "hash":
            document = len(document)
        elif isinstance(document, list):
            document = document[int(part)]
        else:
            document = document[part]
    return document


def show(value):
    return {True: "true", False: "false", None: "null"}.get(value, str(value)) \
        if isinstance(value, bool) or value is None else str(value)


def compare(name, document, rows):
    for row in rows:
        key, want = row.split("=", 1)
        if key == "logs":
            continue
        if key == "why":
            got = [w["text"] for w in document["why"]]
            if not any(want in text for text in got):
                faults.append(f"{name}: no reason holds '{want}': {got}")
            continue
        try:
            got = show(at(document, key))
        except (KeyError, IndexError) as problem:
            faults.append(f"{name}: {key}: {problem!r}")
            continue
        if got != want:
            faults.append(f"{name}: {key} is {got}, wanted {want}")


def fixtures(program):
    count = 0
    for expect in sorted(LOGS.glob("*.expect")):
        rows = expect.read_text().splitlines()
        logs = next((r[5:].split() for r in rows if r.startswith("logs=")), [expect.stem + ".log"])
        code, document = judge(program, [LOGS / log for log in logs])
        if document is None:
            faults.append(f"{expect.stem}: exit {code}")
            continue
        compare(expect.stem, document, rows)
        for why in document["why"]:
            if not why["file"] or not why["line"]:
                faults.append(f"{expect.stem}: no line for '{why['text']}'")
        if code != EXIT[document["claim_gdr"]]:
            faults.append(f"{expect.stem}: exit {code} for {document['claim_gdr']}")
        code, text = judge(program, [LOGS / log for log in logs], text=True)
        for line in text.splitlines():
            if len(line) > 80:
                faults.append(f"{expect.stem}: {len(line)} columns: {line}")
        count += 1
    return count


def same(program, name, data, want):
    """The same judgement, whatever stands around the lines."""
    code, document = judge(program, ["-"], stdin=data)
    if document is None:
        faults.append(f"{name}: exit {code}")
        return
    got = {key: document[key] for key in want}
    if got != want:
        faults.append(f"{name}: {got}, wanted {want}")


def hostile(program):
    log = (LOGS / "made-proven.log").read_bytes()
    want = {"path": "gdr", "claim_gdr": "proven", "coverage": "all-ranks"}
    lines = log.splitlines()
    same(program, "plain stdin", log, want)
    same(program, "CRLF", b"\r\n".join(lines) + b"\r\n", want)
    same(program, "colours", b"\n".join(b"\x1b[32;1m" + x + b"\x1b[0m" for x in lines), want)
    same(program, "NUL holes", b"\n".join(b"\0" * 5000 + x for x in lines), want)
    same(program, "invalid UTF-8", b"\xff\xfe\x80 noise\n".join(x + b"\n" for x in lines), want)
    # what was cut may have been a line: no longer proven, never worse
    same(program, "10 MB line", b"x" * 10_000_000 + b"\n" + log,
         {"path": "gdr", "claim_gdr": "proven", "coverage": "all-ranks"})
    same(program, "10 MB line of NCCL", b"h:1:1 [0] NCCL INFO " + b"x" * 10_000_000 + b"\n" + log,
         {"path": "gdr", "claim_gdr": "unproven"})
    same(program, "a connection cut at the end",
         log + b"host0:1000:1050 [0] NCCL INFO Channel 00/1 : 0[0] -> 1[0] [send] via NET/IB/0",
         {"path": "gdr", "claim_gdr": "unproven", "connections_total": 8})
    same(program, "no newline at the end", log.rstrip(b"\n"), want)
    nothing = {"path": "undetermined", "claim_gdr": "unproven", "coverage": "none", "errors": [],
               "connections": []}
    same(program, "empty", b"", nothing)
    same(program, "a novel", b"It was a dark and stormy night; # the rain fell in torrents.\n" * 20000,
         nothing)
    same(program, "NCCL in prose", b"NCCL INFO is printed; NCCL WARN too. via NET/IB/0/GDRDMA\n" * 99,
         nothing)
    wrong(program)


def wrong(program):
    """Each wrong thing is one clear line, and nothing on standard output."""
    for operands, want in ((["judge", "/nonexistent.log"], 65), (["judge", "/"], 65), (["judge", ""], 65),
                           (["judge", str(LOGS / "made-proven.log"), "/nonexistent.log"], 65),
                           (["jugde", "x"], 64), (["judge"], 64), (["judge", "--no-such", "x"], 64)):
        done = subprocess.run([program, "nccl", *operands], stdin=subprocess.DEVNULL, capture_output=True)
        if done.returncode != want or done.stdout or done.stderr.count(b"\n") != 1:
            faults.append(f"{operands}: exit {done.returncode}, {done.stdout} {done.stderr}")


def bound_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


def busy(program):
    """Lines that claim much: each once kept the program busy for minutes. The bound is a guard."""
    huge = "h:1:1 [0] NCCL INFO comm 0x{0:x} rank {1} nranks {2} cudaDev 0 busId 1b000 commId 0x9 - Init COMPLETE\n"
    channel = "h:1:1 [0] NCCL INFO Channel 00/0 : {}[0] -> 2[0] [send] via NET/{}\n"
    texts = {
        "ranks": "".join(huge.format(16 + n, n * 400000000, 2147483647) for n in range(5)),
        "hosts": "".join(f"h{n}:{n}:1 [0] x.cc:1 NCCL WARN what {n}\n" for n in range(300000)),
        "communicators": "".join(huge.format(16 + n, n % 2, 4) for n in range(3000))
                         + channel.format(3, "IB/0") * 100000,
        "settings": "".join(f"h{n}:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"
                            for n in range(30000))
                    + "".join(channel.format(n, "Socket/0") for n in range(120000)),
    }
    for name, text in texts.items():
        done = subprocess.run([program, "nccl", "judge", "--json", "-"], input=text.encode(),
                              capture_output=True, preexec_fn=bound_cpu)
        if done.returncode not in (1, 2):
            faults.append(f"busy with {name}: exit {done.returncode}")


def novel(program):
    """100 MB without a word of NCCL: silence, in little memory."""
    with tempfile.NamedTemporaryFile() as book:
        for _ in range(100):
            book.write(b"Call me Ishmael. Some years ago - never mind how long precisely\n" * 15625)
        book.flush()
        process = subprocess.Popen([program, "nccl", "judge", "--json", book.name],
                                   stdout=subprocess.PIPE)
        document = json.load(process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 2 or document["lines"] or document["why"][0]["file"]:
        faults.append(f"novel: {document}")
    if usage.ru_maxrss > 64 << 10 and "asan" not in program:
        faults.append(f"novel: {usage.ru_maxrss} KiB of memory")


def manual(program):
    """The worked example of the manual page is what the program prints."""
    page = (HERE.parent.parent / "man/peerpath-nccl.1.scd").read_text()
    example = page.split("judge job.log\n", 1)[1].split("```", 1)[0]
    text = subprocess.run([program, "nccl", "judge", "made-read-off.log"], cwd=LOGS,
                          capture_output=True, text=True).stdout
    text = text.replace("made-read-off.log", "job.log")
    if text.split() != example.split():
        faults.append(f"peerpath-nccl(1) shows something else than:\n{text}")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    count = fixtures(program)
    if count < 50:
        faults.append(f"only {count} fixtures found")
    hostile(program)
    novel(program)
    manual(program)
    busy(program)  # last: a child's peak of memory begins at its parent's
    print("\n".join(faults) or f"{count} logs judged right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
