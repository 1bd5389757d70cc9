#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The software device's libibverbs as the loader, providers and tools of rdma-core see it.

usage: soft_abi.py DIRECTORY LOADER FIXTURES PART

DIRECTORY holds libibverbs.so and .so.1; LOADER is tests/e2e/soft_abi_loader.c built. Exit 77: the part
needs something that is not installed.
"""
import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

DIRECTORY, LOADER, FIXTURES = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
LIBRARY = DIRECTORY / "libibverbs.so.1"
LOOPBACK = "name=soft_lo,address=127.0.0.1,address=::1"


class Skip(Exception):
    """What is missing."""


def environment(config=LOOPBACK, **more):
    env = {**os.environ, "LD_LIBRARY_PATH": str(DIRECTORY), **more}
    env.pop("PEERPATH_SOFT", None)
    if config is not None:
        env["PEERPATH_SOFT"] = config
    return env


def run(argv, config=LOOPBACK, status=0):
    """stdout of a program that must exit with @status and say nothing on stderr unless it fails."""
    if not shutil.which(str(argv[0])):
        raise Skip(f"{argv[0]} is not installed")
    done = subprocess.run([str(a) for a in argv], env=environment(config), capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == status, (argv, done)
    assert status or not done.stderr, (argv, done.stderr)
    return done.stdout


def exports(path):
    out = run(["nm", "-D", "--defined-only", path])
    return {line.split()[2] for line in out.splitlines() if "@" in line}


def fixture(name):
    return set((FIXTURES / name).read_text().split())


def part_exports():
    ours, golden = exports(LIBRARY), fixture("exports-65.list")
    assert len(golden) > 500, len(golden)
    golden |= fixture("own.list")
    assert ours == golden, (sorted(ours - golden), sorted(golden - ours))
    plain = {name.replace("@@", "@") for name in ours}
    for promised in ("debian-44.list", "debian-65.list"):
        missing = fixture(promised) - plain
        assert not missing, (promised, sorted(missing))
    versions = run(["readelf", "--wide", "-V", LIBRARY])
    for node in ("IBVERBS_1.0", "IBVERBS_1.18", *(f"IBVERBS_PRIVATE_{n}" for n in (34, 57, 59, 64, 65))):
        assert node in versions, node


def part_needs():
    """libc only, no text relocations, everything resolved at start, no code run by loading it."""
    out = run(["readelf", "--wide", "-d", LIBRARY])
    needed = re.findall(r"NEEDED\).*\[(.*)\]", out)
    if not os.environ.get("PEERPATH_SANITIZED"):
        assert needed == ["libc.so.6"], needed
    assert re.findall(r"SONAME\).*\[(.*)\]", out) == ["libibverbs.so.1"], out
    assert "TEXTREL" not in out
    assert (DIRECTORY / "libibverbs.so").resolve() == LIBRARY.resolve()
    undefined = run(["nm", "-D", "--undefined-only", LIBRARY])
    for name in ("printf", "fprintf", "puts", "signal", "sigaction", "exit", "syslog"):
        assert not re.search(rf" {name}@", undefined), name


def part_loader():
    out = run([LOADER])
    assert "device: soft_lo" in out and "dmabuf probe: Bad file descriptor" in out, out
    assert "27 symbols" in out, out


def installed_library():
    for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        path = pathlib.Path(directory) / "libibverbs.so.1"
        if path.exists():
            return path
    raise Skip("rdma-core's libibverbs.so.1 is not installed")


ASK = """
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
words = {}
for name, numbers in (("ibv_wc_status_str", range(-1, 26)), ("ibv_event_type_str", range(-1, 24)),
                      ("ibv_node_type_str", range(-1, 10)), ("ibv_port_state_str", range(-1, 8))):
    getattr(lib, name).restype = ctypes.c_char_p
    words[name] = [getattr(lib, name)(n).decode() for n in numbers]
for name, numbers in (("ibv_rate_to_mult", range(-1, 30)), ("ibv_rate_to_mbps", range(-1, 30)),
                      ("mult_to_ibv_rate", range(-1, 500)), ("mbps_to_ibv_rate", range(0, 1300000, 1))):
    words[name] = [getattr(lib, name)(n) for n in numbers if name != "mbps_to_ibv_rate" or n % 125 == 0 or
                   n in (14062, 25781)]
print(json.dumps(words))
"""


def part_words():
    """Texts and rates against the installed rdma-core's, wherever that one knows the number."""
    theirs, ours = (json.loads(run([sys.executable, "-c", ASK, path])) for path in (installed_library(), LIBRARY))
    compared = 0
    for name, answers in theirs.items():
        for index, theirs_says in enumerate(answers):
            if theirs_says in ("unknown", -1, 0):
                continue
            assert ours[name][index] == theirs_says, (name, index, ours[name][index], theirs_says)
            compared += 1
        assert ours[name][0] in ("unknown", -1, 0), name
    assert compared > 120, compared


PROVIDER = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)
maps = open("/proc/self/maps").read()
assert sys.argv[2] in maps, "not ours"
assert maps.count("libibverbs.so.1.") == 0, "the installed one too"
verbs = ctypes.CDLL("libibverbs.so.1")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
n = ctypes.c_int()
devices = verbs.ibv_get_device_list(ctypes.byref(n))
assert n.value == 1
for probe in sys.argv[3:]:
    getattr(lib, probe).restype = ctypes.c_bool
    assert not getattr(lib, probe)(ctypes.c_void_p(devices[0])), probe
print("loaded")
"""


def part_providers():
    """The distribution's provider libraries bind to our private nodes and see no device of theirs."""
    tried = 0
    for name, probes in (("libmlx5.so.1", ["mlx5dv_is_supported"]), ("libefa.so.1", []), ("librdmacm.so.1", [])):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        tried += 1
        out = run([sys.executable, "-c", PROVIDER, name, str(LIBRARY), *probes])
        assert out == "loaded\n", (name, out)
    if not tried:
        raise Skip("neither libmlx5 nor libefa nor librdmacm is installed")


def part_tools():
    out = run(["ibv_devices"])
    assert re.search(r"^\s+soft_lo\s+[0-9a-f]{16}$", out, re.M), out
    out = run(["ibv_devinfo", "-v"])
    for line in (r"hca_id:\s+soft_lo", r"transport:\s+InfiniBand \(0\)", r"phys_port_cnt:\s+1",
                 r"atomic_cap:\s+ATOMIC_HCA", r"state:\s+PORT_ACTIVE \(4\)", r"active_mtu:\s+4096 \(5\)",
                 r"link_layer:\s+Ethernet", r"active_width:\s+4X \(2\)", r"active_speed:\s+25.0 Gbps \(32\)",
                 r"phys_state:\s+LINK_UP \(5\)", r"GID\[\s*0\]:\s+::ffff:127.0.0.1, RoCE v2",
                 r"GID\[\s*1\]:\s+::1, RoCE v2"):
        assert re.search(line, out), (line, out)
    out = run(["ibv_devinfo", "-v"], config=LOOPBACK + ",vendor_id=0x2c9,vendor_part_id=4119,mtu=1024,rate=400")
    for line in (r"vendor_id:\s+0x02c9", r"vendor_part_id:\s+4119", r"active_mtu:\s+1024 \(3\)",
                 r"active_speed:\s+.*\(128\)"):
        assert re.search(line, out), (line, out)
    # by default: a device for the loopback, the last one
    out = run(["ibv_devices"], config=None)
    assert out.split()[-2] == "soft_lo", out


def part_description():
    """A wrong description gives no devices and an error, and not a word from the library."""
    done = subprocess.run([str(LOADER)], env=environment("name=x,address=192.0.2.250"), capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stdout == "no devices: Invalid argument\n" and not done.stderr, done
    done = subprocess.run([str(LOADER)], env=environment("/nonexistent"), capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stdout == "no devices: No such file or directory\n" and not done.stderr, done


PARTS = {name[5:]: function for name, function in globals().items() if name.startswith("part_")}

# Parts that load the library into programs which this build did not make.
FOREIGN = ("loader", "words", "providers", "tools")

if __name__ == "__main__":
    try:
        if os.environ.get("PEERPATH_SANITIZED") and sys.argv[4] in FOREIGN:
            raise Skip("programs that are not instrumented cannot load an instrumented library")
        PARTS[sys.argv[4]]()
    except Skip as missing:
        print(missing)
        sys.exit(77)
    print(f"{sys.argv[4]}: ok")
