#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A made /sys: what 'peerpath soft --sysfs' shows to programs that read files, how its counters grow,
and that everything read from it is marked simulated.

What a counter must say comes from outside the device: the number of operations that perftest was told
to run, the packets that the kernel's UDP counted.

usage: sysfs.py PEERPATH RECORDED-MACHINE
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from soft import alone, both_right, need, not_sanitized, pair as two_ends, port

PEERPATH, MACHINE = sys.argv[1], sys.argv[2]
CONFIG = "name=lo,address=127.0.0.1,trains=no"
GPUS = ("0000:00:06.0", "0000:00:07.0")  # of the recorded machine
LIMIT_S = 60
failures = []


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def run(*argv, **kwargs):
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, **kwargs)


def soft(folder, *argv, config=CONFIG, options=()):
    return [PEERPATH, "soft", "--config", config, "--sysfs", str(folder), *options, "--", *argv]


def pair(folder, *argv, config=CONFIG):
    """perftest's two ends."""
    number = port()
    words = [*argv, "-p", str(number), "-d", "lo", "-F"]
    both_right(words, two_ends(soft(folder, *words, config=config), soft(folder, *words, "127.0.0.1", config=config),
                               number))


def counter(folder, name, device="lo"):
    """From the file, in the folder that has it."""
    port = folder / f"sys/class/infiniband/{device}/ports/1"
    return int([p for p in (port / "hw_counters" / name, port / "counters" / name) if p.exists()][0].read_text())


def udp_sent():
    with open("/proc/net/snmp", encoding="ascii") as f:
        rows = [line.split() for line in f if line.startswith("Udp:")]
    return int(dict(zip(*rows))["OutDatagrams"])


def counters_of(tmp):
    folder, before = tmp / "counters", udp_sent()
    pair(folder, "ib_write_lat", "-n", "1000", "-s", "8")
    # Each end writes as often as it is told to.
    expect(counter(folder, "rx_write_requests") == 2000, "writes", counter(folder, "rx_write_requests"))
    # By whatever link, and whole when the processes have ended.
    expect(counter(folder, "peerpath_sent_data_bytes") == 2000 * 8, "bytes", counter(folder, "peerpath_sent_data_bytes"))
    expect(counter(folder, "peerpath_received_data_bytes") == 2000 * 8, "and received")
    kernel, ours = udp_sent() - before, counter(folder, "port_xmit_packets")
    # Beside packets there are a few probes of the port's group; each goes out and comes back.
    expect(ours <= kernel <= ours + 64, "the kernel sent", kernel, "we count", ours)
    expect(counter(folder, "port_rcv_packets") == ours, "nothing is lost here")
    expect(counter(folder, "out_of_sequence") == 0, "a sound wire has no gap")
    pair(folder, "ib_read_lat", "-n", "500", "-s", "8")
    expect(counter(folder, "rx_read_requests") == 500, "reads", counter(folder, "rx_read_requests"))
    expect(counter(folder, "rx_write_requests") == 2000, "what ended processes counted stays")
    pair(folder, "ib_atomic_lat", "-A", "FETCH_AND_ADD", "-n", "500")
    expect(counter(folder, "rx_atomic_requests") == 500, "atomics", counter(folder, "rx_atomic_requests"))


def facts(*argv):
    done = run(PEERPATH, "identity", "--facts", "--json", *argv)
    if done.returncode:
        raise ValueError(done.stderr)
    return {f["fact"]: f for f in json.loads(done.stdout)["facts"] if f["of"].endswith("lo/1")}


def node_facts(tmp):
    """The node's facts are those files, by each way to them, and say what they are of."""
    folder = tmp / "facts"
    pair(folder, "ib_write_bw", "-n", "2000", "-s", "4096",
         config=CONFIG + ",loss_ppm=20000,seed=3")
    expect(counter(folder, "out_of_sequence") > 0 and counter(folder, "packet_seq_err") > 0, "loss leaves traces")
    inside = run(*soft(folder, PEERPATH, "identity", "--facts", "--json"))
    inside = {f["fact"]: f for f in json.loads(inside.stdout)["facts"] if f["of"].endswith("lo/1")}
    for way, seen in (("replay", facts("--replay", str(folder))), ("root", facts("--root", str(folder))),
                      ("inside", inside)):
        for name in ("out_of_sequence", "packet_seq_err", "port_xmit_data", "local_ack_timeout_err"):
            fact = seen[f"port.counter.{name}"]
            expect(fact["value"] == counter(folder, name) and fact["simulated"], way, fact)
    done = run(*soft(folder, PEERPATH, "prove", "--no-bundle"))
    expect(done.returncode == 2 and "nothing is proven" in done.stderr, "prove", done)
    done = run(*soft(folder, PEERPATH, "check", "--json"))
    expect(json.loads(done.stdout)["simulated"] is True, "check", done.stdout[-300:])
    expect(run(PEERPATH, "identity", "--json").stdout.count('"simulated": false') == 1, "the machine itself")


READER = """
import glob, os
base = "/sys/class/infiniband"
print(os.listdir(base), sorted(os.listdir(base + "/lo/ports/1/gids")), os.path.realpath(base + "/lo"))
print([open(p).read().strip() for p in glob.glob(base + "/*/ports/*/gid_attrs/types/0")])
print(open(base + "/lo/ports/1/gids/0").read().strip(), open(base + "/lo/ports/1/state").read().strip())
print(open(base + "/lo/node_guid").read().strip())
"""


def readers(tmp):
    folder = tmp / "readers"
    done = run(*soft(folder, sys.executable, "-c", READER))
    guid = run(*soft(folder, "ibv_devinfo")).stdout.partition("node_guid:")[2].split()[0]
    expect(done.stdout.splitlines() == [
        "['lo'] ['0'] /sys/devices/virtual/infiniband/lo", "['RoCE v2']",
        "0000:0000:0000:0000:0000:ffff:7f00:0001 4: ACTIVE", guid], done.stdout, done.stderr)
    done = run(*soft(folder, "ls", "-l", "/sys/class/infiniband/lo/"))
    expect(done.returncode == 0 and "ports" in done.stdout and not done.stderr, "ls", done)
    if shutil.which("ibstatus"):
        done = run(*soft(folder, "ibstatus"))
        expect("Infiniband device 'lo' port 1 status" in done.stdout and "4: ACTIVE" in done.stdout, "ibstatus", done)


def beside(tmp):
    """In a recorded machine: a function on the bus of a GPU, as near to it as bus mates are."""
    folder, two = tmp / "beside", "name=a,address=127.0.0.1;name=b,address=::1"
    options = ("--beside", ",".join(GPUS), "--replay", MACHINE)
    done = run(*soft(folder, "sh", "-c", "realpath /sys/class/infiniband/*/device", config=two, options=options))
    functions = [pathlib.Path(p).name for p in done.stdout.split()]
    expect(len(set(functions)) == 2 and not set(functions) & set(GPUS), done)
    topo = json.loads(run(PEERPATH, "topo", "--replay", str(folder), "--json").stdout)
    rails = {r["gpu"]: r for r in topo["rails"]}
    expect(set(rails) == set(GPUS) and all(r["hca"] in functions for r in rails.values()), rails)
    expect(run(*soft(folder, "true", config=two, options=options)).returncode == 0, "the same command again")


def without_marks(tmp):
    """Two of the three marks of a device may be gone: it is still none of hardware. All three: no pass."""
    names = ("peerpath_simulated", "board_id", "hca_type")
    for left in (*names, None):
        folder = tmp / f"marks-{left}"
        run(*soft(folder, "true", options=("--beside", GPUS[0], "--replay", MACHINE)))
        for name in set(names) - {left}:
            next(folder.glob(f"sys/devices/**/infiniband/lo/{name}")).unlink()
        done = run(PEERPATH, "prove", "--no-bundle", "--replay", str(folder))
        expect(done.returncode == 2 and ("nothing is proven" in done.stderr) == bool(left), left, done)


def port_down(tmp):
    """What a fault does to a running program is seen in the files, and in the node's facts."""
    folder = tmp / "down"
    with subprocess.Popen(soft(folder, "ib_write_bw", "-p", str(port()), "-d", "lo"), stdout=subprocess.DEVNULL) as server:
        try:
            time.sleep(0.7)
            for value, state, physical in (("down", "DOWN", "Disabled"), ("up", "ACTIVE", "LinkUp")):
                done = run(PEERPATH, "soft", "fault", "set", f"port={value}", "--pid", str(server.pid))
                expect(done.returncode == 0, done)
                time.sleep(0.5)
                seen = facts("--replay", str(folder))
                expect(seen["port.state"]["value"] == state and seen["port.physical_state"]["value"] == physical,
                       seen)
                expect(counter(folder, "link_downed") == 1, "link_downed", counter(folder, "link_downed"))
        finally:
            server.kill()


def refusals(tmp):
    (tmp / "other").mkdir()
    folder = tmp / "made"
    run(*soft(folder, "true"))
    for path, options, says in (
            (tmp / "other", (), "no /sys that peerpath made"),
            (tmp / "no/where", (), "No such file or directory"),
            (folder, ("--beside", "0000:00:00.0"), "was made without this --beside"),
            (tmp / "new", ("--beside", "0000:ff:1f.7"), "is not there"),
            (tmp / "new", ("--beside", "gpu0"), "is no PCI address"),
            (tmp / "new", ("--beside", ",".join(GPUS), "--replay", MACHINE), "no device for 0000:00:07.0"),
            (tmp / "new", ("--replay", "/dev/null"), "/dev/null")):
        done = run(*soft(path, "true", options=options))
        expect(done.returncode == 65 and says in done.stderr and done.stderr.count("\n") == 1, path, options, done)
    done = run(*soft(folder, "true", config="name=other,address=127.0.0.1"))
    expect(done.returncode == 65 and "has no device other" in done.stderr, done)
    expect(sorted(p.name for p in tmp.iterdir() if "new" in p.name) == [], "nothing half made is left")


def full_disk(tmp):
    (tmp / "full").mkdir()
    script = 'mount -t tmpfs -o size=64k none "$0" && "$@"; r=$?; ls "$0"; exit $r'
    done = run("unshare", "-m", "sh", "-c", script, str(tmp / "full"), *soft(tmp / "full/made", "true"))
    if "mount" in done.stderr:
        print("not run: no tmpfs here:", done.stderr.strip())
        return
    expect(done.returncode == 65 and "No space left" in done.stderr and not done.stdout, done)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        for test in (counters_of, node_facts, readers, beside, without_marks, port_down, refusals, full_disk):
            test(pathlib.Path(tmp))
    for failure in failures:
        print("FAILED:", failure)
    return bool(failures)


if __name__ == "__main__":
    need("ib_write_lat", "ibv_devinfo")
    not_sanitized()
    alone(needed=True)
    sys.exit(main())
