#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All three profiles in the root of a real Debian, as debootstrap makes it: applied, verified, taken back, byte
for byte; and what Debian's own programs then read.

usage: profiles_debootstrap.py PEERPATH

Needs root, debootstrap and a mirror; only with PEERPATH_TEST_SLOW, as it downloads. PEERPATH_TEST_ROOT names a
root that is there already: it is copied.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import debootstrap  # noqa: E402

sys.argv[2:] = ["life"]
import profiles  # noqa: E402


def skip(text):
    print(text)
    sys.exit(77)


def make(root):
    given = os.environ.get("PEERPATH_TEST_ROOT")
    if given:
        subprocess.run(["cp", "-a", given, root], check=True)  # devices as what they are
        return
    if not os.environ.get("PEERPATH_TEST_SLOW"):
        skip("downloads a Debian: only with PEERPATH_TEST_SLOW=1")
    try:
        debootstrap.make(root, ["systemd", "kmod", "procps", "libpam-modules"])
    except debootstrap.Absent as why:
        skip(why)


def in_root(root, *argv):
    return subprocess.run(["chroot", root, *argv], capture_output=True, text=True)


def check_readers(root, name):
    """kmod and systemd of that Debian read what was put there."""
    shown = in_root(root, "modprobe", "--showconfig").stdout
    if "options nvidia_peermem persistent_api_support=1" not in shown:
        profiles.fail(f"{name}: modprobe does not read the options: {shown[-300:]}")
    cat = in_root(root, "systemd-analyze", "cat-config", "systemd/system.conf").stdout
    if "DefaultLimitMEMLOCK=infinity" not in cat:
        profiles.fail(f"{name}: systemd does not read the limit: {cat[-300:]}")


def put_machine(root, top, name, *argv):
    """The kernel's side of a made machine (tests/fixtures/make_machine.py): what a tuple is judged by. Not /etc."""
    made = top / name
    subprocess.run([sys.executable, pathlib.Path(__file__).parents[1] / "fixtures/make_machine.py", *argv, made], check=True,
                   capture_output=True)
    for part in ("proc", "sys"):
        shutil.rmtree(root / part, ignore_errors=True)
        subprocess.run(["cp", "-a", made / "raw" / part, root / part], check=True)


def check_tuple(doc, name):
    """Every part is judged: satisfied, or not to be seen below --root, and then unknown, never good."""
    rows = doc["needs"]
    odd = [r for r in rows if not (r["verdict"] == "pass" or r["verdict"] == "unknown" and "not asked" in r["seen"])]
    good = [r for r in rows if r["verdict"] == "pass"]
    if odd or len(good) < 4 or len(rows) < 6:
        profiles.fail(f"{name}: tuple: {rows}")
    gates = {g["gate"]: g["verdict"] for g in doc["gates"]}
    if len(gates) != 2 or doc["verdict"] == "pass":
        profiles.fail(f"{name}: gates {gates}, {doc['verdict']}")
    return [(r["require"], r["of"], r["verdict"]) for r in rows], sorted(gates.items())


def main():
    with tempfile.TemporaryDirectory() as top:
        root = pathlib.Path(top) / "root"
        make(root)
        put_machine(root, pathlib.Path(top), "good", "good2")
        before = profiles.seen(root)
        seen = {}
        for name in profiles.GIVEN:
            profiles.run("apply", name, "--root", root, code=0)
            doc = json.loads(profiles.run("verify", name, "--root", root, "-j").stdout)
            if [f for f in doc["files"] if f["verdict"] != "pass"]:
                profiles.fail(f"{name}: {doc['files']}")
            seen[name] = check_tuple(doc, name)
            check_readers(root, name)
            if doc["kept"] is not True:
                profiles.fail(f"{name}: not kept for --after-reboot")
        # Back by one at a time: each time the profile before, with the gates that it had.
        for name in (*reversed(profiles.GIVEN[:-1]), None):
            profiles.run("rollback", "--root", root, code=0)
            if name:
                doc = json.loads(profiles.run("verify", "--root", root, "-j").stdout)
                if doc["in_effect"] != name or check_tuple(doc, name) != seen[name]:
                    profiles.fail(f"back at {name}: {doc}")
        profiles.differs("taken back", before, profiles.seen(root))
        # The same files on another module: one row of the tuple fails, and with it the whole.
        put_machine(root, pathlib.Path(top), "closed", "good2", "--faults", "proprietary")
        profiles.run("apply", "dmabuf", "--root", root, code=0)
        doc = json.loads(profiles.run("verify", "--root", root, "-j", code=1).stdout)
        failed = [r["require"] for r in doc["needs"] if r["verdict"] == "fail"]
        if doc["verdict"] != "fail" or failed != ["nvidia.flavour == open"]:
            profiles.fail(f"proprietary: {doc['verdict']}, {failed}")
        print(f"{len(before)} files, links and directories of /etc compared")
    return 1 if profiles.failures else 0


if __name__ == "__main__":
    sys.exit(main())
