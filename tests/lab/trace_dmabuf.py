#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: trace_dmabuf.py LAB-DIR REGISTRAR

A guest with the lab's own RDMA device, which takes DMA-BUF registrations, and vgem, which exports them: what the
kernel itself shows of such a registration. bufinfo, RDMA netlink as `rdma` prints it, VmPin, fdinfo and a kprobe
are asked without this project's code.
"""
import os
import re
import sys

from tracing import (MOUNTS, Layout, LabError, Registrar, expect, image, probe_line, probed_by_hand,  # noqa: I001
                     rdma_regions)
import headers
from lab import Lab, Unavailable

REGISTRAR = sys.argv[2]
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


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a guest has no sanitizer's libraries; the plain build runs this")
        return 77
    try:
        more = headers.peerlab()
        layout = Layout(headers.tree_for(image.kernel()), more["modules"][1])
        with Lab(put=[(REGISTRAR, "bin/registrar")], **more) as lab:
            guest = lab.guest(0)
            guest.run(MOUNTS).check()
            for part in (held, kept, refused):
                part(guest)
                print(f"{part.__name__}: ok")
            probes(guest, layout)
            print("probes: ok")
    except Unavailable as err:
        print(err)
        return 77
    except (LabError, image.BuildError) as err:
        print(err)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
