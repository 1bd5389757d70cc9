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
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soft"))
import soft  # noqa: E402

PEERPATH, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WIDTHS, HEIGHT = (390, 1440), 2000
OWN = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
       "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
       "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0")
BROWSERS_OWN = re.compile(r"file://|data:|chrome://|https?://[a-z0-9.-]+\.(?:google|googleapis|gvt1)\.com/")
CSP = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*/>')
# Only for the test: how wide is what the page holds, and how wide the window? In a frame, as a window has a least width.
MEASURE = ("<script>function tell(k){parent.postMessage([k,document.documentElement.scrollWidth+'/'+innerWidth],'*')}"
           "tell('wide');document.querySelectorAll('details').forEach(d=>d.open=true);tell('open')</script>")
FRAME = ("<!DOCTYPE html><title>a</title><script>addEventListener('message',e=>document.documentElement.dataset[e.data[0]]=e.data[1])"
         '</script><iframe src="{}" style="width:{}px;height:{}px;border:0"></iframe>')
faults = []


def check(what, good):
    if not good:
        faults.append(str(what)[:1500])


def run(top, *argv, codes=(0,), command=None):
    argv = [PEERPATH, *map(str, argv)] + (["--", *command] if command else [])
    done = subprocess.run(argv, cwd=top, capture_output=True, text=True, timeout=200)
    if done.returncode not in codes:
        sys.exit(f"{argv}: exit {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def chromium(top, page, *more):
    """Its standard output, console lines, and the requests that are no file of ours."""
    home = tempfile.mkdtemp(dir=top, prefix="chromium.")
    log = pathlib.Path(home) / "net.json"
    done = subprocess.run([soft_chromium, *OWN, f"--user-data-dir={home}", f"--log-net-log={log}", *more, f"file://{page}"],
                          capture_output=True, text=True, timeout=180, env={**os.environ, "HOME": home})
    check(f"{page.name}: chromium: exit {done.returncode}: {done.stderr[-800:]}", done.returncode == 0)
    # Of the browser's own pages and services nothing is said here.
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "source: chrome://" not in line]
    urls = set(re.findall(r'"url":"([^"]+)"', log.read_text(errors="replace"))) if log.exists() else {"no log of requests"}
    shutil.rmtree(home, ignore_errors=True)
    return done.stdout, console, {u for u in urls if not BROWSERS_OWN.match(u)}


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


def framed(top, page, width):
    frame = top / f"frame-{width}-{page.name}"
    frame.write_text(FRAME.format(page.name, width, HEIGHT))
    return chromium(top, frame, f"--window-size={width + 100},{HEIGHT + 100}", "--virtual-time-budget=4000", "--dump-dom")


def look(top, page):
    shots = pathlib.Path(os.environ.get("PEERPATH_TEST_SHOTS") or top)
    for width in WIDTHS:
        for dark in (False, True):
            shot = shots / f"{page.stem}-{width}{'-dark' if dark else ''}.png"
            _, console, urls = chromium(top, page, f"--window-size={width},{HEIGHT}", f"--screenshot={shot}",
                                        *(("--force-dark-mode",) if dark else ()))
            check(f"{page.name} at {width}: console: {console}", not console)
            check(f"{page.name} at {width}: requests: {urls}", not urls)
            w, h, first = png(shot)
            check(f"{page.name}: screenshot {w}x{h}", (w, h) == (width, HEIGHT))
            check(f"{page.name} at {width}, dark {dark}: {first}", (sum(first) < 200) if dark else (sum(first) > 600))
        text = page.read_text()
        copy = top / f"measured-{page.name}"
        check(f"{page.name}: no policy", len(CSP.findall(text)) == 1)
        copy.write_text(CSP.sub("", text).replace("</body>", MEASURE + "</body>"))
        dom = framed(top, copy, width)[0]
        for state in ("wide", "open"):
            found = re.search(rf'data-{state}="(\d+)/(\d+)"', dom)
            check(f"{page.name}: not measured: {dom[:200]}", found)
            if found:
                check(f"{page.name}, {state}, at {width}: {found[0]}", int(found[1]) <= int(found[2]) == width)


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
    run(top, "bench", "--simulate", "--rungs", "host,dmabuf,staged", "-s", "4K,64K,1M", "--repeats", "6", "-D", "2ms", "-n", "5", "--negative", "--html", "bench.html")
    run(top, "prove", "--simulate", "--canary", "c.ini", "--before", "a.json", "-s", "64K,1M", "--repeats", "2", "-D", "5ms",
        "-o", "p.tar.zst", command=["sh", "-c", "echo tokens/s: 103"])
    run(top, "bundle", "html", "p.tar.zst", "-o", "bundle-simulated.html")
    subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", "good8", "--faults", "narrow-link,far-nic,acs-redirect",
                    top / "machine"], check=True, capture_output=True)
    run(top, "prove", "--replay", "machine", "-o", "m.tar.zst", codes=(0, 1, 2))
    run(top, "bundle", "html", "m.tar.zst", "-o", "bundle-machine.html")
    return [top / f"{n}.html" for n in ("compare", "bench", "bundle-simulated", "bundle-machine")]


def control(top):
    """What is looked for is found where it is."""
    bad = top / "bad.html"
    bad.write_text('<!DOCTYPE html><title>a</title><img src="http://x.example/a.png"><script>console.error("seen")</script>'
                   '<div style="width:3000px">w</div>' + MEASURE)
    dom, console, urls = framed(top, bad, 390)
    check(f"a bad page's console: {console}", any("seen" in line for line in console))
    check(f"a bad page's request: {urls}", any("x.example" in u for u in urls))
    check("a wide page", re.search(r'data-wide="3\d\d\d/390"', dom))


def main():
    global soft_chromium
    soft_chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not soft_chromium:
        soft.skip("not installed: chromium")
    soft.alone(needed=True)
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        control(top)
        if faults:  # a browser that does not start says nothing of a page
            print("\n".join(faults))
            soft.skip("this Chromium cannot be used here")
        for page in make(top):
            look(top, page)
    print("\n".join(faults) or "pages opened, light and dark, narrow and wide")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
