#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drawings and planned layouts of made machines, whose faults are known because they were made.

Python's XML parser (expat) says that a drawing is well-formed; the words in it say that a person
can see the fault, and that a healthy machine shows none.
"""
import os
import re
import sys
import xml.etree.ElementTree as ET

import machines

SVG = "{http://www.w3.org/2000/svg}"
failures = []

# faults -> words that the drawing must hold, classes that must be used
SHOWN = {
    ("narrow-link",): (["Gen5 x8 of x16", "1 fault"], ["badline"]),
    ("slow-link",): (["Gen4 of Gen5 x16"], ["badline"]),
    ("acs-redirect",): (["ACS RR+CR", "redirects peer traffic"], ["badline"]),
    ("far-nic",): (["far rail: SYS to mlx5_0"], ["far", "fault"]),
    ("port-down",): (["port is DOWN"], ["fault"]),
    ("no-rdma-device",): (["no RDMA device", "no rail"], ["fault"]),
    ("bar1-256m",): (["BAR1 256 MiB", "BAR1 is smaller than its memory"], ["fault"]),
    ("iommu-translated",): (["IOMMU translates"], ["fault"]),
    ("vm-flat",): (["no NUMA node", "far rail: PHB"], ["far"]),
    ("acs-unreadable",): (["? unknown:"], ["grey"]),
}


def fail(name, text):
    failures.append(f"{name}: {text}")


def draw(name, tree):
    """(all text, classes used, element) of the drawing; None after a failure."""
    status, out, err = machines.run("topo", "--svg", "-", "--replay", tree)
    if status or err:
        fail(name, f"exit status {status}: {err!r}")
        return None
    try:
        root = ET.fromstring(out)
    except ET.ParseError as e:
        fail(name, f"not well-formed: {e}")
        return None
    if root.tag != f"{SVG}svg" or root.find(f"{SVG}title") is None or root.find(f"{SVG}desc") is None:
        fail(name, "no svg, title or desc")
    classes = {c for e in root.iter() for c in e.get("class", "").split()}
    texts = [e.text or "" for e in root.iter(f"{SVG}text")]
    inside(name, root)
    return texts, classes, root


def inside(name, root):
    """Every box lies on the canvas, and no two device boxes overlap."""
    w, h = int(root.get("width")), int(root.get("height"))
    boxes = []
    for group in root.iter(f"{SVG}g"):
        r = group.find(f"{SVG}rect")
        box = [int(r.get(k)) for k in ("x", "y", "width", "height")]
        if box[0] < 0 or box[1] < 0 or box[0] + box[2] > w or box[1] + box[3] > h:
            fail(name, f"a box lies outside the canvas: {box}")
        boxes.append(box)
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            if (
                a[0] < b[0] + b[2]
                and b[0] < a[0] + a[2]
                and a[1] < b[1] + b[3]
                and b[1] < a[1] + a[3]
            ):
                fail(name, f"boxes overlap: {a} {b}")


def faults(work):
    for wanted, (words, classes) in SHOWN.items():
        name = "+".join(wanted)
        got = draw(name, machines.make(f"{work}/{name}", "good2", wanted))
        if not got:
            continue
        for word in words:
            if not any(word in t for t in got[0]):
                fail(name, f"'{word}' is not in the drawing")
        for c in classes:
            if c not in got[1]:
                fail(name, f"nothing has class {c}")


def healthy(work):
    for preset, rails, groups in (("good2", 2, 0), ("good8", 8, 4), ("nic300", 2, 2)):
        got = draw(preset, machines.make(f"{work}/{preset}", preset))
        if not got:
            continue
        bad = got[1] & {"bad", "badline", "badlink", "fault", "far", "grey"}
        if bad:
            fail(preset, f"a healthy machine has {sorted(bad)}")
        if "no fault seen" not in got[0]:
            fail(preset, "does not say that no fault was seen")
        if sum(t.startswith("rail ") for t in got[0]) != 2 * rails:
            fail(preset, f"not {rails} rails")
        if sum(t.endswith("hcas, no rail") for t in got[0]) != groups:
            fail(preset, f"not {groups} counted boxes")


def hostile_names(work):
    """A name out of sysfs or a driver's answer is text, whatever it holds."""
    tree = machines.make(f"{work}/names", "good2")
    answer = f"{tree}/answers/nvml.json"
    with open(answer, encoding="utf-8") as f:
        text = f.read()
    name = "<script>alert(1)</script>&amp;]]>\\u0007\\ud83d\\ude00"
    with open(answer, "w", encoding="utf-8") as f:
        f.write(text.replace("NVIDIA H100 80GB HBM3", name))
    got = draw("hostile names", tree)
    if got:
        if any(e.tag.endswith("script") for e in got[2].iter()):
            fail("hostile names", "an element was made of a name")
        if not any("<script>alert(1)" in t for t in got[0]):
            fail("hostile names", "the name is not shown")


def files(work):
    """The drawing replaces a file as a whole; a refused one leaves nothing behind."""
    tree = machines.make(f"{work}/files", "good2")
    place = f"{work}/out"
    os.mkdir(place)
    write = ("topo", "--svg", f"{place}/a.svg", "--replay", tree)
    for more in ((), ("--force",)):
        status, out, err = machines.run(*write, *more)
        if status or err:
            fail("file", f"exit status {status}: {err!r}")
        if out.decode().split() != ["drawing", f"{place}/a.svg"]:
            fail("file", f"says more than what was written: {out!r}")
    with open(f"{place}/a.svg", "w", encoding="utf-8") as f:
        f.write("<precious/>")
    status, out, err = machines.run(*write)
    if status != 64 or out or b"--force" not in err:
        fail("file", f"an existing file: exit status {status}: {err!r}")
    if ET.parse(f"{place}/a.svg").getroot().tag != "precious":
        fail("file", "an existing file was replaced without --force")
    status, _, _ = machines.run("topo", "--svg", f"{place}/none/a.svg", "--replay", tree)
    if status != 70:
        fail("file", f"no such directory: exit status {status}")
    if os.listdir(place) != ["a.svg"]:
        fail("file", f"left behind: {os.listdir(place)}")


def layouts(work):
    """A layout written on a good node is met there, and not by machines made with a fault."""
    good = machines.make(f"{work}/layout", "good2")
    file = f"{work}/good.layout"
    status, _, err = machines.run("topo", "--expect-write", file, "--replay", good)
    if status:
        fail("layout", f"--expect-write: exit status {status}: {err!r}")
        return
    # exit status and a word of the table
    expected = {
        (): (0, "met"),
        ("narrow-link",): (1, "lanes"),
        ("slow-link",): (1, "16000"),
        ("far-nic",): (1, "missing"),
        ("port-down",): (1, "hca"),
        ("iommu-translated",): (1, "DMA-FQ"),
        ("acs-redirect",): (1, "ACS redirect"),
        ("acs-unreadable",): (2, "unknown"),
        ("vm-flat",): (1, "missing"),
        # what cannot be seen does not hide what differs
        ("narrow-link", "acs-unreadable"): (1, "unknown"),
    }
    for wanted, (code, word) in expected.items():
        name = "layout of " + ("+".join(wanted) or "the good node")
        tree = machines.make(f"{work}/l-{'+'.join(wanted)}", "good2", wanted)
        status, out, _ = machines.run("topo", "--expect", file, "--replay", tree)
        if status != code:
            fail(name, f"exit status {status}, expected {code}: {out.decode()}")
        if not re.search(word, out.decode()):
            fail(name, f"'{word}' is not in {out.decode()}")


def main():
    with machines.scratch() as work:
        machines.need_program()
        for part in (faults, healthy, hostile_names, files, layouts):
            part(work)
    for f in failures:
        print(f"FAIL {f}")
    print(f"drawing: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
