#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which device, port and CPUs each node uses: made machines, whose plan says where everything was put, and the
recorded H200 node.

usage: choose.py PEERPATH CHOOSE_LINES
"""
import pathlib
import subprocess
import sys
import tempfile

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
PROGRAM = sys.argv[2]
KEYS = ("gpu", "id", "device", "port", "numa", "cpus", "netdev", "kind", "why")


class Fault(Exception):
    pass


def make(where, preset, *faults):
    out = pathlib.Path(where) / "-".join((preset, *faults))
    more = ["--faults", ",".join(faults)] if faults else []
    subprocess.run([sys.executable, FIXTURES / "make_machine.py", preset, *more, out], check=True)
    return out


def ask(machine, *words):
    """Rows, or (name of the error, its line)."""
    done = subprocess.run([PROGRAM, str(machine), *map(str, words)], capture_output=True, text=True, timeout=60,
                          check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    if done.returncode == 1:
        return tuple(rows[0])
    if done.returncode:
        raise Fault(f"{machine} {words}: exit {done.returncode}: {done.stderr}")
    return [dict(zip(KEYS, row)) for row in rows]


def one(machine, device="-", gpu="-", port=0, *listed):
    got = ask(machine, "one", device, gpu, port, *listed)
    if isinstance(got, tuple):
        raise Fault(f"{device} {gpu} {port}: {got}")
    return got[0]


def same(what, got, wanted):
    if got != wanted:
        raise Fault(f"{what}: {got}, not {wanted}")


def fails(machine, name, says, *words):
    got = ask(machine, "one", *words)
    if not isinstance(got, tuple) or got[0] != name or says not in got[1]:
        raise Fault(f"{words}: {got}, not {name} with '{says}'")


def wired(machine):
    """gpu -> (hca, NUMA node, CPUs) as the recording's files say: the two that share a switch."""
    top = machine / "raw" if (machine / "raw").is_dir() else machine
    by_switch = {}
    for path in (top / "sys/devices").glob("pci*/**/class"):
        kind, at = path.read_text().strip()[:6], path.parent
        name = {"0x0302": "gpu", "0x0207": "hca", "0x0200": "hca"}.get(kind)
        if name:
            by_switch.setdefault(at.parents[1], {}).setdefault(name, []).append(at)
    rails = {}
    for found in by_switch.values():
        if len(found.get("gpu", ())) == 1 and len(found.get("hca", ())) == 1:
            hca = found["hca"][0]
            rails[found["gpu"][0].name] = (hca.name, (hca / "numa_node").read_text().strip(),
                                           (hca / "local_cpulist").read_text().strip())
    return rails


def rails(where):
    for preset, count in (("good2", 2), ("good8", 8)):
        machine = make(where, preset)
        expected = wired(machine)
        same(f"{preset}: the files", len(expected), count)
        got = ask(machine, "rails")
        same(preset, {row["gpu"]: (row["id"], row["numa"], row["cpus"]) for row in got}, expected)
        for row in got:
            same("alone", {**one(machine, gpu=row["gpu"]), "why": ""}, {**row, "why": ""})
            same("by name", one(machine, row["device"])["id"], row["id"])
            same("by BDF", one(machine, row["id"])["device"], row["device"])
            same("by a short BDF", one(machine, row["id"][5:].upper())["device"], row["device"])
        first, last = got[0], got[-1]
        mixed = one(machine, last["device"], first["gpu"])
        same("the device wins", mixed["id"], last["id"])
        if "not the gpu's rail" not in mixed["why"]:
            raise Fault(mixed["why"])
    return machine


def roce(where):
    machine = make(where, "good2", "roce")
    for row in ask(machine, "rails"):
        if row["netdev"] == "-":
            raise Fault(f"no netdev: {row}")


def down(where):
    machine = make(where, "good2", "port-down")
    rows = ask(machine, "rails")
    sound = {row["id"] for row in rows}
    same("one hca is left to both", (len(rows), len(sound)), (2, 1))
    lost = {hca for hca, *_ in wired(machine).values()} - sound
    fails(machine, "ENETDOWN", "1 DOWN", lost.pop(), "-", 0)
    same("the first ACTIVE", one(machine)["id"], sound.pop())


def refusals(machine):
    fails(machine, "ENODEV", "mlx5_0)", "mlx5_99", "-", 0)
    fails(machine, "ENODEV", "there is: 0000:", "-", "ff:00.0", 0)
    fails(machine, "ENODEV", "no port 2; it has: 1 ACTIVE", "mlx5_0", "-", 2)
    fails(machine, "ENODEV", "no RDMA device 'x'", "x", "-", 0)


def none_there(where):
    machine = make(where, "good2", "no-rdma-device")
    got = ask(machine, "rails")
    same("no device: no rails", got, [])
    fails(machine, "ENODEV", "no RDMA device", "-", "-", 0)
    hca = next(iter(wired(machine).values()))[0]
    fails(machine, "ENODEV", "has no RDMA device: its driver", hca, "-", 0)


def recorded():
    """Two GPUs and no NIC; the software device is what libibverbs lists there."""
    machine = FIXTURES / "machines" / "h200-2gpu.tar.zst"
    fails(machine, "ENODEV", "no RDMA device on this node", "-", "-", 0)
    same("no rails", ask(machine, "rails"), [])
    got = one(machine, "-", "-", 0, "soft0")
    same("software", (got["id"], got["device"], got["port"], got["numa"], got["cpus"], got["kind"]),
         ("virtual/soft0", "soft0", "1", "-1", "-", "software"))
    for name in ("soft0", "virtual/soft0"):
        same(name, one(machine, name, "-", 0, "other", "soft0")["id"], "virtual/soft0")
    fails(machine, "ENODEV", "virtual/soft0", "soft1", "-", 0, "soft0")
    rows = ask(machine, "rails", "soft0")
    same("each gpu with it", [(row["id"], row["gpu"] != "-") for row in rows], [("virtual/soft0", True)] * 2)


def main():
    with tempfile.TemporaryDirectory() as where:
        try:
            good8 = rails(where)
            roce(where)
            down(where)
            refusals(good8)
            none_there(where)
            recorded()
        except Fault as err:
            sys.exit(str(err))
    print("all choices right")


if __name__ == "__main__":
    main()
