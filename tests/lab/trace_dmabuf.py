#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: trace_dmabuf.py LAB-DIR REGISTRAR PEERPATH

A guest with the lab's own RDMA device, which takes DMA-BUF registrations, and vgem, which exports them: what the
kernel itself shows of such a registration. bufinfo, RDMA netlink as `rdma` prints it, VmPin, fdinfo and a kprobe
are asked without this project's code. Then `peerpath trace` has to say the same, by each of its witnesses, and less
as they are taken away.
"""
import os
import re
import shutil
import sys

from tracing import (MOUNTS, Layout, Registrar, expect, image, nothing_left, probe_line,  # noqa: I001
                     probed_by_hand, rdma_regions, surface, trace, traced)
import headers
from lab import Lab, status_of

REGISTRAR, PEERPATH = sys.argv[2:4]
NIC = "0000:00:05.0"
BUFINFO = "cat /sys/kernel/debug/dma_buf/bufinfo"


def buffers(guest):
    """inode: (exporter, size, [devices]), of bufinfo."""
    found = {}
    for line in guest.run(BUFINFO).check().text.splitlines():
        row = re.match(r"(\d{8})\t\w+\t\w+\t\d+\t(\w+)\t(\d+)\t", line)
        if row:
            devices = found.setdefault(int(row[3]), (row[2], int(row[1]), []))[2]
        elif re.fullmatch(r"\t[0-9a-f:.]+", line):
            devices.append(line.strip())
    return found


def pinned_kb(guest, pid):
    status = guest.run(f"cat /proc/{pid}/status").check().text
    return int(re.search(r"^VmPin:\s+(\d+) kB", status, re.M)[1])


def held(guest):
    with Registrar(guest, "peerlab0 host=1 dmabuf=2 size=1048576") as held_by:
        expect("regions of both kinds", (len(held_by.host), len(held_by.dmabuf)), (1, 2))
        wanted = {key: (held_by.pid, 1048576) for key in [*held_by.host, *held_by.dmabuf]}
        expect("netlink's regions", rdma_regions(guest, "peerlab0"), wanted)
        expect("bufinfo", buffers(guest), {inode: ("drm", 1048576, [NIC]) for inode in held_by.dmabuf.values()})
        expect("pinned memory is the host region's alone", pinned_kb(guest, held_by.pid), 1024)
        shown = guest.run(f"cat /proc/{held_by.pid}/fdinfo/*").check().text
        expect("a closed descriptor has no fdinfo", "exp_name" in shown, False)
    expect("buffers after the process", buffers(guest), {})
    expect("regions after the process", rdma_regions(guest, "peerlab0"), {})


def kept(guest):
    """Pinned for good, without a length, descriptor open, by a thread that is gone."""
    guest.run("cd /sys/module/peerlab/parameters; echo 1 >pinned; echo 1 >unsized").check()
    with Registrar(guest, "peerlab0 dmabuf=1 keep thread") as held_by:
        (key, inode), = held_by.dmabuf.items()
        expect("another thread registered", held_by.thread != held_by.pid, True)
        expect("netlink's regions", rdma_regions(guest, "peerlab0"), {key: (0, 0)})
        expect("bufinfo", buffers(guest), {inode: ("drm", 65536, [NIC])})
        shown = guest.run(f"cat /proc/{held_by.pid}/fdinfo/*").check().text
        expect("fdinfo", re.findall(r"^exp_name:\t(\w+)$", shown, re.M), ["drm"])
    guest.run("cd /sys/module/peerlab/parameters; echo 0 >pinned; echo 0 >unsized").check()


def refused(guest):
    """rxe has no such operation: nothing may be attached by what failed."""
    result = guest.run("registrar rxe0 dmabuf=1").check(1)
    expect("rxe's answer", result.text.splitlines()[-1], "registrar: Operation not supported")
    expect("bufinfo", buffers(guest), {})


def probes(guest, layout):
    """A kprobe by hand, with pahole's offsets, shows of each region what the registrars know."""
    with Registrar(guest, "peerlab0 host=1 dmabuf=1") as one, Registrar(guest, "peerlab0 dmabuf=1 thread") as two:
        wanted = {one.host[0]: (one.pid, None, None)}
        wanted |= {key: (one.pid, "drm", NIC) for key in one.dmabuf}
        wanted |= {key: (two.pid, "drm", NIC) for key in two.dmabuf}
        expect("a probe by hand", probed_by_hand(guest, probe_line(layout)), wanted)


NO_DEBUGFS = "umount /sys/kernel/debug"
ONE_WITHOUT_BTF = "mount --bind /dev/null /sys/kernel/btf/rdma_ucm"  # it may be a driver: the calls are watched then
NO_BTF = "mount -t tmpfs none /sys/kernel/btf"
NO_TRACEFS = "umount /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug/tracing"

# What is taken away, options, user; then who proves a DMA-BUF, who proves host memory, and what is said to be missing.
LOOKS = (
    ((), "", None, {"self-probe", "bufinfo"}, {"self-probe"}, {}),
    ((NO_DEBUGFS,), "", None, {"self-probe"}, {"self-probe"}, {"bufinfo": "absent"}),
    ((), "--no-probes", None, {"bufinfo"}, set(), {"self-probe": "not asked"}),
    ((NO_BTF,), "", None, {"bufinfo"}, set(), {"self-probe": "absent"}),
    ((NO_TRACEFS,), "", None, {"bufinfo"}, set(), {"self-probe": "absent"}),
    ((NO_DEBUGFS, NO_BTF), "", None, set(), set(), {"self-probe": "absent", "bufinfo": "absent"}),
    ((NO_DEBUGFS,), "--no-probes", None, set(), set(), {"self-probe": "not asked", "bufinfo": "absent"}),
    ((), "", "nobody", set(), set(), {"self-probe": "refused", "bufinfo": "refused"}),
)


def one_look(guest, look, one, two):
    without, words, user, dmabuf, host, missing = look
    document = trace(guest, words, user, without, 0 if host else 2)
    what = f"{without} {words} {user or ''}"
    expect(f"{what}: verdict", document["verdict"], "pass" if host else "unknown")
    seen = traced(document)
    if user:
        expect(f"{what}: all are unknown", {row[1:3] for row in seen.values()}, {(None, "unproven")})
        expect(f"{what}: how many", len(seen), 3)
    else:
        expect(f"{what}: which", set(seen), {*one.dmabuf, *two.host})
        proven = ("dmabuf", "proven", dmabuf) if dmabuf else (None, "unproven", dmabuf)
        for key in one.dmabuf:
            expect(f"{what}: DMA-BUF", seen[key], (one.pid, *proven))
        # Without a probe VmPin and the absence of peer memory leave host memory alone: said, and no proof.
        expect(f"{what}: host", seen[two.host[0]], (two.pid, "host", "proven" if host else "unproven", host))
    for name, state in missing.items():
        expect(f"{what}: {name}", surface(document, name)["state"], state)
        expect(f"{what}: {name} can be had", bool(surface(document, name)["how"]), True)
    nothing_left(guest)


def looks(guest):
    with Registrar(guest, "peerlab0 dmabuf=2 size=1048576") as one:
        with Registrar(guest, "peerlab0 host=1 size=4194304 thread") as two:
            for look in LOOKS:
                one_look(guest, look, one, two)
            details(guest, one)
        rival(guest, one)


def details(guest, one):
    rows = {row["lkey"]: row for row in trace(guest)["evidence"] if row["scope"] == "mr"}
    for key, inode in one.dmabuf.items():
        row = rows[key]
        expect("exporter, buffer, devices",
               [row[name] for name in ("exporter", "buffer_inode", "buffer_size_bytes", "importer", "bdf", "gpu_memory")],
               ["drm", inode, 1048576, NIC, NIC, False])


def rival(guest, one):
    """Host memory of the same size: bufinfo cannot tell which region has the buffer, the probe can."""
    with Registrar(guest, "peerlab0 host=1 size=1048576") as two:
        seen = traced(trace(guest, "--no-probes", status=2))
        expect("bufinfo alone with a rival", {row[2] for row in seen.values()}, {"unproven"})
        seen = traced(trace(guest))
        expect("probe with a rival", {key: row[1:3] for key, row in seen.items()},
               {two.host[0]: ("host", "proven")} | {key: ("dmabuf", "proven") for key in one.dmabuf})


def live(guest):
    """A: from the start of a command, by both of the kernel's ways, which has ended when the table is shown."""
    for pinned, without in (("0", ()), ("1", ()), ("0", (ONE_WITHOUT_BTF,)), ("1", (ONE_WITHOUT_BTF,))):
        guest.run(f"echo {pinned} >/sys/module/peerlab/parameters/pinned").check()
        document = trace(guest, "-- registrar peerlab0 host=1 dmabuf=1 thread hold=1", without=without)
        seen = traced(document)
        raw = " ".join(s["raw"] for row in document["evidence"] if row["scope"] == "mr" for s in row["sightings"])
        expect(f"by the region's own memory {without}", "is_dmabuf=1" in raw, not without)
        expect(f"from the start, pinned={pinned}", sorted(row[1:] for row in seen.values()),
               [("dmabuf", "proven", {"live-probe"}), ("host", "proven", {"live-probe"})])
        nothing_left(guest)


def driver_comes(guest):
    """A driver that is loaded while probes are in place: nobody knows its regions, and that is said."""
    guest.run("rmmod peerlab").check()
    document = trace(guest, "-- sh -c 'insmod /lab/peerlab.ko && registrar peerlab0 host=1 hold=1'", status=2)
    expect("its region", [row[1:] for row in traced(document).values()], [(None, "unproven", set())])
    expect("live-probe", surface(document, "live-probe")["state"], "not whole")
    expect("why", "peerlab was not watched" in surface(document, "live-probe")["why"], True)
    nothing_left(guest)
    seen = traced(trace(guest, "-- registrar peerlab0 host=1 hold=1"))
    expect("when it is there from the start", [row[1:] for row in seen.values()], [("host", "proven", {"live-probe"})])


def tested():
    more = headers.peerlab()
    layout = Layout(headers.tree_for(image.kernel()), more["modules"][1])
    with Lab(put=[(REGISTRAR, "bin/registrar"), (PEERPATH, "bin/peerpath")], **more) as lab:
        guest = lab.guest(0)
        shutil.copy(more["modules"][1], lab.share / "peerlab.ko")
        guest.run(MOUNTS).check()
        probes(guest, layout)
        for part in (held, kept, refused, looks, live, driver_comes):
            part(guest)
            print(f"{part.__name__}: ok", flush=True)


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a guest has no sanitizer's libraries; the plain build runs this")
        return 77
    return status_of(tested, image.BuildError)


if __name__ == "__main__":
    sys.exit(main())
