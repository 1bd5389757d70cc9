#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The software device's librdmacm as the loader and the programs that use it see it.

usage: soft_cm_abi.py DIRECTORY FIXTURES PART

DIRECTORY holds librdmacm.so.1. Exit 77: the part needs something that is not installed.
"""
import ctypes
import glob
import os
import pathlib
import re
import subprocess
import sys

DIRECTORY, FIXTURES = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
LIBRARY = DIRECTORY / "librdmacm.so.1"
SYSTEM = [f"/usr/lib/{place}" for place in ("x86_64-linux-gnu", "aarch64-linux-gnu", "")] + ["/usr/lib64"]


class Skip(Exception):
    """What is missing."""


def symbols(path, which):
    out = subprocess.run(["nm", "-D", which, str(path)], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if "RDMACM_" in line}


def installed(name):
    for directory in SYSTEM:
        if (pathlib.Path(directory) / name).exists():
            return pathlib.Path(directory) / name
    raise Skip(f"{name} is not installed")


def part_exports():
    """Exactly what rdma-core 65's version script lists, and all of what the installed library has."""
    ours, golden = symbols(LIBRARY, "--defined-only"), set((FIXTURES / "rdmacm-65.list").read_text().split())
    assert len(golden) == 80, len(golden)
    assert ours == golden, (sorted(ours - golden), sorted(golden - ours))
    try:
        theirs = symbols(installed("librdmacm.so.1"), "--defined-only")
    except Skip:
        return
    assert len(theirs) > 60 and theirs <= ours, sorted(theirs - ours)


def part_needs():
    """libc and libibverbs, of which public nodes alone; no words, no signal handlers."""
    out = subprocess.run(["readelf", "--wide", "-d", str(LIBRARY)], capture_output=True, text=True, check=True).stdout
    if not os.environ.get("PEERPATH_SANITIZED"):
        needed = set(re.findall(r"NEEDED\).*\[(.*)\]", out))
        assert needed == {"libc.so.6", "libibverbs.so.1"}, needed
    assert re.findall(r"SONAME\).*\[(.*)\]", out) == ["librdmacm.so.1"], out
    assert "TEXTREL" not in out
    undefined = subprocess.run(["nm", "-D", "--undefined-only", str(LIBRARY)], capture_output=True, text=True,
                               check=True).stdout
    verbs = re.findall(r"ibv_\w+@(\S+)", undefined)
    assert len(verbs) > 15 and "PRIVATE" not in "".join(verbs), verbs
    for name in ("printf", "fprintf", "puts", "signal", "sigaction", "exit", "syslog"):
        assert not re.search(rf" {name}@", undefined), name


def part_clients():
    """Whatever an installed program or library wants of librdmacm is there, in its version."""
    ours = {name.replace("@@", "@") for name in symbols(LIBRARY, "--defined-only")}
    found = 0
    for pattern in ("/usr/bin/ib_*", "/usr/bin/r*", "/usr/bin/uc*", "/usr/bin/ud*", "/usr/bin/cmtime", "/usr/bin/mckey",
                    *(f"{d}/{lib}" for d in SYSTEM for lib in ("libfabric.so.1", "ucx/libuct_rdmacm.so.0",
                                                               "rsocket/librspreload.so")),
                    "/usr/lib/python3/dist-packages/pyverbs/cm*.so"):
        for path in glob.glob(pattern):
            with open(path, "rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            wanted = symbols(path, "--undefined-only")
            found += bool(wanted)
            assert wanted <= ours, (path, sorted(wanted - ours))
    if not found:
        raise Skip("no program that uses librdmacm is installed")
    print(f"{found} programs and libraries")


def part_words():
    """Names of events against the installed library's."""
    if os.environ.get("PEERPATH_SANITIZED"):
        raise Skip("programs that are not instrumented cannot load an instrumented library")
    ask = ("import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).rdma_event_str; f.restype = ctypes.c_char_p;"
           "print(*(f(n).decode() for n in range(0, 17)), sep='\\n')")
    theirs, ours = (subprocess.run([sys.executable, "-c", ask, str(path)], capture_output=True, text=True, check=True,
                                   env={**os.environ, "LD_LIBRARY_PATH": where}).stdout.splitlines()
                    for path, where in ((installed("librdmacm.so.1"), ""), (LIBRARY, str(DIRECTORY))))
    assert theirs[15] == "RDMA_CM_EVENT_TIMEWAIT_EXIT", theirs
    assert ours[:16] == theirs[:16], (ours, theirs)


def part_refused():
    """What is exported only so that programs load: -1 and an errno, each of its own."""
    if os.environ.get("PEERPATH_SANITIZED"):
        raise Skip("programs that are not instrumented cannot load an instrumented library")
    os.environ["PEERPATH_SOFT"] = "name=lo,address=127.0.0.1"
    ctypes.CDLL(str(DIRECTORY / "libibverbs.so.1"))
    lib = ctypes.CDLL(str(LIBRARY), use_errno=True)
    for name, error in (("rsocket", 38), ("rconnect", 9), ("rclose", 9), ("rdma_join_multicast", 38),
                        ("rdma_leave_multicast", 99), ("rdma_resolve_addrinfo", 95)):
        ctypes.set_errno(0)
        assert getattr(lib, name)(0, 0, 0) == -1 and ctypes.get_errno() == error, (name, ctypes.get_errno())
    assert lib.rpoll(None, 0, 0) == 0


PARTS = {name[5:]: function for name, function in globals().items() if name.startswith("part_")}

if __name__ == "__main__":
    try:
        PARTS[sys.argv[3]]()
    except Skip as missing:
        print(missing)
        sys.exit(77)
    print(f"{sys.argv[3]}: ok")
