#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile and broken machines and files.

Whatever it reads, the program ends by itself with one of its exit codes, in bounded time and
memory, says why on one line where it refuses, and never passes a machine that it could not see.
"""
import json
import os
import shutil
import sys
import threading

import machines
from checks import fail, finish, no_control_bytes, one_line, run

VERBS = (("identity",), ("topo",), ("check",), ("prove", "--no-bundle"))


def survives(name, tree, may_pass=False, verbs=VERBS, source="--replay"):
    """All reading verbs, text and JSON; no verdict passes unless it may."""
    for verb in verbs:
        for form in ((), ("--json",)):
            got = run(name, *verb, source, tree, *form)
            if not got:
                continue
            status, out, err = got
            if status not in (0, 1, 2, 65):
                fail(name, f"{verb[0]}: exit status {status}: {err!r}")
            if status == 65:
                one_line(name, err)
            no_control_bytes(name, out, err)
            if verb[0] in ("check", "prove") and status == 0 and not may_pass:
                fail(name, f"{verb[0]} passes")
            if form and status != 65:
                document(name, verb[0], out, may_pass)


def document(name, verb, out, may_pass):
    try:
        d = json.loads(out)
    except ValueError as e:
        fail(name, f"{verb} --json: {e}")
        return
    if not str(d.get("schema", "")).startswith("peerpath."):
        fail(name, f"{verb} --json: no schema")
    if not may_pass and d.get("verdict") == "pass":
        fail(name, f"{verb} --json: verdict pass")


def put(tree, path, content=b""):
    full = f"{tree}/raw{path}"
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if os.path.lexists(full):
        os.unlink(full)
    with open(full, "wb") as f:
        f.write(content)
    return full


def all_files(tree, *below):
    for top in below or ("",):
        for d, names, leaves in os.walk(f"{tree}/raw{top}"):
            yield from (f"{d}/{n}" for n in leaves)
            yield from (f"{d}/{n}" for n in names if os.path.islink(f"{d}/{n}"))


# -- roots


def no_machine(work):
    empty = f"{work}/empty"
    os.mkdir(empty)
    for source in ("--replay", "--root"):
        for verb in VERBS:
            got = run("empty directory", *verb, source, empty)
            if got and source == "--replay" and got[0] != 65:
                fail("empty directory", f"{verb} {source}: exit status {got[0]}")
            judges = verb[0] in ("check", "prove")
            if got and source == "--root" and got[0] not in (1, 2) and (judges or got[0]):
                fail("empty directory", f"{verb} {source}: exit status {got[0]}")
    os.makedirs(f"{empty}/proc")
    survives("a root without /sys", empty)
    survives("a root without /sys", empty, source="--root", verbs=VERBS[:2])
    for target in (f"{work}/absent", "/dev/null", "/etc/passwd"):
        got = run("no tree", "identity", "--replay", target)
        if got:
            if got[0] != 65:
                fail("no tree", f"{target}: exit status {got[0]}")
            one_line("no tree", got[2])


# -- contents


def contents(work):
    kinds = {
        "empty files": b"",
        "binary files": bytes(range(256)) * 8,
        "escape sequences": b"\x1b[2J\x1b]0;owned\x07 text\n",
        "endless digits": b"9" * 5000 + b"\n",
        "negative numbers": b"-1\n",
        "broken UTF-8": b"\xff\xfe\xc0\xaf\n",
    }
    for name, content in kinds.items():
        tree = machines.make(f"{work}/c", "good2")
        for full in all_files(tree):
            if not os.path.islink(full):
                with open(full, "wb") as f:
                    f.write(content)
        survives(name, tree)
        shutil.rmtree(tree)


def truncated(work):
    tree = machines.make(f"{work}/t", "good2")
    for full in all_files(tree):
        if not os.path.islink(full):
            os.truncate(full, os.path.getsize(full) // 2)
    survives("every file cut in half", tree)
    shutil.rmtree(tree)


def huge(work):
    for path in (
        "/proc/driver/nvidia/version",
        "/sys/module/nvidia/version",
        "/proc/modules",
        "/proc/kallsyms",
        "/proc/self/limits",
        "/etc/os-release",
        "/sys/devices/pci0000:15/0000:15:01.0/config",
    ):
        tree = machines.make(f"{work}/h", "good2")
        os.truncate(put(tree, path, b"x"), 1 << 30)
        # Where a second source tells the same, or nothing depends on it, the verdict may stay.
        survives(f"1 GiB {path}", tree, may_pass="modules" not in path)
        shutil.rmtree(tree)
    tree = machines.make(f"{work}/h", "good2")
    os.truncate(f"{tree}/answers/nvml.json", 1 << 30)
    survives("1 GiB answer", tree)
    shutil.rmtree(tree)


# -- shapes


def replaced(work, name, make):
    """Every file in turn of some places becomes something else, all at once."""
    for top in ("/proc", "/sys/class", "/sys/devices", ""):
        tree = machines.make(f"{work}/r", "good2")
        for full in list(all_files(tree, top)):
            os.unlink(full)
            make(full)
        survives(f"{name} in {top or '/'}", tree)
        shutil.rmtree(tree)


def shapes(work):
    replaced(work, "symlink loops", lambda f: os.symlink(os.path.basename(f), f))
    replaced(work, "FIFOs", os.mkfifo)
    replaced(work, "directories", os.mkdir)
    replaced(work, "links out of the root", lambda f: os.symlink("/etc/passwd", f))
    replaced(work, "links upward", lambda f: os.symlink("../" * 60 + "etc/shadow", f))


def unreadable(work):
    tree = machines.make(f"{work}/u", "good2")
    with open(f"{tree}/raw.errors", "w", encoding="utf-8") as f:
        for path in ("/sys/bus/pci/devices", "/sys/class/infiniband", "/sys/kernel/iommu_groups"):
            f.write(f"EACCES\t{path}\n")
    survives("unreadable directories", tree)
    for text in ("nonsense\n", "EACCES /a b\n", "ENOSUCH\t/x\n", "EACCES\tx\n", "EACCES\t/../x\n"):
        with open(f"{tree}/raw.errors", "w", encoding="utf-8") as f:
            f.write(text)
        got = run("bad raw.errors", "identity", "--replay", tree)
        if got and got[0] != 65:
            fail("bad raw.errors", f"{text!r}: exit status {got[0]}")
    shutil.rmtree(tree)


def answers(work):
    texts = [b"", b"{", b"[]", b"null", b'{"outcome": "answered"}', b"\xff", b"[" * 100000]
    texts.append(b'{"outcome": "answered", "data": ' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}")
    texts.append(b'{"outcome": "answered", "data": {"gpus": [1, null, {}, {"bdf": 7}]}}')
    texts.append(b'{"outcome": "answered", "data": {"gpus": [{"bdf": "ffffffff:ff:1f.7"}]}}')
    many = [{"index": i, "bdf": f"0000:{i % 256:02x}:00.0"} for i in range(20000)]
    texts.append(json.dumps({"outcome": "answered", "data": {"gpus": many}}).encode())
    for i, text in enumerate(texts):
        tree = machines.make(f"{work}/a", "good2")
        for file in os.listdir(f"{tree}/answers"):
            with open(f"{tree}/answers/{file}", "wb") as f:
                f.write(text)
        survives(f"answers {i}", tree)
        shutil.rmtree(tree)


# -- PCI trees


def device(tree, path, **attributes):
    bdf = path.rsplit("/", 1)[1]
    for name, value in {"vendor": "0x10de", "device": "0x2330", "class": "0x030200"}.items():
        put(tree, f"{path}/{name}", attributes.get(name, value).encode() + b"\n")
    bus = f"{tree}/raw/sys/bus/pci/devices"
    os.makedirs(bus, exist_ok=True)
    if not os.path.lexists(f"{bus}/{bdf}"):
        os.symlink(os.path.relpath(path, "/sys/bus/pci/devices"), f"{bus}/{bdf}")


def trees(work):
    tree = machines.make(f"{work}/p", "good2")
    bus = f"{tree}/raw/sys/bus/pci/devices"
    up = f"{tree}/raw/sys/devices/pci0000:15/0000:15:01.0"
    # A cycle: a function's directory holds a link to its own ancestor under a BDF name.
    os.symlink("..", f"{up}/0000:16:00.0/0000:ff:00.0")
    os.symlink("../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:ff:00.0", f"{bus}/0000:ff:00.0")
    os.symlink("0000:fe:00.0", f"{bus}/0000:fe:00.0")
    survives("a PCI tree with cycles", tree, may_pass=True)
    shutil.rmtree(tree)

    tree = machines.make(f"{work}/p", "good2")
    bus = f"{tree}/raw/sys/bus/pci/devices"
    # One address, two places; one name for another's directory.
    device(tree, "/sys/devices/pci0000:70/0000:18:00.0")
    os.unlink(f"{bus}/0000:2a:00.0")
    os.symlink("../../../devices/pci0000:70/0000:18:00.0", f"{bus}/0000:2a:00.0")
    survives("duplicate addresses", tree)
    shutil.rmtree(tree)

    tree = machines.make(f"{work}/p", "good2")
    device(tree, "/sys/devices/pci10000:00/10000:00:02.0", **{"class": "0x060400"})
    device(tree, "/sys/devices/pci10000:00/10000:00:02.0/10000:01:00.0")
    device(tree, "/sys/devices/pciffffffff:ff/ffffffff:ff:1f.7")
    device(tree, "/sys/devices/pci100000000:00/100000000:00:00.0")
    survives("32-bit and wider domains", tree)
    got = run("32-bit domains", "topo", "--replay", tree, "--json")
    if got and b"10000:01:00.0" not in got[1]:
        fail("32-bit domains", "10000:01:00.0 is not in the matrix")
    shutil.rmtree(tree)

    tree = machines.make(f"{work}/p", "good2")
    path = "/sys/devices/pci0000:70"
    for i in range(120):
        path += f"/0000:{i % 256:02x}:1f.{i // 256}"
        device(tree, path, **{"class": "0x060400"})
    survives("a tree 120 bridges deep", tree, may_pass=True)
    shutil.rmtree(tree)


def many_nics(work):
    tree = machines.make(f"{work}/n", "nic300")
    got = run("300 NICs", "topo", "--replay", tree)
    # 2 rails and 4 ports of two cards are shown, the functions of the cards are counted
    if got and b"(294 virtual functions" not in got[1]:
        fail("300 NICs", "virtual functions are not counted")
    got = run("300 NICs", "topo", "--json", "--replay", tree)
    if got and len(json.loads(got[1])["pairs"]) != 302 * 301 // 2:
        fail("300 NICs", "pairs are missing in JSON")
    survives("300 NICs", tree, may_pass=True)
    shutil.rmtree(tree)


def no_rdma_device(work):
    for faults in (("no-rdma-device",), ("no-rdma-device", "roce")):
        tree = machines.make(f"{work}/d", "good2", faults)
        survives("hca functions without RDMA device", tree)
        got = run("no RDMA device", "prove", "--no-bundle", "--json", "--replay", tree)
        if got and got[0] == 0:
            fail("no RDMA device", "passes")
        shutil.rmtree(tree)


def watchdog():
    """A FIFO that somebody opens for reading would hang the program, not this test."""
    print("bad_input: 5 minutes are over")
    os._exit(1)


def main():
    machines.need_program()
    timer = threading.Timer(300, watchdog)
    timer.daemon = True
    timer.start()
    with machines.scratch() as work:
        for part in (
            no_machine,
            contents,
            truncated,
            huge,
            shapes,
            unreadable,
            answers,
            trees,
            many_nics,
            no_rdma_device,
        ):
            part(work)
    return finish("bad_input")


if __name__ == "__main__":
    sys.exit(main())
