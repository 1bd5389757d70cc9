#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ACS bits, IOMMU groups and their types of recorded guest runs, against the table made from
lspci's decoding of the same bytes and the kernel's own words."""
import csv
import gzip
import re
import sys
import tempfile

import topo_lib as lib

FUNCTION = re.compile(
    r"=DEV (\S+) class=(\S+) id=(\S+):(\S+) numa=(\S+) cur=(.*?)/(\d*) max=(.*?)/(\d*) "
    r"grp=(\S*) drv=(\S*) cfg=(\d+) cpus=(\S+)"
)


def dumps(text):
    """`lspci -x` style dump to {bdf: bytes}."""
    found, current = {}, None
    for line in text.splitlines():
        head = re.match(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", line)
        if head:
            current = found.setdefault(head[1], bytearray())
        elif re.match(r"[0-9a-f]+: ", line):
            current += bytes.fromhex(line.split(": ", 1)[1])
    return found


def build(top, log, config):
    tree = lib.Tree(top)
    tree.nodes(2)
    kinds = dict(re.findall(r"=GRP (\d+) type=(\S+)", log))
    for line in log.splitlines():
        m = FUNCTION.match(line.strip())
        if not m:
            continue
        path, klass, vendor, device, numa, cs, cw, ms, mw, group, _, size, cpus = m.groups()
        files = {"class": klass, "vendor": vendor, "device": device, "numa_node": numa,
                 "local_cpulist": cpus}
        dump = bytes(config[path.split("/")[-1]])
        assert len(dump) == int(size), (path, len(dump), size)
        files["config"] = dump
        if cs:
            files.update(current_link_speed=cs, current_link_width=cw,
                         max_link_speed=ms, max_link_width=mw)
        tree.function(path, **files)
        if group:
            tree.group(path, group, kinds[group])


def main():
    top = lib.shared() / "qemu"
    with open(top / "devices.tsv", newline="") as table:
        want = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    checked = wrong = 0
    for run in sorted({row["run"] for row in want}):
        log = (top / f"{run}.log").read_text(errors="replace")
        config = dumps(gzip.open(top / f"{run}.lspci.gz", "rt").read())
        with tempfile.TemporaryDirectory() as place:
            build(place, log, config)
            got = {f["bdf"]: f for f in lib.run(place)["pci"]}
        for row in (row for row in want if row["run"] == run):
            f = got.get(row["path"].split("/")[-1])
            if not f:
                wrong += 1
                print(run, row["path"], "not listed")
                continue
            mine = {
                "path": f["path"].removeprefix("/sys/devices/"),
                "class": f["class"],
                "id": f"{f['vendor']}:{f['device']}",
                "numa": str(f["numa_node"]),
                "group": "" if f["iommu_group"] == -1 else str(f["iommu_group"]),
                "group_type": "" if f["iommu_type"] == "none" else f["iommu_type"],
                "cfg_bytes": str(f["config_bytes"]),
                "acs_cap": f["acs"].get("cap", ""),
                "acs_ctl": f["acs"].get("ctl", ""),
            }
            for key, value in mine.items():
                checked += 1
                if value != row[key]:
                    wrong += 1
                    print(run, row["path"], f"{key}: {value}, want {row[key]}")
            # A conventional function's 256 bytes hold no ACS: that is not "off".
            if f["config_bytes"] < 4096 and f["acs"]["state"] != "unreadable":
                wrong += 1
                print(run, row["path"], "ACS", f["acs"]["state"], "of a short config space")
    print(f"{len(want)} functions, {checked} values, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
