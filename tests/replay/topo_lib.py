# SPDX-License-Identifier: Apache-2.0
"""What the topology replay tests share: made sysfs trees, lspci trees, and running peerpath."""
import json
import os
import pathlib
import re
import subprocess
import sys

SKIP = 77


def shared():
    """Folder of third-party topology data; exits 77 where it is not there."""
    here = pathlib.Path(__file__).resolve().parents[2]
    top = pathlib.Path(os.environ.get("PEERPATH_SHARED", here.parent / "shared"))
    data = top / "data" / "topology"
    if not data.is_dir():
        print(f"skipped: {data} is not there (set PEERPATH_SHARED)")
        sys.exit(SKIP)
    return data


def run(tree, *options):
    """`peerpath topo --json` over a tree."""
    command = [sys.argv[1], "topo", "--json", "--replay", str(tree), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1, 2):
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def devices(bdfs):
    return [word for bdf in bdfs for word in ("--device", bdf)]


def distances(document):
    cells = {}
    for pair in document["pairs"]:
        cells[pair["a"], pair["b"]] = cells[pair["b"], pair["a"]] = pair["distance"]
    return cells


class Tree:
    """A sysfs tree in a directory of its own."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.put("sys/devices/system/node/online", "0")
        for name in ("sys/bus/pci/devices", "sys/kernel/iommu_groups"):
            (self.top / name).mkdir(parents=True, exist_ok=True)

    def put(self, path, content):
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content + "\n")

    def link(self, path, target):
        """Relative, as sysfs writes it."""
        link = self.top / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(self.top / target, link.parent))

    def nodes(self, count):
        """NUMA nodes of two CPUs and one socket each."""
        self.put("sys/devices/system/node/online", f"0-{count - 1}" if count > 1 else "0")
        for node in range(count):
            first = 2 * node
            self.put(f"sys/devices/system/node/node{node}/cpulist", f"{first}-{first + 1}")
            for cpu in (first, first + 1):
                self.put(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", str(node))

    def function(self, path, **files):
        """path: "pci0000:00/0000:00:01.0/0000:01:00.0"; files: attribute name to text or bytes."""
        place = f"sys/devices/{path}"
        for name, content in files.items():
            self.put(f"{place}/{name}", content)
        self.link(f"sys/bus/pci/devices/{path.split('/')[-1]}", place)

    def group(self, path, number, kind):
        self.put(f"sys/kernel/iommu_groups/{number}/type", kind)
        self.link(f"sys/devices/{path}/iommu_group", f"sys/kernel/iommu_groups/{number}")
        self.link(f"sys/kernel/iommu_groups/{number}/devices/{path.split('/')[-1]}", f"sys/devices/{path}")


MARK = re.compile(
    r"\[(?:([0-9a-f]{4,8}):)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]"
    r"|(?<![0-9a-f.])([0-9a-f]{2}\.[0-7])(?=[ \-\n]|$)"
)


def lspci_tree(text):
    """`lspci -tv` to {bdf: (path, description)}; a bridge has no description."""
    found, stack, last = {}, [], None
    for line in text.split("\n"):
        for mark in MARK.finditer(line):
            column = mark.start()
            if mark[3]:
                stack = [entry for entry in stack if entry[0] < column]
                if not stack:
                    continue
                _, bus, domain, path = stack[-1]
                bdf = f"{domain}:{bus}:{mark[3]}"
                words = line[mark.end():].strip()
                found[bdf] = (path + [bdf], "" if words.startswith("-") else words)
                last = (path + [bdf], domain)
                if not words.startswith("-"):
                    break
            elif mark[1]:
                stack = [(column, mark[2], mark[1], [f"pci{mark[1]}:{mark[2]}"])]
            else:
                stack = [entry for entry in stack if entry[0] < column]
                stack.append((column, mark[2], last[1], last[0]))
    return found


def looks_like(description):
    """Class, vendor, device by lspci's words."""
    if not description:
        return "0x060400", "0x10b5", "0x9797"
    if "Audio" in description:
        return "0x040300", "0x10de", "0x22ba"
    if re.match(r"NVIDIA.*(GA1|GH1|AD1|GV1|Device 2335|Device 20b8)", description):
        return "0x030200", "0x10de", "0x2330"
    if "Mellanox" in description and "SoC Management" not in description:
        return "0x020000", "0x15b3", "0x1021"
    return "0x088000", "0x8086", "0x0000"


def sysfs_of_lspci(tree, functions, numa):
    """Lays the functions of lspci_tree() into a Tree; numa: host bridge name to node."""
    for path, description in functions.values():
        klass, vendor, device = looks_like(description)
        tree.function("/".join(path), **{
            "class": klass, "vendor": vendor, "device": device,
            "numa_node": str(numa.get(path[0], -1)),
        })
