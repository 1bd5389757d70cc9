# SPDX-License-Identifier: Apache-2.0
"""What a guest boots: Debian's kernel, unpacked into a cache, and an initramfs made here.

Owns the cache directory (PEERPATH_LAB_CACHE, else XDG's cache). The package is downloaded by apt and
unpacked by dpkg-deb, never installed; apt's lists of this machine are read, and where they do not
know the kernel private ones are fetched into the cache. The archive is written here instead of by
cpio, because /dev/console must be in it and only root can make one on disk.
"""
import contextlib
import fcntl
import lzma
import os
import pathlib
import re
import shutil
import stat
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MODULES = ("virtio_pci", "virtio_net", "virtio_console", "9p", "9pnet_virtio", "crc32_generic",
           "ib_uverbs", "rdma_ucm", "rdma_rxe")
PROGRAMS = ("rdma", "ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_ud_pingpong",
            "ibv_srq_pingpong", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
            "ib_send_bw", "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat")
PACKAGES = {"rdma": "iproute2", "ibv": "ibverbs-utils", "ib": "perftest"}
# Without a network a test must skip soon; the cache need not be readable by apt's own user.
PATIENCE = ["-o", "Acquire::http::Timeout=15", "-o", "Acquire::https::Timeout=15",
            "-o", "Acquire::Retries=0", "-o", "APT::Sandbox::User="]
SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Unavailable(Exception):
    """The lab cannot be had on this machine; the text says why. Tests skip."""


class BuildError(Exception):
    """What the lab builds of its own sources does not build: a fault, no reason to skip."""


def find(program, package):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":" + SBIN)
    if not path:
        raise Unavailable(f"no {program}: install {package}")
    return path


def cache_dir():
    base = os.environ.get("PEERPATH_LAB_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        base = os.path.join(home, "peerpath", "lab")
    path = pathlib.Path(base)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise Unavailable(f"no cache directory {path}: {err.strerror}") from err
    return path


@contextlib.contextmanager
def locked(path):
    with open(path / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ask(command, why, **kw):
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=240, check=False, **kw)
    except (OSError, subprocess.TimeoutExpired) as err:
        raise Unavailable(f"{why}: {err}") from err
    if run.returncode:
        said = [line for line in run.stderr.splitlines() if line.startswith("E:")] or \
            run.stderr.splitlines() or ["no message"]
        raise Unavailable(f"{why}: {said[-1]}")
    return run.stdout


def private_lists(cache):
    """Options that keep apt's state inside the cache: no root, nothing of the machine changes."""
    lists = cache / "apt"
    (lists / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (lists / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::Lists={lists}/lists", "-o", f"Dir::Cache={lists}"]


def newest_package(options):
    shown = ask(["apt-cache", *options, "show", "--no-all-versions", "linux-image-amd64"],
                "apt knows no linux-image-amd64")
    found = re.search(r"^Depends:.*?\b(linux-image-[0-9][\w.+-]*-amd64)\b", shown, re.M)
    if not found:
        raise Unavailable("linux-image-amd64 names no kernel package")
    return found[1]


def download(cache):
    """The newest package's file: apt's word, else what the cache holds, else by lists fetched now."""
    find("apt-get", "apt, on Debian")
    options = PATIENCE
    try:
        package = newest_package(options)
    except Unavailable:
        kept = sorted(cache.glob("*.deb"), key=os.path.getmtime)
        if kept:
            return kept[-1]
        options = PATIENCE + private_lists(cache)
        ask(["apt-get", *options, "update", "-qq"], "apt cannot fetch its lists")
        package = newest_package(options)
    kept = sorted(cache.glob(f"{package}_*.deb"), key=os.path.getmtime)
    if kept:
        return kept[-1]
    with tempfile.TemporaryDirectory(dir=cache) as work:
        ask(["apt-get", *options, "download", package], f"apt cannot download {package}", cwd=work)
        made = next(pathlib.Path(work).glob("*.deb"), None)
        if not made:
            raise Unavailable(f"apt downloaded no file for {package}")
        return made.rename(cache / made.name)


def module_name(path):
    return path.name.split(".ko")[0].replace("-", "_")


def module_body(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def closure(top, modules):
    """The wanted modules and what they need, in loading order. The package has no modules.dep (its
    installation would make it), so each module's own list of needs is read."""
    files = {module_name(path): path for path in top.rglob("*.ko*")}
    order, bodies = [], {}

    def visit(name):
        if name in bodies or name not in files:
            return  # built into the kernel, or already there
        bodies[name] = module_body(files[name])
        needs = re.search(rb"\0depends=([^\0]*)\0", bodies[name])
        for need in (needs[1].decode("ascii") if needs else "").split(","):
            visit(need.replace("-", "_"))
        order.append(name)

    for wanted in modules:
        visit(wanted)
    return [(name, bodies[name]) for name in order]


def payload(image):
    """The kernel that a bzImage packs by xz, an ELF file: to unpack it is work for a processor, not for an emulated one.
    None where it is packed otherwise, or lacks what QEMU enters an ELF file by (PVH: Xen's note 18)."""
    try:
        at, length = struct.unpack_from("<II", image, 0x248)  # payload_offset and payload_length
        at += ((image[0x1f1] or 4) + 1) * 512  # behind setup_sects and the boot sector
        kernel = lzma.LZMADecompressor().decompress(image[at:at + length], 1 << 28)
    except (lzma.LZMAError, struct.error, IndexError):
        return None
    entry = re.search(rb"\x04\0{3}[\x04\x08]\0{3}\x12\0{3}Xen\0", kernel)
    return kernel if kernel.startswith(b"\x7fELF") and entry else None


def unpack(deb, to, modules):
    with tempfile.TemporaryDirectory(dir=to.parent) as work:
        tree = pathlib.Path(work) / "tree"
        ask([find("dpkg-deb", "dpkg"), "-x", str(deb), str(tree)], f"cannot unpack {deb.name}")
        kernel = next((tree / "boot").glob("vmlinuz-*"), None)
        if not kernel:
            raise Unavailable(f"{deb.name} holds no kernel")
        made = pathlib.Path(work) / "made"
        made.mkdir()
        shutil.copy(kernel, made / "vmlinuz")
        (made / "kernel").write_bytes(payload(kernel.read_bytes()) or kernel.read_bytes())
        for number, (name, body) in enumerate(closure(tree, modules)):
            (made / f"{number:02d}-{name}.ko").write_bytes(body)
        (made / "wanted").write_text(" ".join(modules), encoding="ascii")
        shutil.rmtree(to, ignore_errors=True)
        made.rename(to)


def kernel(deb=None, more=()):
    """The directory with vmlinuz, what QEMU boots of it, and the numbered modules, made when it is not there. more:
    names of modules beside those that every guest has."""
    cache = cache_dir()
    with locked(cache):
        deb = pathlib.Path(deb) if deb else download(cache)
        made = cache / "+".join([deb.stem, *more])
        wanted = " ".join(MODULES + more)
        if not (made / "kernel").exists() or (made / "wanted").read_text(encoding="ascii") != wanted:
            unpack(deb, made, MODULES + more)
        return made


class Archive:
    """A cpio archive in the kernel's newc format."""

    def __init__(self):
        self.parts, self.known = [], set()

    def _entry(self, name, mode, body=b"", device=(0, 0)):
        if name in self.known:
            return
        parent = os.path.dirname(name)
        if parent:
            self._entry(parent, stat.S_IFDIR | 0o755)
        self.known.add(name)
        raw = name.encode() + b"\0"
        fields = (len(self.known), mode, 0, 0, 1, 0, len(body), 0, 0, *device, len(raw), 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        self.parts += [head, b"\0" * (-len(head) % 4), body, b"\0" * (-len(body) % 4)]

    def directory(self, name):
        self._entry(name.strip("/"), stat.S_IFDIR | 0o755)

    def link(self, name, target):
        self._entry(name.strip("/"), stat.S_IFLNK | 0o777, target.encode())

    def console(self):
        self._entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))

    def file(self, name, body, mode=0o755):
        self._entry(name.strip("/"), stat.S_IFREG | mode, body)

    def program(self, path, to=None):
        """
        A program or library with the shared libraries that the linker finds for it: the system's, whatever this
        process was told to load (Meson puts the software device's libibverbs in front).
        """
        self.file(to or path, pathlib.Path(path).read_bytes())
        plain = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False, env=plain)
        for library in re.findall(r"(/\S+) \(0x", listed.stdout):
            self.file(library, pathlib.Path(library).read_bytes())

    def write(self, out):
        self._entry("TRAILER!!!", 0)
        for part in self.parts:
            out.write(part)


def initramfs(made, path, extra=(), modules=()):
    """extra: pairs of a file here and its place in the guest. modules: files of more kernel modules."""
    archive = Archive()
    for name in ("proc", "sys", "dev", "tmp", "lab", "root", "run"):
        archive.directory(name)
    archive.console()
    archive.file("init", (HERE / "guest.sh").read_bytes())
    busybox = find("busybox", "busybox-static")
    archive.program(busybox, "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True,
                                 check=True).stdout.split():
        if applet != "busybox":
            archive.link(f"bin/{applet}", "busybox")
    for module in sorted(made.glob("*.ko")):
        archive.file(f"modules/{module.name}", module.read_bytes(), 0o644)
    for module in modules:
        archive.file(f"modules/99-{module.name}", module.read_bytes(), 0o644)
    for program in PROGRAMS:
        archive.program(find(program, PACKAGES[program.split("_")[0]]), f"bin/{program}")
    provider = next(pathlib.Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so"), None)
    if not provider:
        raise Unavailable("no librxe provider: install ibverbs-providers")
    archive.program(str(provider))
    archive.file("etc/libibverbs.d/rxe.driver", b"driver rxe\n", 0o644)
    for here, there in extra:
        archive.program(str(here), there)
    with open(path, "wb") as out:
        archive.write(out)
