#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests of pages, spoken to by its debugging pipe: no module, no port.

    with Browser() as browser:
        page = browser.page(width=390, height=844, dark=True)
        page.open(url); page.wait("document.body.dataset.shown"); page.screenshot(path)
        page.errors, page.requests

Absent: no Chromium here; its text says so.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Absent(Exception):
    """Why there is no browser."""


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors, self.requests = [], []

    def call(self, method, **params):
        return self.browser.call(method, self.session, params)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, script):
        r = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"]["exception"].get("description", "exception"))
        return r["result"].get("value")

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.evaluate(f"!!({script})"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"never true: {script}")

    def key(self, key, code=None):
        text = key if len(key) == 1 else None
        extra = {"text": text} if text else {}
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}
        extra["windowsVirtualKeyCode"] = codes.get(key, ord(key[0].upper()))
        if key == "Enter":
            extra["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code or key, **extra)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code or key)

    def screenshot(self, path, whole=False):
        r = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as f:
            f.write(base64.b64decode(r["data"]))

    def event(self, method, p):
        if method == "Runtime.exceptionThrown":
            self.errors.append(p["exceptionDetails"].get("text", "") + str(p["exceptionDetails"].get("exception", {}).get("description", "")))
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.errors.append("console: " + " ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.errors.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])


class Browser:
    def __init__(self):
        program = next((p for p in ("chromium", "chromium-browser", "google-chrome") if shutil.which(p)), None)
        if not program:
            raise Absent("no Chromium is installed (Debian: chromium)")
        self.profile = tempfile.mkdtemp(prefix="peerpath-chromium.")
        in_r, self.to = os.pipe()
        self.back, out_w = os.pipe()
        self.number, self.pages, self.rest = 0, {}, b""

        def place():  # Chromium reads 3 and writes 4, whatever these were before
            a, b = os.dup(in_r), os.dup(out_w)
            os.dup2(a, 3)
            os.dup2(b, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--force-color-profile=srgb", f"--user-data-dir={self.profile}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=self.profile))
        os.close(in_r)
        os.close(out_w)

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            block = os.read(self.back, 1 << 20)
            if not block:
                raise Absent("Chromium does not start here")
            self.rest += block
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, session=None, params=None, seconds=120):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            m = self.receive(seconds)
            if m.get("id") == number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']['message']}")
                return m["result"]
            page = self.pages.get(m.get("sessionId"))
            if page and "method" in m:
                page.event(m["method"], m["params"])

    def page(self, width=1440, height=900, dark=False, mobile=False):
        target = self.call("Target.createTarget", params={"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", params={"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(domain + ".enable")
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        page.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        return page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", seconds=10)
        except (TimeoutError, Absent, OSError, RuntimeError):
            pass
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)
