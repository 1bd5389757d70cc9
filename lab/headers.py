# SPDX-License-Identifier: Apache-2.0
"""Kernel modules of the lab's own, built for the kernel that the guests boot.

Debian's headers and kbuild of that very version are unpacked into the lab's cache, never installed.
The build runs on this machine with its gcc: in a guest without KVM it would take minutes, and
Debian's own modules come of the same compiler. The headers package has no vmlinux, without which
kbuild leaves out a module's BTF; the packed kernel holds one, so its BTF is taken from there.
"""
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import image
from image import Unavailable, ask, find

PAHOLE = ("pahole", "libbpf1", "libdw1", "libelf1")


def options_for(cache, package):
    """apt's options by which it knows the package: this machine's lists, else the cache's own."""
    for private in (False, True):
        options = image.PATIENCE + (image.private_lists(cache) if private else [])
        shown = subprocess.run(["apt-cache", *options, "show", package], capture_output=True,
                               text=True, check=False)
        if shown.returncode == 0 and shown.stdout.strip():
            return options
    ask(["apt-get", *options, "update", "-qq"], "apt cannot fetch its lists")
    return options


def fetch(cache, wanted, work):
    """Files of the packages, in `work`. A wanted one is NAME or NAME=VERSION."""
    find("apt-get", "apt, on Debian")
    options = options_for(cache, wanted[0].split("=")[0])
    ask(["apt-get", *options, "download", *wanted], f"apt cannot download {wanted[0]}", cwd=work)
    return sorted(pathlib.Path(work).glob("*.deb"))


def headers_of(cache, package, version, tree):
    """Headers, then what their package says that it is built with."""
    with tempfile.TemporaryDirectory(dir=cache) as work:
        first = fetch(cache, [f"{package}={version}"], work)[0]
        needs = ask([find("dpkg-deb", "dpkg"), "-f", str(first), "Depends"], f"no Depends in {first.name}")
        rest = re.findall(r"\b(linux-headers-[\w.+-]*-common|linux-kbuild-[\w.+-]+)", needs)
        fetch(cache, [f"{name}={version}" for name in rest] + list(PAHOLE), work)
        for deb in pathlib.Path(work).glob("*.deb"):
            ask(["dpkg-deb", "-x", str(deb), str(tree)], f"cannot unpack {deb.name}")


def kernel_btf(kernel):
    """The section .BTF of the kernel that the guests boot (image.payload())."""
    elf = kernel.read_bytes()
    try:
        table, = struct.unpack_from("<Q", elf, 0x28)
        size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
        heads = [struct.unpack_from("<I20xQQ", elf, table + i * size) for i in range(count)]
        for name, offset, length in heads:
            text = heads[names][1] + name
            if elf[text:text + 5] == b".BTF\0":
                return elf[offset:offset + length]
    except (struct.error, IndexError) as err:
        raise Unavailable(f"{kernel} is not packed as the lab reads it: {err}") from err
    raise Unavailable("the kernel has no BTF")


def tree_for(made):
    """Unpacked headers for the kernel of `made` (image.kernel()), with tools and vmlinux.btf."""
    cache = image.cache_dir()
    tree = cache / f"headers-{made.name}"
    if (tree / "vmlinux.btf").exists():
        return tree
    named = re.fullmatch(r"linux-image-(.+)_(.+)_amd64", made.name)
    if not named:
        raise Unavailable(f"no headers package goes with {made.name}")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        new = pathlib.Path(work) / "tree"
        headers_of(cache, f"linux-headers-{named[1]}", named[2].replace("%3a", ":"), new)
        # The package names its common part by the place where it would be installed.
        top = new / "usr/src" / f"linux-headers-{named[1]}" / "Makefile"
        top.write_text(re.sub(r"^include /usr/src/", "include ../", top.read_text(), flags=re.M))
        (new / "vmlinux.btf").write_bytes(kernel_btf(made / "kernel"))
        shutil.rmtree(tree, ignore_errors=True)
        new.rename(tree)
    return tree


def make(tree, source, work):
    release = next((tree / "usr/src").glob("linux-headers-*-amd64"))
    libraries = next((tree / "usr/lib").glob("*-linux-gnu"))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "MAKE"))}
    env.update(LD_LIBRARY_PATH=str(libraries), LLVM_OBJCOPY="objcopy", LC_ALL="C")
    for path in source.iterdir():
        if path.name == "Kbuild" or path.suffix in (".c", ".h"):
            shutil.copy(path, work)
    built = subprocess.run([find("make", "make"), "-C", str(release), f"M={work}", "modules"],
                           capture_output=True, text=True, check=False, env=env)
    made = next(pathlib.Path(work).glob("*.ko"), None)
    if built.returncode or not made:
        raise image.BuildError(f"the kernel module does not build:\n{built.stdout}{built.stderr}")
    # The kernel of the guest takes its own layouts from BTF; DWARF has done its duty then.
    for words in ([str(tree / "usr/bin/pahole"), "-J", "--btf_gen_floats", "--skip_encoding_btf_enum64",
                   "--btf_base", str(tree / "vmlinux.btf"), str(made)],
                  [find("objcopy", "binutils"), "--strip-debug", str(made)]):
        ran = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
        if ran.returncode:
            raise image.BuildError(f"{' '.join(words)}: {ran.stderr}")
    return made


def module(source, deb=None):
    """The .ko that the directory `source` (a Kbuild and its C files) builds; kept in the cache."""
    compiler = find("gcc-12", "gcc-12, by which Debian's kernel is built")
    made = image.kernel(deb)
    source = pathlib.Path(source)
    known = hashlib.sha256(made.name.encode() + compiler.encode())
    for path in sorted(source.iterdir()):
        known.update(path.name.encode() + path.read_bytes())
    kept = image.cache_dir() / f"{source.name}-{known.hexdigest()[:16]}.ko"
    with image.locked(image.cache_dir()):
        if not kept.exists():
            tree = tree_for(made)
            with tempfile.TemporaryDirectory(dir=image.cache_dir()) as work:
                make(tree, source, work).rename(kept)
    return kept


def peerlab(deb=None):
    """What Lab() takes more for a guest with the device peerlab0, which registers DMA-BUFs, and vgem,
    which exports them."""
    return {"modules": ("vgem", module(image.HERE / "module", deb)), "devices": ("edu",)}
