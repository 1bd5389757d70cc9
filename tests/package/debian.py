#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a fresh Debian: lintian, installed by apt, the main job from them, and nothing left behind.

The judges are lintian, apt and dpkg, and the root's files before and after.

usage: debian.py PROJECT-ROOT BUILD
"""
import hashlib
import os
import pathlib
import re
import shutil
import stat
import sys
import tempfile

from debroot import expect, failures, finish, fresh, inside, must, need, packages, run, skip

ROOT, BUILD = map(pathlib.Path, sys.argv[1:3])
NAMES = {"peerpath", "peerpath-soft", "peerpath-monitor"}
# What apt, dpkg and the dynamic loader remember of any installation.
MEMORY = re.compile(r"/(proc|sys|dev|tmp|run)/|/var/(cache|backups)/|/var/log/(apt/|dpkg\.log|alternatives\.log)|/var/lib/(apt|dpkg)/|/etc/ld\.so\.cache|/etc/resolv\.conf")


def files(root):
    """Every file that an installation could leave: {path: what it is}."""
    seen = {}
    for top, dirs, names in os.walk(root):
        for name in dirs + names:
            path = os.path.join(top, name)
            shown = path[len(str(root)):]
            if MEMORY.match(shown + ("/" if name in dirs else "")):
                continue
            st = os.lstat(path)
            text = oct(st.st_mode)
            if stat.S_ISREG(st.st_mode) and shown.startswith("/etc/"):
                with open(path, "rb") as content:
                    text += hashlib.sha256(content.read()).hexdigest()
            seen[shown] = text
    return seen


def lint(debs):
    if not shutil.which("lintian"):
        print("not looked at: no lintian")
        return
    done = run("lintian", "--fail-on", "error", "--allow-root", *debs.values())
    expect(done.returncode == 0, "lintian:", done.stdout, done.stderr)
    said = [line for line in done.stdout.splitlines() if line[:2] in ("E:", "W:")]
    print(f"lintian: {sum(l[0] == 'E' for l in said)} errors, {sum(l[0] == 'W' for l in said)} warnings", *said, sep="\n  ")


def work(root):
    """README's main job, from the package; and the chain on the device of the other one."""
    done = inside(root, "cd /tmp && peerpath prove --force --output prove.tar.zst; code=$?; peerpath bundle verify prove.tar.zst && exit $code")
    expect(done.returncode in (0, 1, 2) and "overall" in done.stdout, "prove", done.returncode, done.stdout[-500:], done.stderr[-500:])
    done = inside(root, "peerpath prove --simulate --size 4K --duration 50ms --no-bundle", net=False)
    expect(done.returncode == 0 and "passed" in done.stdout, "simulated", done.returncode, done.stdout[-800:], done.stderr[-500:])
    done = inside(root, "env -i SLURMD_NODENAME=n1 /usr/share/peerpath/slurm/healthcheck")
    expect(done.returncode == 0, "the health check from where it is installed", done.returncode, done.stderr)
    done = inside(root, "peerpath --version && for v in $(peerpath help | sed -n 's/^  \\([a-z]\\{1,\\}\\)  .*/\\1/p'); do "
                        "case $v in help | completion) continue ;; esac; test -e /usr/share/man/man1/peerpath-$v.1.gz || "
                        "grep -rqs 'path-exclude=/usr/share/man' /etc/dpkg || echo no page of $v; done")
    expect(done.returncode == 0 and "no page" not in done.stdout, "pages", done.stdout, done.stderr)


def main():
    need("debootstrap", "dpkg-buildpackage", "dh", "unshare", "ip")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        root = tmp / "root"
        fresh(BUILD, root)
        if inside(root, "apt-get -q update").returncode:
            skip("apt cannot reach its mirror from a fresh root")
        debs = packages(ROOT, BUILD, tmp)
        expect(set(debs) == NAMES, debs)
        lint(debs)
        before = files(root)
        for deb in debs.values():
            shutil.copy(deb, root / "tmp")
        done = inside(root, "apt-get -q -y --no-install-recommends install /tmp/peerpath_*.deb && peerpath prove --no-bundle --quick; test $? -le 2")
        expect(done.returncode == 0, "peerpath alone", done.stdout[-800:], done.stderr[-800:])
        done = inside(root, "apt-get -q -y --no-install-recommends install /tmp/peerpath*.deb")
        expect(done.returncode == 0, "install", done.stdout[-800:], done.stderr[-800:])
        version = must("dpkg-deb", "-f", debs["peerpath"], "Version").strip()
        for name in NAMES - {"peerpath"}:
            expect(f"peerpath (= {version})" in must("dpkg-deb", "-f", debs[name], "Depends"), name, "depends on its peerpath")
        work(root)
        monitor(root, debs["peerpath-monitor"])
        # What the service would leave, as its unit starts it.
        done = inside(root, "mkdir -p /var/lib/peerpath /var/log/peerpath && "
                            "peerpath monitor --once --events /var/log/peerpath/events.jsonl; test $? -le 2 && ls /var/lib/peerpath")
        expect(done.returncode == 0 and "monitor.db" in done.stdout, "monitor", done.stdout[-500:], done.stderr[-500:])
        # Removed, only what is configuration may stay; purged, nothing.
        names = " ".join(sorted(NAMES))
        done = inside(root, f"apt-get -q -y remove {names}")
        expect(done.returncode == 0, "remove", done.stdout[-800:], done.stderr[-800:])
        left = [p for p in files(root) if "peerpath" in p and not p.startswith(("/etc/", "/var/"))]
        expect(not left, "removed, and left:", left[:5])
        # apt knows a package of no archive by its configuration alone; dpkg by its scripts, too.
        done = inside(root, f"dpkg --purge {names} && apt-get -q -y autoremove --purge")
        expect(done.returncode == 0, "purge", done.stdout[-800:], done.stderr[-800:])
        after = files(root)
        expect(before == after, "purged, and left or changed:", [p for p in sorted(set(before) | set(after)) if before.get(p) != after.get(p)][:8])
        done = inside(root, "ls /var/lib/dpkg/info /etc /var/lib | grep peerpath; dpkg -l | grep peerpath")
        expect(done.stdout == "", "dpkg remembers", done.stdout)
        print(f"{len(before)} files of a fresh Debian compared with those after a purge")
    return finish("debian")


def monitor(root, deb):
    """The unit is read by systemd, and is not switched on by its installation."""
    held = must("dpkg-deb", "-c", deb)
    units = re.findall(r"\./((?:usr/)?lib/systemd/system/\S+\.service)$", held, re.M)
    enabled = [str(p) for p in (root / "etc/systemd").rglob("*peerpath*")]
    expect("./etc/logrotate.d/peerpath-monitor\n" in held, "no file for logrotate", held)
    expect(not enabled, "switched on by its installation", enabled)
    if not units:
        print("not looked at: peerpath-monitor holds no unit")
        return
    if not shutil.which("systemd-analyze"):
        print("not looked at: no systemd-analyze")
        return
    for unit in units:
        done = run("systemd-analyze", "verify", "--man=no", f"--root={root}", f"/{unit}")
        # Of a root without systemd: what it makes of the unit's lines, not which units it misses.
        said = [line for line in (done.stdout + done.stderr).splitlines()
                if "peerpath" in line and re.search("unknown|parse|invalid|ignoring|not executable", line, re.I)]
        expect(not said, "systemd-analyze verify", said)


if __name__ == "__main__":
    os.umask(0o022)
    code = main()
    assert failures or not code
    sys.exit(code)
