#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a run of hostile texts, by a parser of HTML and one of XML:
elements closed, nothing that runs, nothing fetched, plots that are SVG.

usage: check_page.py COMMAND...     prints the page
"""
import subprocess
import sys
import xml.etree.ElementTree
from html.parser import HTMLParser

ALLOWED = set("html head meta title style body h1 h2 h3 p div table thead tbody tr th td code svg g "
              "path rect circle text".split())
FETCHES = ("src", "href", "xlink:href", "action", "data", "srcset")


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.faults, self.text = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)
        if tag not in ALLOWED and not (tag == "title"):
            self.faults.append(f"<{tag}>")
        for name, value in attributes:
            if name.startswith("on") or name in FETCHES or "url(" in (value or ""):
                self.faults.append(f"<{tag} {name}={value!r}>")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        self.text.append(data)


def main():
    raw = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True).stdout.decode()
    page = Page()
    page.feed(raw)
    page.close()
    faults = page.faults + [f"<{tag}> is left open" for tag in page.open]
    if not raw.startswith("<!DOCTYPE html>"):
        faults.append("no doctype")
    if "<script>alert('x')</script>" not in "".join(page.text):
        faults.append("the hostile text is not there as text")
    if "@import" in raw or "url(" in raw or "http://" in raw.replace(
            "http://www.w3.org/", ""):
        faults.append("something is fetched")
    tree = xml.etree.ElementTree.fromstring(raw)
    pictures = tree.findall(".//{http://www.w3.org/2000/svg}svg")
    if len(pictures) < 2:
        faults.append(f"{len(pictures)} plots")
    for picture in pictures:
        if not picture.get("viewBox") or not picture.get("aria-label"):
            faults.append("a plot without viewBox or label")
    for fault in faults:
        print(f"check_page: {fault}")
    print(f"check_page: {len(raw)} bytes, {len(pictures)} plots, {len(page.seen)} kinds of elements")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
