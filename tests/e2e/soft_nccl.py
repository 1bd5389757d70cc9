#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `peerpath soft -- CMD` sets for the NCCL that CMD would load.

usage: soft_nccl.py PEERPATH

Libraries are files of NCCL's name with the text that every libnccl carries among its constants ("NCCL version
2.28.9+cuda13.0", as its own log says it), or versions in their name as its packages have them. What 2.28 does
without NCCL_GIN_TYPE is in NVIDIA's pull request 1881.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

PEERPATH = pathlib.Path(sys.argv[1]).resolve()
CONFIG = "name=one,address=127.0.0.1;name=two,address=::1"
EXPECTED = {"NCCL_GIN_TYPE": "0", "NCCL_NET_PLUGIN": "none", "NCCL_IB_HCA": "=one", "NCCL_NET_GDR_LEVEL": "SYS", "NCCL_GRAPH_REGISTER": "0"}


def elf(constants):
    """An ELF file with one section, .rodata."""
    names = b"\0.rodata\0.shstrtab\0"
    at = 64 + len(constants)
    table = at + len(names)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)

    def section(name, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 1, 0)

    return head + constants + names + section(0, 0, 0, 0) + section(1, 1, 64, len(constants)) + section(9, 3, at, len(names))


class Place:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_"))
                    and k not in ("LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")}
        self.env["HOME"] = str(self.root)

    def library(self, content, name="libnccl.so.2", folder="lib"):
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        path = self.root / folder / name
        path.write_bytes(content)
        if name != "libnccl.so.2":
            link = path.with_name("libnccl.so.2")
            link.unlink(missing_ok=True)
            link.symlink_to(name)
        return self.root / folder

    def run(self, *options, command=("env",), **env):
        done = subprocess.run([PEERPATH, "soft", "-c", CONFIG, *options, "--", *command], env={**self.env, **env},
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done
        have = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("NCCL_"))
        return have, [line for line in done.stderr.splitlines() if "NCCL" in line or "CUDA" in line]


def installed():
    """What the loader's cache has."""
    out = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"libnccl\.so\.2 .*=> (\S+)", out)
    return found.group(1) if found else None


def lines_of(said, variable):
    return [line for line in said if re.search(rf"\b{variable}=", line)]


def check(place):
    new = elf(b"x\0NCCL version %s\0NCCL version 2.28.9+cuda13.0\0")
    where = str(place.library(new))
    have, said = place.run(LD_LIBRARY_PATH=where)
    assert have == EXPECTED, have
    assert len(said) == 6 and "2.28.9" in said[0] and f"{where}/libnccl.so.2" in said[0], said
    for variable, value in EXPECTED.items():
        assert [line.count(f"{variable}={value} set: ") for line in lines_of(said, variable)] == [1], (variable, said)

    # No NCCL in sight and no variable of it: not a word.
    assert place.run() == ({}, []), place.run()
    assert place.run("--no-nccl", LD_LIBRARY_PATH=where) == ({}, [])

    # The user's values stay, wherever they stand, and what follows from them is said.
    have, said = place.run(LD_LIBRARY_PATH=where, NCCL_NET_GDR_LEVEL="LOC", NCCL_GIN_TYPE="0", NCCL_DMABUF_ENABLE="0")
    assert have == {**EXPECTED, "NCCL_NET_GDR_LEVEL": "LOC", "NCCL_DMABUF_ENABLE": "0"}, have
    assert not lines_of(said, "NCCL_GIN_TYPE"), said
    level, dmabuf = lines_of(said, "NCCL_NET_GDR_LEVEL"), lines_of(said, "NCCL_DMABUF_ENABLE")
    assert len(level) == len(dmabuf) == 1 and "LOC of the environment stays" in level[0], said
    (place.root / ".nccl.conf").write_text("# mine\nNCCL_IB_HCA = mlx5_0\n")
    have, said = place.run(LD_LIBRARY_PATH=where)
    assert "NCCL_IB_HCA" not in have and "mlx5_0 of ~/.nccl.conf stays" in lines_of(said, "NCCL_IB_HCA")[0], (have, said)
    (place.root / "other.conf").write_text("NCCL_NET_PLUGIN=mine\n")
    have, said = place.run(LD_LIBRARY_PATH=where, NCCL_CONF_FILE=str(place.root / "other.conf"))
    assert "NCCL_NET_PLUGIN" not in have and have["NCCL_IB_HCA"] == "=one", have
    (place.root / ".nccl.conf").unlink()

    # Other versions have no such fault.
    for version in ("2.27.7", "2.29.2", "2.30.4"):
        there = str(place.library(elf(f"NCCL version {version}+cuda12.9\0".encode()), folder=version))
        have, said = place.run(LD_LIBRARY_PATH=there)
        assert "NCCL_GIN_TYPE" not in have and version in said[0] and len(have) == 4, (have, said)

    # The name, where the constants say nothing; neither: what the user must know.
    there = str(place.library(b"no ELF file", "libnccl.so.2.28.3", "named"))
    have, said = place.run(LD_LIBRARY_PATH=there)
    assert have == EXPECTED and "2.28.3" in said[0], (have, said)
    there = str(place.library(b"no ELF file", folder="mute"))
    have, said = place.run(LD_LIBRARY_PATH=there)
    assert "NCCL_GIN_TYPE" not in have and "does not tell its version" in said[0], (have, said)
    have, said = place.run(NCCL_DEBUG="INFO")
    if not installed():
        assert "NCCL_GIN_TYPE" not in have and "no libnccl.so.2 is seen" in said[0] and len(have) == 5, (have, said)
    else:
        assert installed() in said[0], said

    # A Python brings its own, before any other; a script is run by the Python that its first line names.
    venv = place.root / "venv"
    place.library(elf(b"NCCL version 2.28.7+cuda13.0\0"), folder="venv/lib/python3.11/site-packages/nvidia/nccl/lib")
    (venv / "bin").mkdir()
    (venv / "bin/python3").symlink_to("/bin/true")
    script = venv / "bin/torchrun"
    script.write_text(f"#!{venv}/bin/python3\n")
    script.chmod(0o755)
    for command in ((str(venv / "bin/python3"),), (str(script),)):
        done = subprocess.run([PEERPATH, "soft", "-c", CONFIG, "--", *command], env={**place.env, "LD_LIBRARY_PATH": where},
                              capture_output=True, text=True, timeout=60, check=False)
        assert "2.28.7" in done.stderr, (command, done)

    # Files that lie about their tables, or are cut short, are no reason to fall.
    for i in range(0, len(new), 7):
        place.library(new[:i], folder="cut")
        place.run(LD_LIBRARY_PATH=str(place.root / "cut"))
    broken = bytearray(new)
    for at in range(0x28, 0x30):
        broken[at] = 0xff
    place.library(bytes(broken), folder="cut")
    assert "does not tell" in place.run(LD_LIBRARY_PATH=str(place.root / "cut"))[1][0]

    # Under MPS kernels of two contexts take no turns, and one variable of CUDA stands in the way.
    (place.root / "mps").mkdir()
    (place.root / "mps/control").write_text("")
    mps = {"LD_LIBRARY_PATH": where, "CUDA_MPS_PIPE_DIRECTORY": str(place.root / "mps")}
    assert "NCCL_GRAPH_REGISTER" not in place.run(**mps)[0], place.run(**mps)
    assert lines_of(place.run(CUDA_DEVICE_MAX_CONNECTIONS="32", **mps)[1], "CUDA_DEVICE_MAX_CONNECTIONS")
    assert not lines_of(place.run(CUDA_DEVICE_MAX_CONNECTIONS="8", **mps)[1], "CUDA_DEVICE_MAX_CONNECTIONS")


with tempfile.TemporaryDirectory() as scratch:
    check(Place(scratch))
