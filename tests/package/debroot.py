# SPDX-License-Identifier: Apache-2.0
"""Roots of a real Debian for tests: one is made by debootstrap and kept in the build directory, each test gets a copy.

PEERPATH_TEST_ROOT names one that is there already. What cannot be had is a skip, with the reason.
"""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import debootstrap  # noqa: E402

LIMIT_S = 900
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def finish(name):
    for failure in failures:
        print("FAILED:", failure)
    print(f"{name}: {len(failures)} failures")
    return bool(failures)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=LIMIT_S, check=False, **more)


def must(*argv, **more):
    done = run(*argv, **more)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:])
        raise subprocess.CalledProcessError(done.returncode, argv)
    return done.stdout


def need(*tools):
    if os.environ.get("PEERPATH_SANITIZED"):
        skip("packages do not depend on how this tree was built; the plain build runs this")
    if os.geteuid():
        skip("needs root")
    for tool in tools:
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            skip(f"no {tool}")
    if run("unshare", "--mount", "--pid", "--fork", "true").returncode:
        skip("no namespaces of its own to be had (unshare)")


def base(build):
    """The archive of a fresh minimal Debian: the first test makes it, others wait for that."""
    kept = pathlib.Path(build) / "debian-bookworm.tar"
    with open(kept.with_suffix(".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            make(kept)
    return kept


def make(kept):
    root = kept.with_suffix(".new")
    shutil.rmtree(root, ignore_errors=True)
    try:
        debootstrap.make(root)
    except debootstrap.Absent as why:
        skip(why)
    beside = kept.with_suffix(f".{os.getpid()}")
    must("tar", "--numeric-owner", "-C", root, "-cf", beside, ".")
    shutil.rmtree(root)
    beside.rename(kept)


def fresh(build, root):
    given = os.environ.get("PEERPATH_TEST_ROOT")
    if given:
        must("cp", "-a", given, root)
    else:
        os.mkdir(root)
        must("tar", "--numeric-owner", "-C", root, "-xf", base(build))
    # Names are resolved as here; no service is started.
    shutil.copyfile("/etc/resolv.conf", f"{root}/etc/resolv.conf")


def inside(root, script, net=True, env=None):
    """Runs a shell script in the root, in namespaces of its own; /sys is this machine's, read-only."""
    outer = ('set -e; mount -t proc proc "$0/proc"; mount --rbind /sys "$0/sys"; mount -o remount,bind,ro "$0/sys"; '
             'test -n "$2" || ip link set lo up; exec chroot "$0" sh -c "$1"')
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child"] + ([] if net else ["--net"])
    return run(*words, "sh", "-c", outer, root, script, "net" if net else "",
               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", **(env or {})})


def packages(top, build, tmp):
    """The packages of this tree: {name: path}."""
    options = {option["name"]: option["value"] for option in json.loads(must("meson", "introspect", "--buildoptions", build))}
    if options["prefix"] != "/usr":
        own = tmp / "build"
        must("meson", "setup", own, top, "--prefix=/usr", "-Dtests=false")
        must("ninja", "-C", own)
        build = own
    must("sh", top / "tools/package.sh", build, tmp / "out")
    return {p.name.split("_")[0]: p for p in (tmp / "out").glob("*.deb")}
