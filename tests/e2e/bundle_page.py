#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bundle html from outside: Python's parsers of HTML and XML are the judges.

usage: bundle_page.py PEERPATH PROJECT-ROOT

Every page: well-formed, nothing that runs, nothing fetched, what the bundle says is on it, and a hostile text is text.
"""
import html
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import bundle

PEERPATH = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
ALLOWED = set("html head meta title style body h1 h2 h3 p div span table thead tbody tr th td code pre ul li details summary "
              "svg g path rect circle line text".split())
FETCHES = ("src", "href", "xlink:href", "action", "data", "srcset", "formaction", "poster", "background")
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</pre></details></body><iframe src=//x.example>",
           "]]><!--", "&lt;script&gt;", "a\u202eb\u2066c", "{}'\\`${7*7}", "javascript:alert(1)")
faults = []


def check(what, good):
    if not good:
        faults.append(str(what)[:1500])


def run(top, *argv, code, **kw):
    done = subprocess.run([PEERPATH, *map(str, argv)], cwd=top, capture_output=True, text=True, timeout=100, **kw)
    if done.returncode != code:
        faults.append(f"{argv}: exit {done.returncode}, not {code}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done


class Page(HTMLParser):
    """Elements, attributes and text, as a browser takes them."""

    def __init__(self, name, text):
        super().__init__()
        self.name, self.open, self.text, self.tags = name, [], [], {}
        self.feed(text)
        self.close()
        check(f"{name}: open at the end: {self.open}", not self.open)
        self.all = "".join(self.text)

    def handle_starttag(self, tag, attributes):
        self.look(tag, attributes)
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.look(tag, attributes)

    def look(self, tag, attributes):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        check(f"{self.name}: <{tag} {attributes}>", tag in ALLOWED)
        for name, value in attributes:
            bad = name.startswith("on") or name in FETCHES or "url(" in (value or "") or "javascript:" in (value or "")
            check(f"{self.name}: <{tag} {name}={value!r}>", not bad or name == "aria-label")

    def handle_endtag(self, tag):
        check(f"{self.name}: </{tag}> inside {self.open[-3:]}", self.open and self.open.pop() == tag)

    def handle_data(self, data):
        self.text.append(data)


def page_of(top, path, out="page.html"):
    run(top, "bundle", "html", path, "-o", out, "--force", code=0)
    if not (top / out).exists():
        sys.exit("\n".join(faults))
    text = (top / out).read_text()  # valid UTF-8
    ElementTree.fromstring(text.split("\n", 1)[1])
    odd = [c for c in text if (ord(c) < 32 and c != "\n") or 0x202a <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069]
    check(f"{path}: control characters {odd[:5]}", not odd)
    check("policy", "default-src 'none'" in text and text.count("<meta") == 3)
    return Page(str(path), text), text


def recorded(top):
    """A recorded machine: gates, picture, the text behind facts, digests."""
    machine = ROOT / "tests/fixtures/machines/h200-2gpu.tar.zst"
    run(top, "prove", "--replay", machine, "-o", "m.tar.zst", code=2)
    page, text = page_of(top, "m.tar.zst")
    opened = bundle.unpack(top / "m.tar.zst", top / "m")
    result = json.loads((opened / "result.json").read_text())
    for g in result["gates"]:
        for key in ("claim", "raise", "next") + (("evidence",) if g["asked"] else ()):
            check(f"gate {g['gate']}: {key}", not g[key] or g[key] in page.all)
        check(f"gate {g['gate']}: word", (g["verdict"] if g["asked"] else "not asked for") in page.all)
    check("the picture", page.tags.get("svg", 0) == 1 and "GPUs, hcas and the way between them" in page.all)
    facts = json.loads((opened / "facts.json").read_text())["facts"]
    for f in facts:
        check(f"fact {f['fact']}", f["fact"] in page.all)
        if f.get("source"):
            check(f"source {f['source']}", f["source"] in page.all)
    release = (opened / "raw/proc/sys/kernel/osrelease").read_text().strip()
    check("raw text", release in page.all and (opened / "raw/proc/version").read_text().strip() in page.all)
    for f in json.loads((opened / "manifest.json").read_text())["files"]:
        check(f"digest of {f['path']}", f["sha256"] in page.all and html.escape(f["path"]) in text)
    check("no simulation", "imulat" not in page.all.replace("exercised in simulation", "").replace("--simulate", ""))
    # The same bundle gives the same page; a capture has one without verdicts.
    again = page_of(top, "m.tar.zst", "again.html")[1]
    check("twice", again == text)
    page, _ = page_of(top, machine)
    check("capture", "capture: a recording, no verdict" in page.all and page.tags.get("svg") == 1)


CANARY = """[workload]
name = made & <b>bold</b>
[run]
repeats = 4
[metric speed]
pattern = tokens/s: ([0-9.]+)
direction = higher
margin = 5%
unit = tokens/s
slo = 50
"""


def workload(top):
    (top / "c.ini").write_text(CANARY)
    run(top, "canary", "-f", "c.ini", "-o", "before.tar.zst", "--", "sh", "-c", "echo tokens/s: 41", code=0)
    page, _ = page_of(top, "before.tar.zst")
    check("canary", "made & <b>bold</b>" in page.all and "canary: a workload as it was measured" in page.all)
    check(f"dots: {page.tags}", page.tags.get("circle") == 4)
    run(top, "prove", "--canary", "c.ini", "--before", "before.tar.zst", "-o", "p.tar.zst", "--", "sh", "-c", "echo tokens/s: 43", code=2)
    page, _ = page_of(top, "p.tar.zst")
    check("comparison", "Not compared: what differs was not declared" in page.all and "topology class is not known" in page.all)


def strewn(value, n=[0]):
    """Every text of a document beside a hostile one; what decides how it is read stays."""
    if isinstance(value, dict):
        return {k: v if k in ("schema", "verdict", "claim_state", "name", "source", "reduce", "direction", "group", "through",
                              "path", "mechanism", "claim_gdr", "claim_mechanism", "started", "took_s")
                and isinstance(v, str) else strewn(v) for k, v in value.items()}
    if isinstance(value, list):
        return [strewn(v) for v in value]
    if isinstance(value, str):
        n[0] += 1
        return value + HOSTILE[n[0] % len(HOSTILE)]
    return value


def add(opened, files, **more):
    """Files into an unpacked bundle, and its manifest with them."""
    manifest = json.loads((opened / "manifest.json").read_text()) | more
    listed, directories = {f["path"] for f in manifest["files"]}, set(manifest["directories"])
    for name, data in files.items():
        (opened / name).parent.mkdir(parents=True, exist_ok=True)
        (opened / name).write_bytes(data)
        if name not in listed:
            manifest["files"].append({"path": name, "bytes": 0, "sha256": ""})
        directories |= {str(p) for p in pathlib.PurePath(name).parents if str(p) != "."}
    manifest["files"].sort(key=lambda f: f["path"].encode())
    manifest["directories"] = sorted(directories, key=str.encode)
    (opened / "manifest.json").write_text(json.dumps(manifest))
    bundle.sign(opened)


def hostile(top):
    opened = bundle.unpack(top / "p.tar.zst", top / "h")
    for name in ("result.json", "canary.json", "before/0.json"):
        path = opened / name
        path.write_text(json.dumps(strewn(json.loads(path.read_text()))))
    raw = "".join(HOSTILE) + "\n" + "x" * 300000 + "\nnul:\0 bell:\a esc:\x1b[31m\n\x7f" + "\n" * 3000
    (opened / "raw/proc/version").write_bytes(raw.encode() + b"\xff\xfe\xc3\n")
    (opened / "answers/nvml.json").write_text(json.dumps({"schema": "peerpath.answer/1", "x": "".join(HOSTILE)}))
    records = {"schema": "peerpath.evidence/1", "node": HOSTILE[0], "evidence": [
        {"pair": HOSTILE[1], "rung": HOSTILE[2], "why": HOSTILE[3], "state": HOSTILE[0], "sightings": [
            {"surface": HOSTILE[0], "registration": HOSTILE[1], "raw": raw.replace("\0", "")}],
         "missing": [{"surface": HOSTILE[2], "why": HOSTILE[0], "how": HOSTILE[1]}]}, 7, None, "x"]}
    add(opened, {"nodes/<script>/evidence.json": json.dumps(records).encode(), "nodes/<script>/capture.tar.zst": b"no archive",
                 "bench.json": b'{"schema": "peerpath.bench/1", "nodes": 3}', "nccl.json": b"[" * 5000},
        host="<script>alert(2)</script>")
    done = run(top, "bundle", "html", "h", "-o", "h.html", code=0)
    # What cannot be read is said, and the rest is there.
    for part in ("bench.json", "nccl.json", "capture.tar.zst"):
        check(f"{part}: {done.stderr}", part in done.stderr)
    page, text = page_of(top, "h", "h.html")
    check("no script", "<script" not in text and "<img" not in text and "<iframe" not in text)
    check("shown as text", HOSTILE[0] in page.all)
    check("cut, and said", "bytes more]" in page.all and "bytes are not shown]" in page.all)
    check("replacement", "\ufffd" in page.all)
    check(f"bounded: {len(text)}", len(text) < 3 << 20)
    # A verdict that is none is no class, and nothing that it says is believed.
    result = json.loads((opened / "result.json").read_text())
    result["gates"] = [{"gate": 0, "name": 5, "verdict": 'pass"><b>', "claim": ["x"], "asked": "yes"}] * 40
    result["verdict"] = 7
    (opened / "result.json").write_text(json.dumps(result))
    bundle.sign(opened)
    page, text = page_of(top, "h", "h.html")
    check("unknown", 'class="verdict unknown"' in text and "<b>" not in text)
    (opened / "result.json").write_text("[[[[")
    bundle.sign(opened)
    page_of(top, "h", "h.html")


def several(top):
    """Nodes of gate 2: each has its picture; this one is not drawn twice."""
    opened = bundle.unpack(top / "p.tar.zst", top / "n")
    machine = (ROOT / "tests/fixtures/machines/h200-2gpu.tar.zst").read_bytes()
    add(opened, {"nodes/gpu-b/capture.tar.zst": machine, "nodes/gpu-c/capture.tar.zst": machine,
                 "nodes/here/capture.tar.zst": (top / "before.tar.zst").read_bytes()})
    page, _ = page_of(top, "n", "n.html")
    check("machines", all(f"The machine gpu-{x}" in page.all for x in "bc") and "The machine here" not in page.all)
    check(f"pictures: {page.tags}", page.all.count("GPUs, hcas and the way between them") == 3)


def refused(top):
    for argv, code, says in (
            (["m.tar.zst"], 64, "-o FILE"), (["m.tar.zst", "-o", "page.html"], 64, "page.html"),
            (["m.tar.zst", "-o", "none/page.html"], 70, "none"), (["m.tar.zst", "-o", "/dev/full", "--force"], 70, "/dev/full"),
            (["m.tar.zst", "-o", "-", "-j"], 64, "--json"), (["none.tar.zst", "-o", "x.html"], 65, "none.tar.zst")):
        done = run(top, "bundle", "html", *argv, code=code)
        check(f"{argv}: {done.stderr}", says in done.stderr and done.stderr.count("\n") == 1)
    done = run(top, "bundle", "show", "m.tar.zst", "-o", "x.html", code=64)
    check(done.stderr, "goes with html" in done.stderr)
    (top / "m/result.json").write_text("{}")
    done = run(top, "bundle", "html", "m", "-o", "x.html", code=65)
    check(done.stderr, "result.json" in done.stderr)
    check("nothing written", not (top / "x.html").exists())
    done = run(top, "bundle", "html", "m.tar.zst", "-o", "-", code=0)
    check("standard output", done.stdout.startswith("<!DOCTYPE html>") and done.stdout.rstrip().endswith("</html>"))
    done = run(top, "bundle", "html", "m.tar.zst", "-o", "j.html", "-j", code=0)
    check("json", json.loads(done.stdout)["page"] == "j.html")


def main():
    bundle.PEERPATH, bundle.ROOT = PEERPATH, ROOT
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        for part in (recorded, workload, hostile, several, refused):
            part(top)
    print("\n".join(faults[:40]) or "pages of recorded, measured, hostile and several machines")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
