#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles as an operator uses them, on roots in directories: applied, compared, refused, rolled back.

usage: profiles.py PEERPATH [PART]
"""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

PEERPATH = sys.argv[1]
GIVEN = ("peermem", "peermem-open", "dmabuf")
STATE = "var/lib/peerpath/profile"
failures = []


def fail(text):
    failures.append(text)
    print("FAIL", text)


def run(*argv, code=None, **kwargs):
    done = subprocess.run([PEERPATH, "profile", *argv], capture_output=True, text=True, timeout=120, **kwargs)
    if "Sanitizer" in done.stderr or "runtime error" in done.stderr:
        fail(f"{argv}: {done.stderr[:400]}")
    if code is not None and done.returncode != code:
        fail(f"{argv}: exit {done.returncode}, not {code}: {done.stderr}{done.stdout[-400:]}")
    return done


def seen(root, below="etc"):
    """Every byte, mode, owner, time and absence."""
    result = {}
    for path in sorted((root / below).rglob("*")):
        st = path.lstat()
        kind = stat.S_IFMT(st.st_mode)
        data = path.read_bytes() if kind == stat.S_IFREG else os.readlink(path) if path.is_symlink() else b""
        time = st.st_mtime_ns if kind == stat.S_IFREG else 0
        result[str(path.relative_to(root))] = (st.st_mode, st.st_uid, st.st_gid, data, time)
    return result


def differs(name, a, b):
    for path in sorted(set(a) | set(b)):
        if a.get(path) != b.get(path):
            fail(f"{name}: {path}: {a.get(path)} became {b.get(path)}")


def make_root(top, name="root"):
    root = top / name
    for folder in ("etc/modprobe.d", "etc/modules-load.d", "etc/security/limits.d"):
        (root / folder).mkdir(parents=True)
    (root / "etc/nccl.conf").write_text("# ours\nNCCL_IB_HCA=mlx5\n")
    (root / "etc/security/limits.d/60-peerpath.conf").write_text("* soft memlock 65536")
    (root / "etc/security/limits.d/60-peerpath.conf").chmod(0o640)
    for path in root.rglob("*"):
        os.utime(path, ns=(10**18 + 123456789, 10**18 + 123456789))
    return root


def part_life(top):
    """All three, one upon the other, verified, and taken back one by one."""
    root = make_root(top)
    states = [seen(root)]
    for name in GIVEN:
        run("apply", name, "--root", root, code=0)
        run("diff", name, "--root", root, code=0)
        doc = json.loads(run("verify", name, "--root", root, "-j").stdout)
        bad = [f for f in doc["files"] if f["verdict"] != "pass"]
        if bad or doc["in_effect"] != name or doc["schema"] != "peerpath.profile/1":
            fail(f"verify {name}: {bad}, {doc['in_effect']}")
        if doc["verdict"] == "pass":
            fail(f"verify {name}: passes on an empty root")
        states.append(seen(root))
    if b"nvidia-peermem" not in states[3]["etc/modules-load.d/peerpath-peermem.conf"][3]:
        fail("dmabuf does not keep what loads nvidia_peermem")
    if states[3]["etc/nccl.conf"][3] != b"# ours\nNCCL_IB_HCA=mlx5\nNCCL_DMABUF_ENABLE=1\n":
        fail(f"nccl.conf: {states[3]['etc/nccl.conf'][3]}")
    again = json.loads(run("apply", "dmabuf", "--root", root, "-j", code=0).stdout)
    if again["result"] != "in effect already" or again["changed"]:
        fail(f"applied twice: {again['result']}")
    differs("applied twice", states[3], seen(root))
    for want in (2, 1, 0):
        dry = run("rollback", "--root", root, "--dry-run", code=0)
        differs("rollback --dry-run", states[want + 1], seen(root))
        run("rollback", "--root", root, code=0)
        differs(f"rollback to {want}", states[want], seen(root))
        if "nothing was changed" not in dry.stdout:
            fail(f"dry run: {dry.stdout}")
    done = run("rollback", "--root", root, code=1)
    if done.stderr.count("\n") != 1:
        fail(f"rollback of nothing: {done.stderr}")
    # Straight to another: what the first had and the second has not is given back.
    run("apply", "dmabuf", "--root", root, code=0)
    run("apply", "peermem", "--root", root, code=0)
    if (root / "etc/environment.d/60-peerpath.conf").exists():
        fail("a file of the profile before is still there")
    run("rollback", "--root", root, code=0)
    run("rollback", "--root", root, code=0)
    differs("two rollbacks", states[0], seen(root))
    left = [p.name for p in root.rglob("*peerpath-new*")] + [p.name for p in root.rglob("*peerpath-old*")]
    if left or (root / STATE / "journal").exists():
        fail(f"left behind: {left}")


def part_diff(top):
    """What diff prints is what diff(1) prints, and what apply then does."""
    root = make_root(top)
    after = make_root(top, "after")
    if run("diff", "dmabuf", "--root", root, code=1).stdout == "":
        fail("diff prints nothing")
    run("apply", "dmabuf", "--root", after, code=0)
    for name in ("etc/nccl.conf", "etc/security/limits.d/60-peerpath.conf"):
        want = subprocess.run(
            ["diff", "-u", "--label", f"{root}/{name}", "--label", f"{root}/{name} (dmabuf)", root / name, after / name],
            capture_output=True, text=True,
        ).stdout
        if not want or want not in run("diff", "dmabuf", "--root", root).stdout:
            fail(f"diff of {name} is not that of diff(1):\n{want}")
    doc = json.loads(run("diff", "peermem-open", "dmabuf", "-j", code=1).stdout)
    if doc["same"] or "-NCCL_DMABUF_ENABLE=0\n+NCCL_DMABUF_ENABLE=1\n" not in doc["difference"]:
        fail(f"two profiles: {doc}")
    run("diff", "dmabuf", "dmabuf", code=0)
    differs("diff", seen(make_root(top, "fresh")), seen(root))
    if (root / "var").exists():
        fail("diff leaves state")


def refused(name, done, root, before, words):
    if done.returncode != 1 or done.stderr.count("\n") != 1 or words not in done.stderr:
        fail(f"{name}: exit {done.returncode}: {done.stderr}")
    differs(name, before, seen(root))


def part_refused(top):
    root = make_root(top)
    run("apply", "peermem-open", "--root", root, code=0)
    # by others
    conf = root / "etc/modprobe.d/peerpath.conf"
    text = conf.read_bytes()
    for change in (text + b"options nvidia x=1\n", None, b""):
        conf.unlink() if change is None else conf.write_bytes(change)
        before = seen(root)
        for argv in (("apply", "dmabuf"), ("rollback",)):
            done = run(*argv, "--root", root)
            refused(f"changed by others, {argv}", done, root, before, "changed by others since 'peermem-open'")
            if change and "+options nvidia x=1\n" not in done.stdout:
                fail(f"{argv}: no difference: {done.stdout}")
    conf.write_bytes(text)
    conf.chmod(0o600)
    refused("mode", run("apply", "dmabuf", "--root", root), root, seen(root), "changed by others")
    conf.chmod(0o644)
    # policy, given and of the image
    policy = top / "policy.conf"
    policy.write_text("[forbid]\nraise-memlock = not on shared nodes, section 4\n")
    other = make_root(top, "other")
    before = seen(other)
    done = run("apply", "dmabuf", "--root", other, "--policy", policy)
    refused("policy", done, other, before, "forbids 'raise-memlock', which profile 'dmabuf' amounts to: not on shared")
    (other / "etc/peerpath").mkdir()
    shutil.copy(policy, other / "etc/peerpath/policy.conf")
    refused("policy of the image", run("apply", "dmabuf", "--root", other), other, seen(other), "/etc/peerpath/policy.conf")
    # the rule of the migration
    drop = top / "drop.profile"
    drop.write_text(
        "[profile]\nname = drop\ntitle = no peermem\nregistration = dmabuf\n"
        "[absent /etc/modules-load.d/peerpath-peermem.conf]\n[set /etc/nccl.conf]\nNCCL_DMABUF_ENABLE = 1\n"
    )
    refused("peermem", run("apply", drop, "--root", root), root, seen(root), "prove DMA-BUF first")
    run("apply", "dmabuf", "--root", root, code=0)
    run("apply", drop, "--root", root, code=0)
    if (root / "etc/modules-load.d/peerpath-peermem.conf").exists():
        fail("peermem is still loaded after its own change")
    run("rollback", "--root", root, code=0)
    if not (root / "etc/modules-load.d/peerpath-peermem.conf").exists():
        fail("the way back is gone")
    # a root that is none, files that could not be given back
    (top / "empty").mkdir()
    if run("apply", "dmabuf", "--root", top / "empty", code=65).stderr.count("\n") != 1 or any((top / "empty").iterdir()):
        fail("an empty directory is taken for a root")
    linked = make_root(top, "linked")
    (linked / "etc/nccl.conf").unlink()
    (linked / "etc/nccl.conf").symlink_to("/etc/passwd")
    before = seen(linked)
    if "symbolic link" not in run("apply", "dmabuf", "--root", linked, code=65).stderr:
        fail("a symbolic link is not refused")
    differs("symbolic link", before, seen(linked))
    # tampered state
    (root / STATE / "current").write_text("[current]\ngeneration = x\n")
    if "is damaged" not in run("apply", "dmabuf", "--root", root, code=65).stderr:
        fail("damaged state is not said")


def part_user(top):
    """Without privileges: one line, nothing touched; what only reads still reads."""
    if os.geteuid():
        print("not root: there is nothing to give up")
        return 77
    root = make_root(top)
    run("apply", "peermem", "--root", root, code=0)
    for path in [top, *top.rglob("*")]:
        if path.is_dir() and STATE not in str(path):
            path.chmod(0o755)

    def drop():
        os.setgid(65534)
        os.setuid(65534)

    before = seen(root)
    for argv in (("apply", "dmabuf"), ("rollback",), ("apply", "dmabuf", "--dry-run")):
        done = run(*argv, "--root", root, preexec_fn=drop)
        refused(f"unprivileged {argv}", done, root, before, "root")
    run("list", "--root", root, preexec_fn=drop, code=0)
    run("show", "dmabuf", preexec_fn=drop, code=0)
    return 0


def part_render(top):
    del top
    try:
        import yaml
    except ImportError:
        yaml = None
    for name in GIVEN:
        shown = json.loads(run("show", name, "-j", code=0).stdout)
        for tool in ("files", "ansible", "image", "kubernetes"):
            text = run("render", name, "--for", tool, code=0).stdout
            doc = json.loads(run("render", name, "--for", tool, "-j", code=0).stdout)
            if doc["text"] != text:
                fail(f"{name} {tool}: text and JSON differ")
            if tool == "kubernetes" and yaml:
                values, network, pod = yaml.safe_load_all(text)
                # docs: gpu-operator-rdma.html: rdma.enabled loads nvidia-peermem, DMA-BUF needs the open module
                rdma = (values.get("driver") or {}).get("rdma", {}).get("enabled")
                kind = (values.get("driver") or {}).get("kernelModuleType")
                if (rdma, kind) != {"peermem": (True, None), "peermem-open": (True, "open"), "dmabuf": (None, "open")}[name]:
                    fail(f"{name}: GPU Operator {values}")
                if name != "dmabuf" and network["spec"]["ofedDriver"]["image"] != "doca-driver":
                    fail(f"{name}: {network}")
                if name != "peermem" and "NCCL_DMABUF_ENABLE" not in [e["name"] for e in pod["env"]]:
                    fail(f"{name}: {pod}")
            if tool == "ansible" and yaml:
                tasks = yaml.safe_load(text)
                copies = {t["ansible.builtin.copy"]["dest"]: t["ansible.builtin.copy"]["content"]
                          for t in tasks if "ansible.builtin.copy" in t}
                for f in shown["files"]:
                    if f["action"] == "write" and copies.get(f["path"]) != f["text"]:
                        fail(f"{name}: {f['path']} in ansible: {copies.get(f['path'])!r}")
            for f in shown["files"]:
                if tool in ("files", "image") and f["action"] == "write" and f["text"] not in text:
                    fail(f"{name} {tool}: lacks {f['path']}")
    if not yaml:
        print("no PyYAML: YAML was not parsed")


def in_namespace(top, part):
    """Runs a part with mounts of its own."""
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, __file__, PEERPATH, part, str(top)], capture_output=True, text=True, timeout=200
    )
    print(done.stdout, end="")
    if done.returncode:
        fail(f"{part}: {done.stdout}{done.stderr}")


def mounted(top, *options):
    root = top / "mount"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", *options, "none", root], check=True)
    return make_root(root)


def part_full_inside(top):
    """At every degree of fullness: applied whole, or as it was; and never lost."""
    root = mounted(top, "-o", "size=512k")
    before = seen(root)
    filler = root.parent / "filler"
    free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize
    results = []
    for left in range(0, 100 * 1024, 4096):
        filler.write_bytes(b"x" * (free - left))
        done = run("apply", "peermem-open", "--root", root)
        results.append(done.returncode)
        if done.returncode == 70:
            if "ENOSPC" not in done.stderr or done.stderr.count("\n") != 1:
                fail(f"{left} bytes left: {done.stderr}")
            differs(f"{left} bytes left", before, seen(root))
        elif done.returncode == 0:
            filler.unlink()
            run("rollback", "--root", root, code=0)
            differs(f"rollback, {left} bytes left", before, seen(root))
            break
        else:
            fail(f"{left} bytes left: exit {done.returncode}: {done.stderr}")
    if results.count(70) < 3 or results[-1]:
        fail(f"the disk was not full often enough: {results}")
    # Rollback on a full disk: refused whole, done when there is room.
    run("apply", "peermem-open", "--root", root, code=0)
    applied = seen(root)
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)
    done = run("rollback", "--root", root)
    differs("rollback on a full disk", before if done.returncode == 0 else applied, seen(root))
    filler.unlink()
    if done.returncode:
        run("rollback", "--root", root, code=0)
    differs("rollback with room", before, seen(root))


def part_read_only_inside(top):
    root = mounted(top)
    run("apply", "peermem", "--root", root, code=0)
    subprocess.run(["mount", "-o", "remount,ro", root.parent], check=True)
    before = seen(root)
    for argv in (("apply", "dmabuf"), ("rollback",)):
        refused(f"read-only {argv}", run(*argv, "--root", root), root, before, "EROFS")
    run("diff", "dmabuf", "--root", root, code=1)
    run("list", "--root", root, code=0)


def part_mounts(top):
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        print("no user namespaces here")
        return 77
    (top / "a").mkdir()
    (top / "b").mkdir()
    in_namespace(top / "a", "full_inside")
    in_namespace(top / "b", "read_only_inside")
    return 0


PARTS = {k[5:]: v for k, v in list(globals().items()) if k.startswith("part_")}


def main():
    part = sys.argv[2]
    if len(sys.argv) > 3:
        code = PARTS[part](pathlib.Path(sys.argv[3]))
    else:
        with tempfile.TemporaryDirectory() as top:
            os.chmod(top, 0o755)
            code = PARTS[part](pathlib.Path(top))
    print(f"{part}: {len(failures)} failures")
    return 1 if failures else code or 0


if __name__ == "__main__":
    sys.exit(main())
