#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: trace_dmabuf.py LAB-DIR REGISTRAR

A guest with the lab's own RDMA device, which takes DMA-BUF registrations, and vgem, which exports them: what the
kernel itself shows of such a registration. bufinfo, RDMA netlink as `rdma` prints it, VmPin and fdinfo are asked
without this project's collectors.
"""
import os
import re
import sys

sys.path.insert(0, sys.argv[1])
import headers  # noqa: E402
from lab import Lab, LabError, Unavailable  # noqa: E402

REGISTRAR = sys.argv[2]
NIC = "0000:00:05.0"
BUFINFO = "cat /sys/kernel/debug/dma_buf/bufinfo"


def expect(what, got, wanted):
    if got != wanted:
        raise LabError(f"{what}: {got!r}, not {wanted!r}")


class Registrar:
    """A process in the guest that holds regions; what it says of them itself."""

    def __init__(self, guest, words):
        self.guest, self.job = guest, guest.start(f"registrar {words}")
        guest.run(f"until grep -q ready {self.job.dir_there}/out; do "
                  f"[ ! -e {self.job.dir_there}/status ] || exit 1; usleep 50000; done", 30).check()
        text = self.job.output().decode()
        self.pid = int(re.search(r"^pid (\d+)$", text, re.M)[1])
        self.thread = int(re.search(r"^thread (\d+)$", text, re.M)[1])
        self.host = [int(key, 16) for key in re.findall(r"^host lkey (\S+)", text, re.M)]
        self.dmabuf = {int(key, 16): int(inode)
                       for key, inode in re.findall(r"^dmabuf lkey (\S+) .* inode (\d+)$", text, re.M)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.kill()


def regions(guest, device):
    """lkey: (pid as the kernel gives it, length), by the `rdma` tool."""
    shown = guest.run(f"rdma resource show mr dev {device}").check().text
    rows = [dict(re.findall(r"(\w+) (\S+)", line)) for line in shown.splitlines()]
    return {int(row["lkey"], 16): (int(row.get("pid", 0)), int(row["mrlen"])) for row in rows}


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
        expect("netlink's regions", regions(guest, "peerlab0"), wanted)
        expect("bufinfo", buffers(guest), {inode: ("drm", 1048576, [NIC]) for inode in held_by.dmabuf.values()})
        expect("pinned memory is the host region's alone", pinned_kb(guest, held_by.pid), 1024)
        shown = guest.run(f"cat /proc/{held_by.pid}/fdinfo/*").check().text
        expect("a closed descriptor has no fdinfo", "exp_name" in shown, False)
    expect("buffers after the process", buffers(guest), {})
    expect("regions after the process", regions(guest, "peerlab0"), {})


def kept(guest):
    """Pinned for good, without a length, descriptor open, by a thread that is gone."""
    guest.run("cd /sys/module/peerlab/parameters; echo 1 >pinned; echo 1 >unsized").check()
    with Registrar(guest, "peerlab0 dmabuf=1 keep thread") as held_by:
        (key, inode), = held_by.dmabuf.items()
        expect("another thread registered", held_by.thread != held_by.pid, True)
        expect("netlink's regions", regions(guest, "peerlab0"), {key: (0, 0)})
        expect("bufinfo", buffers(guest), {inode: ("drm", 65536, [NIC])})
        shown = guest.run(f"cat /proc/{held_by.pid}/fdinfo/*").check().text
        expect("fdinfo", re.findall(r"^exp_name:\t(\w+)$", shown, re.M), ["drm"])
    guest.run("cd /sys/module/peerlab/parameters; echo 0 >pinned; echo 0 >unsized").check()


def refused(guest):
    """rxe has no such operation: nothing may be attached by what failed."""
    result = guest.run("registrar rxe0 dmabuf=1").check(1)
    expect("rxe's answer", result.text.splitlines()[-1], "registrar: Operation not supported")
    expect("bufinfo", buffers(guest), {})


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("a guest has no sanitizer's libraries; the plain build runs this")
        return 77
    try:
        with Lab(put=[(REGISTRAR, "bin/registrar")], **headers.peerlab()) as lab:
            guest = lab.guest(0)
            guest.run("mount -t debugfs debug /sys/kernel/debug && mount -t tracefs trace /sys/kernel/tracing").check()
            for part in (held, kept, refused):
                part(guest)
                print(f"{part.__name__}: ok")
    except Unavailable as err:
        print(err)
        return 77
    except (LabError, headers.image.BuildError) as err:
        print(err)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
