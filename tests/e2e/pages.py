#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every HTML page that the program makes, opened by headless Chromium without a network: no line on its console, no request
that leaves, nothing that is wider than the screen, at 390 and 1440 pixels, light and dark.

usage: pages.py PEERPATH PROJECT-ROOT

PEERPATH_TEST_SHOTS names a directory that keeps the screenshots, for a person to look at.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "soft"), str(pathlib.Path(__file__).resolve().parents[1])]
import chromium  # noqa: E402
import soft  # noqa: E402

PEERPATH, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WIDTHS, HEIGHT = (390, 1440), 2000
CSP = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*/>')
faults = []


def check(what, good):
    if not good:
        faults.append(str(what)[:1500])


def run(top, *argv, codes=(0,), command=None):
    argv = [PEERPATH, *map(str, argv)] + (["--", *command] if command else [])
    done = subprocess.run(argv, cwd=top, capture_output=True, text=True, timeout=200)
    if done.returncode not in codes:
        sys.exit(f"{argv}: exit {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def png(path):
    """Width, height, first pixel of a screenshot."""
    data = path.read_bytes() if path.exists() else b""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return 0, 0, (0, 0, 0)
    at, body = 8, b""
    while at < len(data):
        n = struct.unpack(">I", data[at:at + 4])[0]
        if data[at + 4:at + 8] == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        if data[at + 4:at + 8] == b"IDAT":
            body += data[at + 8:at + 8 + n]
        at += 12 + n
    return width, height, tuple(zlib.decompressobj().decompress(body, 8)[1:4])  # of the first pixel no filter changes anything


def opened(browser, page, *how):
    view = browser.page(*how)
    view.open(page.as_uri())
    view.wait("location.protocol === 'file:' && document.readyState === 'complete'")
    return view


def elsewhere(view, page):
    return [url for url in view.requests if url != page.as_uri() and not url.startswith("data:")]


def wide(view):
    """How wide is what the page holds, and how wide the window?"""
    return view.evaluate("[document.documentElement.scrollWidth, innerWidth]")


def look(browser, page, shots):
    check(f"{page.name}: no policy", len(CSP.findall(page.read_text())) == 1)
    for width in WIDTHS:
        for dark in (False, True):
            what = f"{page.name} at {width}{', dark' if dark else ''}"
            view = opened(browser, page, width, HEIGHT, dark)
            shot = shots / f"{page.stem}-{width}{'-dark' if dark else ''}.png"
            view.screenshot(shot)
            w, h, first = png(shot)
            check(f"{what}: screenshot {w}x{h}", (w, h) == (width, HEIGHT))
            check(f"{what}: {first}", (sum(first) < 200) if dark else (sum(first) > 600))
            for state in ("as it opens", "all of it open"):
                found, window = wide(view)
                check(f"{what}, {state}: {found} in {window}", found <= window == width)
                view.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
            check(f"{what}: console: {view.errors}", not view.errors)
            check(f"{what}: requests: {elsewhere(view, page)}", not elsewhere(view, page))


CANARY = """[workload]
name = made
command = one workload, faster
[run]
repeats = 6
[metric throughput of the whole job]
pattern = tokens/s: ([0-9.]+)
direction = higher
margin = 5%
unit = tokens/s
slo = 50
[metric cpu]
host = cpu-seconds
direction = lower
margin = 10
"""


def comparison(top):
    (top / "c.ini").write_text(CANARY)
    for name, speed in (("a", 100), ("b", 104)):
        run(top, "canary", "-f", "c.ini", "-o", f"{name}.tar.zst", "--", "sh", "-c",
            f"n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; echo tokens/s: $(({speed} + n % 3))")
        done = subprocess.run(["tar", "--zstd", "-xOf", f"{name}.tar.zst", "canary.json"], cwd=top, capture_output=True, check=True)
        d = json.loads(done.stdout)
        d["nodes"][0]["topology_class"] = "made"
        (top / f"{name}.json").write_text(json.dumps(d))
    run(top, "compare", "a.json", "b.json", "--html", "compare.html", codes=(0, 1, 2))


def make(top):
    comparison(top)
    run(top, "bench", "--simulate", "--rungs", "host,dmabuf,staged", "-s", "4K,64K,1M", "--repeats", "3", "-D", "2ms", "-n", "5", "--negative", "--html", "bench.html")
    run(top, "prove", "--simulate", "--canary", "c.ini", "--before", "a.json", "-s", "64K,1M", "--repeats", "2", "-D", "5ms",
        "-o", "p.tar.zst", command=["sh", "-c", "echo tokens/s: 103"])
    run(top, "bundle", "html", "p.tar.zst", "-o", "bundle-simulated.html")
    subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", "good8", "--faults", "narrow-link,far-nic,acs-redirect",
                    top / "machine"], check=True, capture_output=True)
    run(top, "prove", "--replay", "machine", "-o", "m.tar.zst", codes=(0, 1, 2))
    run(top, "bundle", "html", "m.tar.zst", "-o", "bundle-machine.html")
    return [top / f"{n}.html" for n in ("compare", "bench", "bundle-simulated", "bundle-machine")]


def control(top, browser):
    """What is looked for is found where it is."""
    bad = top / "bad.html"
    bad.write_text('<!DOCTYPE html><title>a</title><img src="http://x.example/a.png"><script>console.error("seen")</script>'
                   '<div style="width:3000px">w</div>')
    view = opened(browser, bad, 390, HEIGHT, False)
    found, window = wide(view)
    check(f"a bad page's console: {view.errors}", any("seen" in line for line in view.errors))
    check(f"a bad page's request: {view.requests}", any("x.example" in url for url in elsewhere(view, bad)))
    check(f"a wide page: {found} in {window}", window == 390 and 3000 <= found < 4000)


def main():
    soft.alone(needed=True)
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        if os.environ.get("PEERPATH_SANITIZED"):
            print(f"{len(make(top))} pages made: the plain build opens them, a browser has no sanitizer of ours")
            return 0
        try:
            with chromium.Browser() as browser:
                control(top, browser)
                for page in make(top):
                    look(browser, page, pathlib.Path(os.environ.get("PEERPATH_TEST_SHOTS") or top))
        except chromium.Absent as why:
            soft.skip(str(why))
    print("\n".join(faults) or "pages opened, light and dark, narrow and wide")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
