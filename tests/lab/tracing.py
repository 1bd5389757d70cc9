# SPDX-License-Identifier: Apache-2.0
"""What the tests of `peerpath trace` in a guest share: regions held there, and what is said of them."""
import json
import re
import sys

sys.path.insert(0, sys.argv[1])
import image  # noqa: E402
from lab import LabError  # noqa: E402

MOUNTS = ("mount -t debugfs debug /sys/kernel/debug && mount -t tracefs trace /sys/kernel/tracing && "
          "echo nobody:x:65534:65534::/:/bin/sh >/etc/passwd")


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


def rdma_regions(guest, device):
    """lkey: (pid as the kernel gives it, length), by the `rdma` tool."""
    shown = guest.run(f"rdma resource show mr dev {device}").check().text
    rows = [dict(re.findall(r"(\w+) (\S+)", line)) for line in shown.splitlines()]
    return {int(row["lkey"], 16): (int(row.get("pid", 0)), int(row["mrlen"])) for row in rows}


class Layout:
    """Offsets of members, by pahole from the BTF of a module and the kernel."""

    def __init__(self, tree, module):
        self.tree, self.module = tree, module

    def at(self, struct, member):
        libraries = next((self.tree / "usr/lib").glob("*-linux-gnu"))
        shown = image.ask([str(self.tree / "usr/bin/pahole"), "--btf_base", str(self.tree / "vmlinux.btf"),
                           "-C", struct, str(self.module)], "no pahole", env={"LD_LIBRARY_PATH": str(libraries)})
        found = re.search(rf"\W{member}(?::\d+)?;\s*/\*\s*(\d+)(?::\s*(\d+))?", shown)
        if not found:
            raise LabError(f"{struct} has no {member}")
        return int(found[1]), int(found[2] or 0)


def probe_line(layout):
    """B by hand: what a kprobe on ib_core's fill_res_mr_entry() reads of peerlab's regions."""
    def at(struct, member):
        return layout.at(struct, member)[0]

    entry = at("ib_mr", "res")
    umem = f"+{at('peerlab_mr', 'umem') - entry}(%dx)"
    word, bit = layout.at("ib_umem", "is_dmabuf")
    attach = f"+{at('ib_umem_dmabuf', 'attach')}({umem})"
    buffer = f"+{at('dma_buf_attachment', 'dmabuf')}({attach})"
    device = f"+{at('dma_buf_attachment', 'dev')}({attach})"
    task = f"+{at('rdma_restrack_entry', 'task')}(%dx)"
    return (f"p:byhand/region ib_core:fill_res_mr_entry lkey={at('ib_mr', 'lkey') - entry:+d}(%dx):u32 "
            f"tgid=+{at('task_struct', 'tgid')}({task}):s32 dmabuf=+{word}({umem}):b1@{bit}/32 "
            f"exporter=+0(+{at('dma_buf', 'exp_name')}({buffer})):string "
            f"device=+0(+{at('device', 'kobj') + at('kobject', 'name')}({device})):string")


def probed_by_hand(guest, line):
    """lkey: (tgid, exporter, device), None for both where the region is of host memory."""
    shown = guest.run(f"""cd /sys/kernel/tracing && echo '{line}' >kprobe_events && mkdir instances/byhand &&
        echo 1 >instances/byhand/events/byhand/enable && rdma resource show mr dev peerlab0 >/dev/null
        cat instances/byhand/trace
        echo 0 >instances/byhand/events/byhand/enable; rmdir instances/byhand; echo >kprobe_events""").check().text
    rows = [dict(re.findall(r'(\w+)="?([^\s"]+)', row)) for row in shown.splitlines() if ": region: " in row]
    return {int(row["lkey"]): (int(row["tgid"]), *((row["exporter"], row["device"]) if row["dmabuf"] == "1"
                                                   else (None, None))) for row in rows}


def trace(guest, words="", user=None, without=(), status=0):
    """The document of `peerpath trace`. without: what is taken away first, for this look alone."""
    command = f"exec peerpath trace --json {words}"
    if user:
        command = f"exec su {user} -c '{command}'"
    text = "; ".join([*without, command]).replace('"', '\\"')
    shown = guest.run(f'unshare -m sh -c "{text}"', 60).check(status)
    return json.loads(shown.out)


def traced(document):
    """lkey, else number and device: (pid, registration or None, state, surfaces that suffice)."""
    found = {}
    for row in document["evidence"]:
        if row["scope"] != "mr":
            continue
        key = (row["hca"], row["mrn"]) if row["lkey"] is None else row["lkey"]
        found[key] = (row["pid"], row["registration"], row["state"],
                      {s["surface"] for s in row["sightings"] if s["sufficient"]})
    return found


def surface(document, name):
    return next(s for s in document["surfaces"] if s["surface"] == name)


def nothing_left(guest):
    """tracefs is as before the look: no instance, no probe."""
    left = guest.run("cd /sys/kernel/tracing; ls instances; cat kprobe_events uprobe_events").check().text
    expect("what is left in tracefs", left, "")
