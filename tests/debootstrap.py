# SPDX-License-Identifier: Apache-2.0
"""A minimal Debian in a folder, made by debootstrap from the mirror that this machine itself is configured with.

Absent: there is none to be had; its text says why.
"""
import os
import pathlib
import re
import shutil
import subprocess
import urllib.error
import urllib.request

RELEASE = "bookworm"
LIMIT_S = 900


class Absent(Exception):
    """Why no Debian can be made here."""


def mirror():
    """The address of Debian itself: archives of others, and of updates alone, hold no system. None: none is configured."""
    for file in [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]:
        text = file.read_text(errors="replace") if file.is_file() else ""
        found = re.search(r"^(?:deb\s+(?:\[.*?\]\s*)?|URIs:\s*)(https?://\S*/debian)/?\s", text, re.M)
        if found:
            return found[1]
    return None


def make(root, include=()):
    """include: packages beside the smallest set. What a failed one left in root is the caller's to remove."""
    if os.geteuid():
        raise Absent("needs root")
    if not shutil.which("debootstrap", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
        raise Absent("no debootstrap")
    where = mirror()
    if not where:
        raise Absent("no mirror of Debian is configured")
    try:
        urllib.request.urlopen(f"{where}/dists/{RELEASE}/InRelease", timeout=20).close()
    except (urllib.error.URLError, OSError) as err:
        raise Absent(f"{where} is not reachable: {err}") from err
    more = [f"--include={','.join(include)}"] if include else []
    done = subprocess.run(["debootstrap", "--variant=minbase", *more, RELEASE, str(root), where], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    if done.returncode:
        raise Absent(f"debootstrap: {done.stdout[-300:]}{done.stderr[-300:]}")
