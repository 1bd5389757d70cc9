#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles from outside: GNU tar, zstd(1), sha256sum and Python's tarfile are the judges.

usage: bundle.py PEERPATH PROJECT-ROOT PART

Parts: format, time, incomplete, tamper, hostile, scrub, recorded, interrupt, disk. Exit 77 with a reason when the machine
lacks what the part needs.
"""
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

PEERPATH = ROOT = None
# What no node has, so that gate 1 fails wherever this runs.
FAILING_RULE = """[made-to-fail]
title = made to fail
problem = -
for = node
when = kernel.release ~ *
verdict = fail
cause = It is made so.
decide = It is.
fix = None.
next = true
source = https://example.org/
reviewed = 2026-11-30
"""
FAULTS = []
CHECKS = 0


def check(condition, text):
    global CHECKS
    CHECKS += 1
    if not condition:
        FAULTS.append(text)
    return condition


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **more)


def peerpath(*argv, **more):
    return run(PEERPATH, *argv, **more)


def must(*argv, **more):
    done = run(*argv, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def machine(top, name, *arguments):
    out = top / name
    options = [a for a in arguments if a.startswith("--")]
    rest = [a for a in arguments if not a.startswith("--")]
    must(sys.executable, ROOT / "tests/fixtures/make_machine.py", *options, *rest, out)
    return out


def facts(source):
    done = peerpath("identity", "--facts", "--json", "--replay", source)
    check(done.returncode == 0, f"identity --replay {source}: {done.returncode} {done.stderr}")
    found = json.loads(done.stdout)["facts"] if done.returncode == 0 else []
    times = {f.pop("observed") for f in found}
    check(len(times) <= 1, f"{source}: facts of several times: {times}")
    return found


def refused(path, *words):
    """verify and --replay say 65 and one line with these words."""
    done = peerpath("bundle", "verify", path)
    line = done.stderr.strip()
    check(done.returncode == 65, f"verify {path.name}: exit {done.returncode}: {line}")
    check(line.count("\n") == 0 and line, f"verify {path.name}: not one line: {line!r}")
    for word in words:
        check(word in line, f"verify {path.name}: '{word}' is not in '{line}'")
    check(done.stdout == "", f"verify {path.name}: prints {done.stdout!r}")
    return line


def whole(path):
    done = peerpath("bundle", "verify", path)
    check(done.returncode == 0, f"verify {path}: exit {done.returncode}: {done.stderr}")


def capture(source, out, *more):
    done = peerpath("capture", "--replay", source, "-o", out, *more)
    check(done.returncode == 0, f"capture {out}: exit {done.returncode}: {done.stderr}")
    return done


def unpack(archive, to):
    to.mkdir()
    must("tar", "--zstd", "-xf", archive, "-C", to)
    return to


def files_of(top):
    return sorted(str(p.relative_to(top)) for p in top.rglob("*") if p.is_file() and not p.is_symlink())


def part_format(top):
    made = machine(top, "made", "good2", "--faults=roce")
    archive, directory = top / "a.tar.zst", top / "d"
    done = capture(made, archive, "--json")
    said = json.loads(done.stdout)
    capture(made, directory)
    must("zstd", "-tq", archive)
    listed = must("tar", "--zstd", "-tf", archive).splitlines()
    check(listed[0] == "manifest.json", f"first member: {listed[0]}")
    check(len(listed) == len(set(listed)), "a member is listed twice")
    check(any(len(name) > 100 for name in listed), "no long name was tried")
    opened = unpack(archive, top / "opened")
    manifest = json.loads((opened / "manifest.json").read_text())
    check(manifest["schema"] == "peerpath.manifest/1", "schema of the manifest")
    sums = "".join(f"{f['sha256']}  {f['path']}\n" for f in manifest["files"])
    judged = subprocess.run(["sha256sum", "--quiet", "--strict", "-c"], input=sums, text=True,
                            cwd=opened, capture_output=True)
    check(judged.returncode == 0, f"sha256sum: {judged.stdout}{judged.stderr}")
    there = set(files_of(opened)) - {"manifest.json"}
    check(there == {f["path"] for f in manifest["files"]}, "the manifest lists other files")
    check(len(there) == said["files"], f"capture says {said['files']} files, there are {len(there)}")
    for f in manifest["files"]:
        check((opened / f["path"]).stat().st_size == f["bytes"], f"{f['path']}: size")
    for link in manifest["links"]:
        check(os.readlink(opened / link["path"]) == link["target"], f"{link['path']}: target")
    text = (opened / "manifest.json").read_bytes()
    digest = manifest["sha256"].encode()
    check(hashlib.sha256(text.replace(digest, b"0" * 64)).hexdigest().encode() == digest,
          "the manifest's own digest")
    compared = run("diff", "-r", "--no-dereference", "-x", "manifest.json", "-x", "facts.json",
                   opened, directory)
    check(compared.returncode == 0, f"archive and directory differ:\n{compared.stdout[:2000]}")
    for path in (archive, directory, opened):
        whole(path)
        check(facts(path) == facts(made), f"{path.name}: other facts than the recording's")
    check(stat.S_IMODE(archive.stat().st_mode) == 0o600, "mode of the archive")
    check(stat.S_IMODE(directory.stat().st_mode) == 0o700, "mode of the directory")
    check(all(stat.S_IMODE((directory / f).stat().st_mode) == 0o600 for f in files_of(directory)),
          "mode of a file")
    others_write(top, opened)
    shown = peerpath("bundle", "show", archive)
    check("capture" in shown.stdout and manifest["id"] in shown.stdout, f"show: {shown.stdout}")
    again = peerpath("capture", "--replay", made, "-o", archive)
    check(again.returncode == 64 and "--force" in again.stderr, f"overwritten: {again.stderr}")
    capture(made, archive, "--force")
    whole(archive)
    check(not [n for n in os.listdir(top) if ".tmp-" in n], "a temporary is left")
    reader_gone(made)
    report_lost(top, made)
    proved(top, made)


def proved(top, made):
    """What prove writes: a verdict that show prints and a replay gives again."""
    path = top / "p.tar.zst"
    done = peerpath("prove", "--replay", made, "-o", path, "--json")
    if not check(done.returncode <= 2, f"prove: exit {done.returncode}: {done.stderr}"):
        return
    whole(path)
    result = json.loads(must("tar", "--zstd", "-xOf", path, "result.json"))
    said = json.loads(done.stdout)
    check(result["gates"] == said["gates"], "result.json has other gates than the output")
    shown = json.loads(peerpath("bundle", "show", "--json", path).stdout)
    check(shown["verdict"] == said["verdict"], f"show: {shown['verdict']}")
    check([g["verdict"] for g in shown["gates"]] == [g["verdict"] for g in said["gates"]],
          f"show: {shown['gates']}")
    again = json.loads(peerpath("prove", "--replay", path, "--no-bundle", "--json").stdout)
    check(again["gates"] == said["gates"], "a replayed bundle has other gates")
    scrubbed = top / "p.scrubbed.tar.zst"
    capture(path, scrubbed, "--scrub")
    again = json.loads(peerpath("prove", "--replay", scrubbed, "--no-bundle", "--json").stdout)
    check([g["verdict"] for g in again["gates"]] == [g["verdict"] for g in said["gates"]],
          "a scrubbed bundle has other verdicts")


def reader_gone(made):
    """A reader that has seen enough takes nothing from the verdict: the same status, no line."""
    argv = [PEERPATH, "prove", "--replay", str(made), "--no-bundle"]
    want = run(*argv).returncode
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(argv, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    check((done.returncode, done.stderr) == (want, ""), f"no reader: {done.returncode} {done.stderr}")
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check(done.returncode == 70 and "ENOSPC" in done.stderr, f"full: {done.returncode} {done.stderr}")


def report_lost(top, made):
    """As peerpath-capture(1) says: the bundle is whole and stays."""
    path = top / "unreported.tar.zst"
    with open("/dev/full", "w") as full:
        done = subprocess.run([PEERPATH, "capture", "--replay", str(made), "-o", str(path)],
                              stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    check(done.returncode == 70 and "cannot write the output" in done.stderr,
          f"report lost: {done.returncode} {done.stderr}")
    whole(path)


def sign(top):
    """Gives an edited bundle's manifest the digests of its files, as sha256sum counts them."""
    path = top / "manifest.json"
    manifest = json.loads(path.read_text())
    for f in manifest["files"]:
        data = (top / f["path"]).read_bytes()
        f.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    manifest["sha256"] = "0" * 64
    text = json.dumps(manifest, indent=2)
    path.write_text(text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))


def edited(top, name, archive, edit):
    opened = unpack(archive, top / name)
    manifest = json.loads((opened / "manifest.json").read_text())
    edit(opened, manifest)
    (opened / "manifest.json").write_text(json.dumps(manifest))
    sign(opened)
    whole(opened)
    return opened


def part_time(top):
    """A replay is of the time of its recording, as the manifest tells it, through every copy."""
    seen = "2021-03-04T05:06:07Z"
    made = machine(top, "made", "good2")
    bare = top / "bare.tar.zst"
    capture(made, bare)

    def observed(source):
        done = peerpath("identity", "--facts", "--json", "--replay", source)
        return {f["observed"] for f in json.loads(done.stdout)["facts"]}

    def created(path):
        return json.loads(must("tar", "--zstd", "-xOf", path, "manifest.json"))["created"]

    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    live = {f["observed"] for f in json.loads(peerpath("identity", "--facts", "--json").stdout)["facts"]}
    check(len(live) == 1 and live.pop() >= before, "facts of this machine are of another time")
    check(observed(made) == {None}, f"a bare tree tells a time: {observed(made)}")
    check(created(bare) == "unknown" and observed(bare) == {None}, f"bare: {created(bare)}")
    old = edited(top, "old", bare, lambda opened, manifest: manifest.update(created=seen))
    check(observed(old) == {seen}, f"facts: {observed(old)}")
    for more in ((), ("--scrub",)):
        copy = top / f"copy{len(more)}.tar.zst"
        capture(old, copy, *more)
        check(created(copy) == seen and observed(copy) == {seen}, f"copy {more}: {created(copy)}")
        said = json.loads(must("tar", "--zstd", "-xOf", copy, "facts.json"))
        check(said["collected"] == seen, f"facts.json {more}: {said['collected']}")
    proved_at = top / "p.tar.zst"
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = json.loads(peerpath("prove", "--json", "--replay", old, "-o", proved_at).stdout)
    result = json.loads(must("tar", "--zstd", "-xOf", proved_at, "result.json"))
    for document in (said, result):
        check(document["started"] == seen and document["replayed"] is True, f"started: {document}")
        check(document["judged"] >= before, f"judged: {document['judged']}")
    check(created(proved_at) == seen, f"prove: created {created(proved_at)}")
    named = top / "named"
    named.mkdir()
    peerpath("capture", "--replay", old, cwd=named)
    check([n for n in os.listdir(named) if "20210304T050607Z" in n], f"name: {os.listdir(named)}")
    for wrong in ("2021-02-30T00:00:00Z", "2021-03-04", "9999-99-99T99:99:99Z", "now"):
        odd = edited(top, wrong, bare, lambda opened, manifest: manifest.update(created=wrong))
        check(observed(odd) == {None}, f"{wrong} is taken for a time: {observed(odd)}")


def part_incomplete(top):
    """A recording that lost files makes facts unknown, never absent, and no verdict better."""
    made = machine(top, "made", "good2")
    archive = top / "a.tar.zst"
    capture(made, archive)

    def lose(gone, complete):
        def edit(opened, manifest):
            manifest["complete"] = complete
            manifest["files"] = [f for f in manifest["files"] if f["path"] != gone]
            (opened / gone).unlink()
        return edit

    gone = "raw/proc/modules"
    cut = edited(top, "cut", archive, lose(gone, False))
    whole_one = edited(top, "whole", archive, lose(gone, True))
    told = [f for f in facts(cut) if "it was cut" in (f.get("unknown") or "")]
    check(told, "no fact says that the recording was cut")
    check(not [f for f in facts(whole_one) if "it was cut" in (f.get("unknown") or "")],
          "a whole recording is taken for a cut one")
    known = {(f["fact"], f["of"]): f["value"] for f in facts(archive)}
    for f in facts(cut):
        check(f["value"] is None or f["fact"] == "port.gids" or f["value"] == known[f["fact"], f["of"]],
              f"{f['fact']} of {f['of']} became {f['value']}")
    out = top / "again.tar.zst"
    text = peerpath("prove", "--replay", cut, "-o", out)
    check("bundle incomplete: 1 left out" in text.stdout, f"prove says nothing: {text.stdout[-400:]}")
    check("The recording is incomplete" in text.stdout, "prove does not say what it read")
    check(not json.loads(must("tar", "--zstd", "-xOf", out, "manifest.json"))["complete"],
          "a copy of a cut recording is complete")
    for more in ((), ("--scrub",)):
        said = json.loads(capture(cut, top / f"copy{len(more)}.tar.zst", "--json", *more).stdout)
        check(said["complete"] is False and said["left_out"] == 1, f"copy {more}: {said}")
    clean = peerpath("prove", "--replay", archive, "-o", top / "clean.tar.zst")
    check("incomplete" not in clean.stdout, "a whole recording is called incomplete")


def others_write(top, opened):
    """What others write from the unpacked files is read."""
    for form in ("pax", "gnu", "posix"):
        path = top / f"gnu-tar-{form}.tar.zst"
        must("tar", f"--format={form}", "--zstd", "-cf", path, "-C", opened, ".")
        whole(path)
    plain = top / "python.tar"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        with tarfile.open(plain, "w", format=form) as tar:
            tar.add(opened, arcname=".")
        must("zstd", "-qf", "-19", plain, "-o", f"{plain}.zst")
        whole(pathlib.Path(f"{plain}.zst"))


def part_tamper(top):
    made = machine(top, "made", "good2")
    archive = top / "a.tar.zst"
    capture(made, archive)
    opened = unpack(archive, top / "opened")
    names = files_of(opened)
    for i, name in enumerate(names):
        if name.startswith("raw/") and i % 16:
            continue
        path = opened / name
        kept = path.read_bytes()
        if not kept:
            continue
        path.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        refused(opened, "manifest.json" if name == "manifest.json" else f"'{name}'")
        path.write_bytes(kept[:-1])
        refused(opened, "manifest.json" if name == "manifest.json" else f"'{name}'")
        path.unlink()
        refused(opened, "manifest.json" if name == "manifest.json" else f"'{name}'")
        path.write_bytes(kept)
    whole(opened)
    (opened / "raw/extra").write_text("x")
    refused(opened, "'raw/extra' is not in the manifest")
    replayed = peerpath("identity", "--replay", opened)
    check(replayed.returncode == 65 and replayed.stdout == "", "a tampered bundle was replayed")
    (opened / "raw/extra").unlink()
    (opened / "raw/empty").mkdir()
    refused(opened, "'raw/empty'")
    (opened / "raw/empty").rmdir()
    link = next(p for p in sorted(opened.rglob("*")) if p.is_symlink())
    target = os.readlink(link)
    link.unlink()
    link.symlink_to("/etc/passwd")
    refused(opened, str(link.relative_to(opened)))
    link.unlink()
    link.symlink_to(target)
    os.mkfifo(opened / "raw/fifo")
    refused(opened, "'raw/fifo'")
    (opened / "raw/fifo").unlink()
    whole(opened)
    newer(opened)
    damage_archive(top, archive)


def newer(opened):
    path = opened / "manifest.json"
    kept = path.read_text()
    manifest = json.loads(kept)
    manifest.update(schema="peerpath.manifest/2", version="9.9.9", files={"another": "shape"})
    path.write_text(json.dumps(manifest))
    refused(opened, "newer bundle: written by peerpath 9.9.9, schema 2; use a newer peerpath")
    path.write_text(kept.replace('"complete"', '"complete": true, "complete"'))
    refused(opened, "manifest.json")
    path.write_text(kept)
    whole(opened)


def damage_archive(top, archive):
    data = archive.read_bytes()
    bad = top / "bad.tar.zst"
    plain = subprocess.run(["zstd", "-dc", archive], capture_output=True, check=True).stdout
    step = max(1, len(data) // 60)
    for at in sorted({0, 1, 3, 4, 5, 8, len(data) - 1, len(data) - 4, *range(0, len(data), step)}):
        bad.write_bytes(data[:at])
        refused(bad)
        if at < len(data):
            bad.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:])
            judged = subprocess.run(["zstd", "-dcq", bad], capture_output=True, check=False)
            if judged.returncode or judged.stdout != plain:
                refused(bad)
            else:
                whole(bad)  # one bit of a frame's header is not used by the format
    # The tar itself cut at a member's border, the zstd frame whole.
    for at in (0, 512, 1024, len(plain) // 1024 * 512, len(plain) - 1024, len(plain) - 512):
        pack(bad, plain[:at])
        refused(bad, "cut" if at else "")
    pack(bad, plain + b"x" * 512)
    refused(bad, "behind the end")


def pack(path, plain, *arguments):
    done = subprocess.run(["zstd", "-qf", *arguments, "-", "-o", path], input=plain, check=False)
    if done.returncode:
        sys.exit("zstd failed")


def tar_of(*members):
    """members: (name, type, content or link)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = b""
            if kind == tarfile.REGTYPE:
                data = content
                info.size = len(data)
            else:
                info.linkname = content
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def part_hostile(top):
    bad = top / "bad.tar.zst"
    for name, kind, content, words in (
        ("/etc/x", tarfile.REGTYPE, b"", "absolute name"),
        ("raw/../x", tarfile.REGTYPE, b"", "'..'"),
        ("../x", tarfile.SYMTYPE, "y", "'..'"),
        ("x", tarfile.LNKTYPE, "y", "no file, directory or symbolic link"),
        ("x", tarfile.CHRTYPE, "", "no file, directory or symbolic link"),
        ("x", tarfile.BLKTYPE, "", "no file, directory or symbolic link"),
        ("x", tarfile.FIFOTYPE, "", "no file, directory or symbolic link"),
        ("x", tarfile.SYMTYPE, "raw", "link outside raw/"),
        ("raw/a\nb", tarfile.REGTYPE, b"", "control bytes"),
        ("x" * 2000, tarfile.REGTYPE, b"", "too long"),
        ("manifest.json", tarfile.DIRTYPE, "", "is no file"),
        ("manifest.json", tarfile.REGTYPE, b"[" * 100000, "no valid JSON"),
        ("manifest.json", tarfile.REGTYPE, b"", "no valid JSON"),
        ("raw/x", tarfile.REGTYPE, b"", "no bundle"),
    ):
        pack(bad, tar_of((name, kind, content)))
        line = refused(bad, words)
        check(not any(ord(c) < 32 for c in line), "control bytes reach the terminal")
    pack(bad, tar_of(*[("manifest.json", tarfile.REGTYPE, b"{}")] * 2))
    refused(bad, "twice")
    pack(bad, b"\0" * 10240)
    refused(bad, "no bundle")
    bad.write_bytes(b"PK\3\4" + b"\0" * 100)
    refused(bad, "not zstd data")
    bad.write_bytes(b"")
    refused(bad, "empty file")
    pack(bad, tar_of(("raw/x", tarfile.REGTYPE, b"a" * 1000)), "--ultra", "-22", "--long=27")
    refused(bad, "window")
    bombs(bad)
    check(peerpath("bundle", "verify", "/nonexistent").returncode == 65, "no such file: not 65")
    refused(top, "no manifest.json: not a bundle")
    usage_errors(top)
    refused_before(top)
    denied(top)
    check(peerpath("bundle", "verfy", bad).returncode == 64, "a typo: not 64")
    # Bundles that name each other's links leave nothing outside their tree readable.
    tree = top / "tree"
    (tree / "raw/sys").mkdir(parents=True)
    (tree / "answers").mkdir()
    (tree / "raw/proc").symlink_to("/proc")
    done = peerpath("identity", "--facts", "--json", "--replay", tree)
    check(os.uname().release not in done.stdout, "a link led out of the recording")


def refused_before(top):
    """Where no bundle can go is said before anything is read: the recording is not even opened."""
    taken = top / "taken"
    taken.write_text("x")
    for verb in ("prove", "capture"):
        for path, code, words in ((taken, 64, "--force"), (top / "absent/x", 70, "ENOENT"),
                                  (taken / "x", 70, "ENOTDIR"), (".", 64, "no name")):
            done = peerpath(verb, "--replay", top / "nonexistent", "-o", path)
            line = done.stderr.strip()
            check(done.returncode == code and words in line and "-o names another place" in line,
                  f"{verb} -o {path}: exit {done.returncode}: {line}")
            check(("--no-bundle" in line) == (verb == "prove"), f"{verb} -o {path}: {line}")
    check(taken.read_text() == "x", "a file was replaced")


def usage_errors(top):
    """Options that would say nothing are refused, in one line."""
    for arguments in (("prove", "--no-bundle", "-o", top / "x"), ("prove", "--no-bundle", "--force"),
                      ("bundle", "verify", top / "x", "--replay", top),
                      ("bundle", "show", top / "x", "--root", top),
                      ("prove", "--root", top, "--replay", top)):
        done = peerpath(*arguments)
        check(done.returncode == 64 and done.stdout == "", f"{arguments}: exit {done.returncode}")
        check(done.stderr.count("\n") == 1, f"{arguments}: {done.stderr!r}")


def denied(top):
    """A directory that may not be read is not taken for one that is no recording."""
    program, tree = top / "peerpath", top / "denied"
    shutil.copy(PEERPATH, program)
    (tree / "sys").mkdir(parents=True)
    top.chmod(0o755)
    tree.chmod(0)
    more = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    done = run(program, "identity", "--replay", tree, **more)
    check(done.returncode == 65 and "permission denied" in done.stderr, f"denied: {done.stderr!r}")
    done = run(program, "prove", "--replay", tree, "-o", tree / "x", **more)
    check(done.returncode == 70 and "EACCES" in done.stderr and "--no-bundle" in done.stderr,
          f"denied: {done.stderr!r}")
    done = run(program, "bundle", "verify", tree, **more)
    check(done.returncode == 65 and "permission denied" in done.stderr, f"denied: {done.stderr!r}")
    tree.chmod(0o700)


def check_memory(bad):
    with subprocess.Popen([PEERPATH, "bundle", "verify", bad], stderr=subprocess.DEVNULL) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    check(usage.ru_maxrss < 600 << 10, f"a bomb took {usage.ru_maxrss >> 10} MiB")


def bombs(bad):
    header = bytearray(tar_of(("raw/x", tarfile.REGTYPE, b""))[:512])
    with subprocess.Popen(["zstd", "-qf", "-", "-o", bad], stdin=subprocess.PIPE) as packer:
        info = tarfile.TarInfo("raw/big")
        info.size = 256 << 20
        packer.stdin.write(info.tobuf())
        for _ in range(256):
            packer.stdin.write(b"\0" * (1 << 20))
        packer.stdin.close()
    refused(bad, "bytes: refused")
    check_memory(bad)
    size = bad.stat().st_size
    check(size < 1 << 20, f"the bomb has {size} bytes")
    with subprocess.Popen(["zstd", "-qf", "-", "-o", bad], stdin=subprocess.PIPE) as packer:
        for _ in range(200):
            packer.stdin.write(bytes(header) * 1001)
        packer.stdin.close()
    refused(bad, "more than 200000 files")
    check_memory(bad)


# What may differ between the facts of a recording and of its scrubbed copy.
SCRUBBED_FACTS = {
    "gpu.uuid", "gpu.serial", "hca.node_guid", "hca.sys_image_guid", "port.gids", "kernel.build", "kernel.boot_id",
    "kernel.cmdline", "kmsg.lines", "limits.cgroup",
}


def part_scrub(top):
    for preset, fault in (("good2", "roce"), ("good2", "vm-flat")):
        made = machine(top, f"made-{preset}-{fault}", preset, f"--faults={fault}")
        archive = top / f"{preset}-{fault}.tar.zst"
        capture(made, archive, "--scrub")
        opened = unpack(archive, top / f"opened-{preset}-{fault}")
        secrets = identifiers(made)
        check(len(secrets) > 5, f"only {len(secrets)} identifiers to look for")
        wanted = re.compile("|".join(map(re.escape, sorted(secrets))), re.I)
        for path in opened.rglob("*"):
            name = str(path.relative_to(opened))
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            hit = wanted.search(name) or wanted.search(data.decode("latin-1"))
            check(not hit, f"{hit and hit[0]} is still in {name}")
        check(same_facts(made, archive) > 2, "no fact was scrubbed")
        manifest = json.loads((opened / "manifest.json").read_text())
        check(manifest["scrubbed"] is True, "the manifest does not say scrubbed")


def same_facts(before, after):
    """Each fact is there and the same, but for those that name somebody; how many differ."""
    before, after = facts(before), facts(after)
    check(len(before) == len(after) > 100, f"{len(before)} facts became {len(after)}")
    changed = 0
    for a, b in zip(before, after):
        check((a["fact"], a["of"]) == (b["fact"], b["of"]), f"{a['fact']} moved")
        if a["fact"] not in SCRUBBED_FACTS:
            check(a == b, f"{a['fact']} of {a['of']}: {a} became {b}")
        changed += a != b
    return changed


def part_recorded(top):
    """Real machines: their facts survive, their kernels' builders and GUIDs do not."""
    shared = pathlib.Path(os.environ.get("PEERPATH_SHARED", ROOT / "../shared"))
    names = ("32em64t-2n8c+dax+nvme+mic+dimms", "40intel64-2g2n4c+pcilocality", "nvidia-dgx-gb10")
    archives = [shared / f"data/topology/hwloc/{name}.tar.bz2" for name in names]
    if not all(a.exists() for a in archives):
        skip("needs the recorded machines: set PEERPATH_SHARED")
    changed = 0
    for archive in archives:
        tree = top / archive.name.removesuffix(".tar.bz2")
        with tarfile.open(archive) as tar:
            tar.extractall(tree)
        roots = [p.parent for p in tree.rglob("sys") if p.is_dir() and (p / "devices").is_dir()]
        if not check(roots, f"{archive.name}: no sys/ in it"):
            continue
        out = top / f"{archive.name}.tar.zst"
        capture(roots[0], out, "--scrub")
        changed += same_facts(roots[0], out)
        version = roots[0] / "proc/version"
        name = version.read_text().partition("@")[2].partition(")")[0] if version.exists() else ""
        text = must("tar", "--zstd", "-xOf", out, "facts.json")
        check(not name or name not in text, f"{archive.name}: {name} is still there")
    check(changed > 5, f"only {changed} facts were scrubbed")


def identifiers(made):
    """What a made machine has that a scrubbed one must not."""
    found = {"made-node"}
    for path in (made / "raw").rglob("*"):
        if path.name in ("node_guid", "sys_image_guid", "address") and path.is_file():
            text = path.read_text().strip()
            if text.count(":") >= 3:
                found.add(text)
        elif "/gids/" in str(path) and path.is_file():
            text = path.read_text().strip()
            if not text.startswith("0000:0000:0000:0000:0000:0000"):
                found.add(text)
    for path in (made / "answers").glob("*.json"):
        walk(json.loads(path.read_text()), found)
    return found


def walk(value, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str) and ("uuid" in key or "serial" in key) and len(inner.strip("0")) > 5:
                found.add(inner)
            walk(inner, found)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, found)


def part_interrupt(top):
    made = machine(top, "made", "good2")
    out = top / "out"
    out.mkdir()
    hits = 0
    for _ in range(20):
        with subprocess.Popen([PEERPATH, "capture", "--replay", str(made), "-o", str(out / "d")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            while p.poll() is None and not any(".tmp-" in n for n in os.listdir(out)):
                time.sleep(0.001)
            if p.poll() is None:
                p.send_signal(signal.SIGINT if hits % 2 else signal.SIGTERM)
            _, errors = p.communicate(timeout=60)
        if p.returncode == 130:
            hits += 1
            check(os.listdir(out) == [], f"left behind: {os.listdir(out)}")
            check("nothing was written" in errors, f"interrupted: {errors!r}")
        else:
            check(p.returncode == 0, f"exit {p.returncode}: {errors}")
            shutil.rmtree(out / "d")
        if hits == 2:
            return
    check(hits, "no signal came while writing")


def part_disk(top):
    made = machine(top, "made", "good2")
    small = top / "small"
    small.mkdir()
    if os.geteuid() or run("mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small).returncode:
        skip("needs root and the right to mount a small tmpfs")
    try:
        for name in ("x.tar.zst", "x"):
            done = peerpath("capture", "--replay", made, "-o", small / name)
            line = done.stderr.strip()
            check(done.returncode == 70, f"full disk: exit {done.returncode}: {line}")
            check("ENOSPC" in line and "\n" not in line, f"full disk: {line}")
            check(os.listdir(small) == [], f"full disk: left {os.listdir(small)}")
            verdict_kept(made, small / name)
            check(os.listdir(small) == [], f"full disk: prove left {os.listdir(small)}")
    finally:
        must("umount", small)


def verdict_kept(made, path):
    """A bundle that cannot be written hides no verdict."""
    want = json.loads(peerpath("prove", "--replay", made, "--no-bundle", "--json").stdout)
    done = peerpath("prove", "--replay", made, "-o", path, "--json")
    line = done.stderr.strip()
    check(done.returncode == 70 and "ENOSPC" in line and "\n" not in line,
          f"prove, full disk: exit {done.returncode}: {line}")
    if check(done.stdout, "prove, full disk: no verdict"):
        said = json.loads(done.stdout)
        check(said["bundle"] is None, f"prove, full disk: bundle {said['bundle']}")
        check(said["gates"] == want["gates"], "prove, full disk: other gates")
    text = peerpath("prove", "--replay", made, "-o", path)
    check("Verdict" in text.stdout and text.returncode == 70, "prove, full disk: no table")


def main():
    global PEERPATH, ROOT
    PEERPATH, ROOT, part = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    for tool in ("tar", "zstd", "sha256sum"):
        if not shutil.which(tool):
            skip(f"needs {tool}")
    # Thousands of small files; but an interrupt needs a disk slow enough to come in between.
    memory = pathlib.Path("/dev/shm")
    quick = part != "interrupt" and os.access(memory, os.W_OK) and \
        shutil.disk_usage(memory).free > 1 << 29
    with tempfile.TemporaryDirectory(prefix="peerpath-e2e-", dir=memory if quick else None) as top:
        globals()[f"part_{part}"](pathlib.Path(top))
    print("\n".join(FAULTS[:40]) or f"{CHECKS} checks")
    return 1 if FAULTS or not CHECKS else 0


if __name__ == "__main__":
    sys.exit(main())
