#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: trace_collect.py LAB-DIR PART MR_HOLDER REGISTRAR TRACE_RAW TRACE_ASK [FIXTURES]

The collectors of src/trace in a guest. Part 'rxe', with the kernel's rdma_rxe and perftest: what they say of regions,
domains, contexts and queue pairs is what the tool `rdma` says at that moment; a thread that is dead, a user without
rights, namespaces of PIDs and networks, debugfs that is not mounted, each is told as what it is. Part 'dmabuf', with
the lab's own device beside rxe: buffers, attachments and descriptors are what the client that made them says.

With FIXTURES the bytes and texts of the guest are kept there: tests/fixtures/trace.
"""
import json
import os
import pathlib
import re
import shutil
import sys
import time

sys.path.insert(0, sys.argv[1])
import headers  # noqa: E402
from lab import Lab, LabError, status_of  # noqa: E402

PART, HOLDER, REGISTRAR, RAW, ASK = sys.argv[2:7]
KEEP = pathlib.Path(sys.argv[7]) if len(sys.argv) > 7 else None
NIC = "0000:00:05.0"  # QEMU's edu, which peerlab0 sits on
KINDS = ("mr", "pd", "ctx", "qp")
# Of `rdma -j resource show`: the object's number, and what it stands on.
ID = {"mr": "mrn", "pd": "pdn", "ctx": "ctxn", "qp": "lqpn"}
PARENT = {"mr": "pdn", "pd": "ctxn", "qp": "pdn"}
MANY = 120


def must(true, what):
    if not true:
        raise LabError(what)


def ask(guest, more="", before=""):
    return json.loads(guest.run(f"{before} trace_ask {more}", 60).check().out)


def state(seen, surface):
    return seen["surfaces"][surface]["state"]


def as_rdma(o):
    """An object of ours in the words of `rdma`."""
    said = {"ifname": o["device"], ID[o["kind"]]: o["id"]}
    if "parent" in o:
        said[PARENT[o["kind"]]] = o["parent"]
    if o["tid"]:
        said["pid"] = o["tid"]
    if o["kind"] == "mr":
        said["mrlen"] = o["length"]
        if "lkey" in o:
            said |= {"lkey": f"{o['lkey']:x}", "rkey": f"{o['rkey']:x}"}
    if o["kernel"]:
        said["comm"] = o["kernel"]
    return said


def from_rdma(kind, o):
    """The same members of what `rdma` printed; it adds a process's name where it has a pid."""
    keys = {"ifname", ID[kind], "pid", *([PARENT[kind]] if kind in PARENT else [])}
    keys |= {"mrlen", "lkey", "rkey"} if kind == "mr" else set()
    return {k: v for k, v in o.items() if k in keys or (k == "comm" and "pid" not in o)}


def wait_text(job, pattern, what):
    end = time.monotonic() + 30
    while not re.search(pattern, job.output().decode(), re.M):
        result = job.done()
        must(result is None and time.monotonic() < end, f"{what}: {result and result.text}")
        time.sleep(0.1)
    return job.output().decode()


def rdma(guest, kind):
    return json.loads(guest.run(f"rdma -j resource show {kind}").check().out)


def same_as_rdma(guest, seen):
    for kind in KINDS:
        want = [from_rdma(kind, o) for o in rdma(guest, kind)]
        got = [as_rdma(o) for o in seen["objects"] if o["kind"] == kind]
        must(want, f"rdma lists no {kind}")
        def order(o, key=ID[kind]):
            return o[key]
        must(sorted(got, key=order) == sorted(want, key=order), f"{kind}: not\n{want}\nbut\n{got}")


def held(job):
    return wait_text(job, r"^holding", "no holder").split()[1:3]


def of(seen, pid, kind="mr"):
    return [o for o in seen["objects"] if o["pid"] == pid and o["kind"] == kind]


def owners(guest, seen, pids):
    """Every region's process: by its thread, or by its domain's when that is dead."""
    own, dead = pids
    must(len(of(seen, own)) == 3 and {o["thread_of"] for o in of(seen, own)} == {"mr"}, "3 regions of a thread")
    must(len(of(seen, dead)) == 2 and {o["thread_of"] for o in of(seen, dead)} == {"pd"}, "2 of a dead thread")
    must(all(o["tid"] == 0 for o in of(seen, dead)), "a dead thread is named")
    for process in seen["processes"]:
        status = guest.run(f"grep -E 'VmPin|Name' /proc/{process['pid']}/status").check().out.decode().split()
        must(process["comm"] == status[1] and process["pinned_kb"] == int(status[3]), f"{process}\n{status}")
        must(process["is"] and process["uverbs"] == ["uverbs0"], f"{process}")
    must({own, dead} <= {p["pid"] for p in seen["processes"]}, "a holder is missing")


def without_rights(guest, root):
    seen = ask(guest, "0 1000")
    for surface, want in (("resources", "read"), ("keys", "refused"), ("processes", "not whole"),
                          ("bufinfo", "refused"), ("fdinfo", "not whole")):
        must(state(seen, surface) == want, f"{surface}: {seen['surfaces'][surface]}")
    must(not [o for o in seen["objects"] if "lkey" in o], "keys without a right")
    keyless = [{k: v for k, v in o.items() if k not in ("lkey", "rkey")} for o in root["objects"]]
    must(seen["objects"] == keyless, "an unprivileged user sees other regions")


def in_namespaces(guest):
    seen = ask(guest, before="unshare -p -f --mount-proc")
    must(state(seen, "resources") == state(seen, "processes") == "not whole", f"{seen['surfaces']}")
    must(of(seen, 0) and not [o for o in seen["objects"] if o["tid"]], "owners of another PID namespace")
    # /proc is the parent's there: its numbers are others' than netlink's.
    seen = ask(guest, before="unshare -p -f")
    must("another PID namespace" in seen["surfaces"]["processes"]["why"], f"{seen['surfaces']}")
    seen = ask(guest, before="unshare -U -r")
    must(state(seen, "keys") == "refused", f"keys in a user namespace: {seen['surfaces']}")
    guest.run("rdma system set netns exclusive").check()
    must(state(ask(guest), "resources") == "read", "exclusive, with all devices")
    seen = ask(guest, before="unshare -n")
    must("rxe0" in seen["surfaces"]["resources"]["why"] and state(seen, "resources") == "not whole",
         f"hidden by exclusive mode: {seen['surfaces']}")
    guest.run("rdma system set netns shared").check()


def keep(guest, lab):
    guest.run("mkdir -p /lab/raw/user && chmod 777 /lab/raw/user").check()
    guest.run("trace_raw /lab/raw && trace_raw /lab/raw/user 1000").check()
    for path in (lab.share / "raw").rglob("*.bin"):
        shutil.copy(path, KEEP / f"netlink-{'user-' if path.parent.name == 'user' else ''}{path.name}")
    for kind in KINDS:
        lines = ",\n".join(json.dumps(o) for o in rdma(guest, kind))
        (KEEP / f"rdma-{kind}.json").write_text(f"[{lines}]\n", encoding="ascii")


def collect(lab):
    guest = lab.guest(0)
    perftest = "ib_write_bw -d rxe0 -x $GID4 -D 60 -p 18600"
    guest.start(perftest)
    guest.wait_port(18600)
    guest.start(f"{perftest} 127.0.0.1")
    jobs = [guest.start(f"mr_holder rxe0 {words}") for words in ("3 65536", "2 8192 thread")]
    pids = [int(held(job)[0]) for job in jobs]
    end = time.monotonic() + 30
    while len(rdma(guest, "qp")) < 3 and time.monotonic() < end:
        time.sleep(0.2)
    seen = ask(guest)
    must(state(seen, "bufinfo") == "absent" and "not mounted" in seen["surfaces"]["bufinfo"]["why"],
         f"bufinfo without debugfs: {seen['surfaces']}")
    guest.run("mount -t debugfs none /sys/kernel/debug").check()
    seen = ask(guest)
    must(state(seen, "resources") == state(seen, "keys") == state(seen, "processes") == "read", f"{seen['surfaces']}")
    same_as_rdma(guest, seen)
    owners(guest, seen, pids)
    must(state(seen, "bufinfo") == "read" and not seen["dmabufs"], f"bufinfo of none: {seen['surfaces']}")
    without_rights(guest, seen)
    in_namespaces(guest)
    many = guest.start(f"mr_holder rxe0 {MANY} 4096")
    pid = int(held(many)[0])
    seen = ask(guest)
    must(len(of(seen, pid)) == MANY, f"{len(of(seen, pid))} regions, not {MANY}")
    same_as_rdma(guest, seen)
    if KEEP:
        keep(guest, lab)
    many.kill()
    must(not of(ask(guest), pid), "regions of a process that is gone")


def registrar(guest, words):
    """The process, and of its buffers the inodes, as it says itself."""
    job = guest.start(f"registrar {words}")
    text = wait_text(job, "^ready", "no registrar")
    return job, int(re.search(r"^pid (\d+)$", text, re.M)[1]), [int(i) for i in re.findall(r"inode (\d+)$", text, re.M)]


def dmabuf(lab):
    guest = lab.guest(0)
    guest.run("mount -t debugfs none /sys/kernel/debug").check()
    host = guest.start("mr_holder rxe0 2 4096")
    plain = int(held(host)[0])
    closed, one, inodes = registrar(guest, "peerlab0 host=1 dmabuf=2 size=1048576")
    guest.run("echo 1 >/sys/module/peerlab/parameters/unsized").check()
    kept, two, inode = registrar(guest, "peerlab0 dmabuf=1 keep thread")
    seen = ask(guest)
    must({s["state"] for name, s in seen["surfaces"].items() if name != "peermem"} == {"read"}, f"{seen['surfaces']}")
    same_as_rdma(guest, seen)
    must({o["device"] for o in seen["objects"]} == {"rxe0", "peerlab0"}, "two devices")
    must(len(of(seen, one)) == 3 and len(of(seen, two)) == 1 and len(of(seen, plain)) == 2, "owners of regions")
    must([(o["tid"], o["length"]) for o in of(seen, two)] == [(0, 0)], "a dead thread's region without a length")
    want = [{"size": size, "inode": i, "exporter": "drm", "devices": [NIC]}
            for size, i in ((1048576, inodes[0]), (1048576, inodes[1]), (65536, inode[0]))]
    got = [{k: v for k, v in b.items() if k != "count"} for b in seen["dmabufs"]]
    must(sorted(got, key=str) == sorted(want, key=str), f"{got}\nis not\n{want}")
    # The descriptor is closed where nobody keeps it: the region alone holds the buffer.
    descriptors = {p["pid"]: p["buffers"] for p in seen["processes"]}
    must(descriptors[one] == [] and len(descriptors[two]) == 1, f"{descriptors}")
    fd = descriptors[two][0]
    must((fd["size"], fd["inode"], fd["exporter"]) == (65536, inode[0], "drm"), f"{fd}")
    if KEEP:
        (KEEP / "bufinfo-vgem.txt").write_bytes(guest.run("cat /sys/kernel/debug/dma_buf/bufinfo").check().out)
        (KEEP / "fdinfo-vgem.txt").write_bytes(guest.run(f"cat /proc/{two}/fdinfo/{fd['fd']}").check().out)
    closed.kill()
    kept.kill()
    must(ask(guest)["dmabufs"] == [], "buffers after the processes")


def tested():
    put = [(HOLDER, "bin/mr_holder"), (RAW, "bin/trace_raw"), (ASK, "bin/trace_ask"), (REGISTRAR, "bin/registrar")]
    with Lab(nodes=1, memory=512, put=put, **(headers.peerlab() if PART == "dmabuf" else {})) as lab:
        (dmabuf if PART == "dmabuf" else collect)(lab)
    print("netlink, /proc and debugfs as the guest's own tools say")


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a sanitizer's memory does not fit into the guests; the plain build runs this")
        return 77
    return status_of(tested, headers.image.BuildError)


if __name__ == "__main__":
    sys.exit(main())
