#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages that 'make packages' writes: dpkg reads them, they hold what they promise, and the
software device runs from them without being installed.

usage: package.py PROJECT-ROOT BUILD

What BUILD has made is packed where its prefix is the packages', as in CI; elsewhere a build is made for it.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
LIMIT_S = 600
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def run(*argv, **kwargs):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=LIMIT_S, **kwargs)


def must(*argv, **kwargs):
    done = run(*argv, **kwargs)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:])
        raise subprocess.CalledProcessError(done.returncode, argv)
    return done.stdout


def runs(program, what):
    """Two ends from this very place, in a network of their own."""
    script = ('ip link set lo up; "$0" soft -- ibv_rc_pingpong -g 0 >/dev/null & '
              'sleep 0.5; "$0" soft -- ibv_rc_pingpong -g 0 127.0.0.1 && '
              'LD_DEBUG=libs "$0" soft -- ibv_devinfo 2>&1 >/dev/null | grep "calling init.*libibverbs.so.1"')
    # It gives a peer 67 ms, seven times over: on a busy machine that may be too little.
    for _ in range(3):
        done = run("unshare", "-rn", "sh", "-c", f"ip link set lo up && {script}", program)
        if "transport retry counter exceeded" not in done.stdout + done.stderr:
            break
    expect(done.returncode == 0 and "1000 iters" in done.stdout, what, done.stdout, done.stderr)
    expect(str(program.parent.parent) in done.stdout.splitlines()[-1], what, "its own library", done.stdout)


def built(own):
    """Where what is to be packed has been built. That it can be configured without tests is tried in any case."""
    must("meson", "setup", own, ROOT, "--prefix=/usr", "-Dtests=false")
    options = {option["name"]: option["value"] for option in json.loads(must("meson", "introspect", "--buildoptions", BUILD))}
    if options["prefix"] == "/usr":
        return BUILD
    must("ninja", "-C", own)
    return own


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("skipped: packages do not depend on how this tree was built; the plain build runs this")
        return 77
    for tool in ("dpkg-deb", "dpkg-buildpackage", "dh", "unshare", "ibv_rc_pingpong"):
        if not shutil.which(tool):
            print(f"skipped: no {tool}")
            return 77
    if run("unshare", "-rn", "true").returncode:
        print("skipped: no network namespace of its own to be had (unshare -rn)")
        return 77
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        must("sh", ROOT / "tools/package.sh", built(tmp / "build"), tmp / "out")
        debs = {p.name.split("_")[0]: p for p in (tmp / "out").glob("*.deb")}
        expect(set(debs) == {"peerpath", "peerpath-soft", "peerpath-monitor"}, debs)
        root = tmp / "root"
        for name, deb in debs.items():
            fields = dict(line.split(": ", 1) for line in must("dpkg-deb", "-f", deb).splitlines() if ": " in line)
            if name == "peerpath-monitor":
                continue
            expect("libc6 (>= " in fields["Depends"], name, fields)
            expect(("libjansson4" in fields["Depends"]) == (name == "peerpath"), name, fields)
            must("dpkg-deb", "-x", deb, root)
        expect(f"peerpath (= {fields['Version']})" in must("dpkg-deb", "-f", debs["peerpath-soft"], "Depends"))
        for path in ("bin/peerpath", "share/peerpath/rules", "share/peerpath/slurm/healthcheck", "share/peerpath/kubernetes/daemonset.yaml", "share/doc/peerpath-soft/soft.md.gz",
                     "share/doc/peerpath-soft/examples/soft-github-workflow.yml", "share/man/man1/peerpath-soft.1.gz"):
            expect((root / "usr" / path).exists(), path)
        runs(root / "usr/bin/peerpath", "unpacked packages")
        tarball, = (tmp / "out").glob("*.tar.gz")
        with tarfile.open(tarball) as tar:
            names = tar.getnames()
            top = names[0]
            expect(all(n == top or n.startswith(top + "/") for n in names), names)
            expect({m.uid for m in tar} == {0}, "owners")
            tar.extractall(tmp / "tar")
        runs(tmp / "tar" / top / "bin/peerpath", "tarball")
    for failure in failures:
        print("FAILED:", failure)
    return bool(failures)


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
