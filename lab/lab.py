# SPDX-License-Identifier: Apache-2.0
"""QEMU guests with the kernel's rdma_rxe, and a link between them and a host side.

    with Lab(nodes=1, mtu=1500) as lab:
        server = lab.guest(0).start("ib_write_bw -d rxe0 -x $GID4 -n 20")
        lab.guest(0).wait_port(18515)
        lab.host("peerpath soft -- ib_write_bw -n 20 10.77.0.1").check()
        server.wait().check()

The host side is a network, PID and mount namespace of its own: nothing of the machine's network is
touched, and when its first process ends the kernel ends all that runs in it (QEMU, the capture, host
commands) and removes the link. That process ends when the maker of the lab does, however it died.
"""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import image
from image import HERE, Unavailable, find
from jobs import Deadline, Guest, HostJob, LabError, Result, go_on, listening, poll, process_start, read

__all__ = ["Lab", "Result", "LabError", "Deadline", "Unavailable", "status_of"]


class Lab:
    """nodes: 1 or 2. link: tap (guests and host side on one bridge) or socket (QEMU's own wire between
    two guests, no host). pcap: file for the RoCE packets to and from guest 0. put: pairs of a program here and
    its place in the guests. modules: more of the kernel's modules by name, and own ones as paths (headers.py).
    devices: more of QEMU's. processors: of each guest. seconds: how long the lab lives at most. keep: it outlives
    this object."""

    def __init__(self, nodes=1, mtu=1500, link="tap", pcap=None, put=(), deb=None, seconds=900,
                 directory=None, keep=False, memory=384, modules=(), devices=(), processors=1):
        if nodes not in (1, 2) or link not in ("tap", "socket") or not 1280 <= mtu <= 9000:
            raise ValueError("nodes is 1 or 2, link tap or socket, mtu 1280 to 9000")
        if link == "socket" and nodes != 2:
            raise ValueError("a socket link joins two nodes")
        self.nodes, self.mtu, self.link, self.keep = nodes, mtu, link, keep
        self.pcap = os.path.abspath(pcap) if pcap else None
        self.put, self.deb, self.seconds, self.memory = put, deb, seconds, memory
        self.modules, self.devices, self.processors = modules, devices, processors
        self.asked, self.dir = directory, None
        self.holder = self.capture = self.pid = None
        self.pids, self.machines, self.user = [], [], False

    def __enter__(self):
        try:
            return self.up()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        if not self.keep:
            self.close()

    def up(self, seconds=120):
        qemu = find("qemu-system-x86_64", "qemu-system-x86")
        made = image.kernel(self.deb, tuple(name for name in self.modules if isinstance(name, str)))
        if self.asked:
            path = pathlib.Path(self.asked).absolute()
            try:
                path.mkdir()
            except FileExistsError as err:
                raise LabError(f"{path} exists: is a lab up there?") from err
            self.dir = path  # only now: what this object has not made it does not remove
        else:
            self.dir = pathlib.Path(tempfile.mkdtemp(prefix="peerpath-lab."))
        (self.dir / "made-by-lab").touch()
        self.share = self.dir / "share"
        (self.share / "jobs").mkdir(parents=True)
        image.initramfs(made, self.dir / "initramfs", self.put,
                        [path for path in self.modules if isinstance(path, pathlib.Path)])
        self._hold()
        if self.pcap and self.link == "tap":
            self._capture()
        for node in range(self.nodes):
            self._boot(qemu, made, node)
        self._save()
        for node in range(self.nodes):
            self._wait_boot(node, seconds)
        (self.dir / "initramfs").unlink()
        return self

    def _hold(self):
        """Makes the namespaces: as root without a user namespace, else (or where root may not) in one."""
        last = "no unshare"
        for user in ([False, True] if os.geteuid() == 0 else [True]):
            last = self._try_hold(user)
            if last is None:
                return
        raise Unavailable(f"no namespaces: {last}")

    def _try_hold(self, user):
        unshare = find("unshare", "util-linux")
        command = [unshare, *(["--user", "--map-root-user"] if user else []), "--net", "--pid", "--mount",
                   "--fork", "--kill-child", "sh", str(HERE / "host.sh"), str(self.nodes),
                   str(self.mtu), self.link, str(self.dir), str(self.seconds)]
        hold = subprocess.PIPE
        if self.keep:
            fifo = self.dir / "hold"
            if not fifo.exists():
                os.mkfifo(fifo)
            hold = os.open(fifo, os.O_RDWR)  # open for writing in its reader too: it never ends
        with open(self.dir / "host.log", "wb") as log:
            holder = subprocess.Popen(command, stdin=hold, stdout=subprocess.PIPE, stderr=log,
                                      start_new_session=True,
                                      env={**os.environ, "PATH": os.environ.get("PATH", "") + ":" + image.SBIN})
        if self.keep:
            os.close(hold)
        words = holder.stdout.readline().decode().split(None, 1)
        holder.stdout.close()
        if words[:1] == ["ready"]:
            self.holder, self.pid, self.user = holder, int(words[1]), user
            return None
        if not self.keep:
            holder.stdin.close()
        holder.wait()
        said = read(self.dir / "host.log").decode("utf-8", "replace").strip().splitlines()
        return "; ".join([*(words[1:] and [words[1].strip()]), *said[-1:]]) or "unshare failed"

    def enter(self, words):
        """The command line that runs words on the host side."""
        return [find("nsenter", "util-linux"), "-t", str(self.pid),
                *(["-U", "--preserve-credentials"] if self.user else []), "-m", "-n", "-p", "--", *words]

    def _capture(self):
        # On the tap device: the bridge would show what the host side sends before its segmentation.
        tcpdump = find("tcpdump", "tcpdump")
        log = self.dir / "capture.log"
        with open(log, "wb") as err:
            self.capture = subprocess.Popen(
                self.enter([tcpdump, "-i", "tap0", "-s", "0", "-B", "16384", "-U", "--immediate-mode",
                            "-Z", "root", "-w", self.pcap, "udp port 4791"]),
                stdin=subprocess.DEVNULL, stdout=err, stderr=err, start_new_session=True)
        poll(lambda: True if b"listening on" in read(log) else None, 10,
             lambda: read(log).decode() if self.capture.poll() is not None else None, "tcpdump")

    def _network(self, node):
        if self.link == "tap":
            return [f"tap,id=n0,ifname=tap{node},script=no,downscript=no"]
        end = "listen" if node == 0 else "connect"
        dump = ["-object", f"filter-dump,id=d0,netdev=n0,file={self.pcap}"] if self.pcap and not node else []
        return [f"socket,id=n0,{end}=127.0.0.1:4700", *dump]

    def _boot(self, qemu, made, node):
        channel = self.dir / f"channel.{node}"
        os.mkfifo(f"{channel}.in")
        os.mkfifo(f"{channel}.out")
        # erms: the kernel would copy and clear by "rep movsb", which the emulator goes through byte by byte.
        # A busy machine may not give the guest its timer in time: the kernel's check of it would panic.
        words = [qemu, "-accel", "tcg", "-cpu", "max,-erms", "-m", str(self.memory), "-nodefaults",
                 "-smp", str(self.processors),
                 "-display", "none", "-no-reboot", "-kernel", str(made / "kernel"),
                 "-initrd", str(self.dir / "initramfs"),
                 "-append", f"console=ttyS0 quiet panic=-1 mitigations=off no_timer_check "
                            f"LAB_NODE={node} LAB_NODES={self.nodes} LAB_MTU={self.mtu}",
                 "-serial", f"file:{self.dir}/console.{node}",
                 "-netdev", *self._network(node),
                 "-device", f"virtio-net-pci,netdev=n0,romfile=,host_mtu={self.mtu},"
                            f"mac=52:54:00:77:00:{node + 1:02x}",
                 "-fsdev", f"local,id=share,path={self.share},security_model=none",
                 "-device", "virtio-9p-pci,fsdev=share,mount_tag=lab",
                 "-device", "virtio-serial-pci", "-chardev", f"pipe,id=c0,path={channel}",
                 "-device", "virtserialport,chardev=c0,name=lab",
                 *(word for device in self.devices for word in ("-device", device))]
        with open(self.dir / f"qemu.{node}.log", "wb") as log:
            self.machines.append(subprocess.Popen(self.enter(words), stdin=subprocess.DEVNULL,
                                                  stdout=log, stderr=log, start_new_session=True))
        self.pids.append(self.machines[-1].pid)
        if self.link == "socket" and node == 0:
            HostJob(self, listening(4700, 10)).wait(20).check()

    def _wait_boot(self, node, seconds):
        guest = self.guest(node)

        def ended():
            if self.machines[node].poll() is None:
                return guest.dead()
            return "QEMU ended: " + read(self.dir / f"qemu.{node}.log").decode("utf-8", "replace")

        try:
            poll(lambda: True if (self.share / f"ready.{node}").exists() else None, seconds, ended,
                 f"node{node} boots")
        except LabError as err:
            raise type(err)(f"{err}\nconsole of node{node}:\n{guest.console()[-4000:]}") from err

    def guest(self, index):
        return Guest(self, index)

    def host(self, command, seconds=60, env=None):
        return self.host_start(command, env).wait(seconds)

    def host_start(self, command, env=None):
        return HostJob(self, command, env)

    def host_wait_port(self, port, seconds=20):
        self.host(listening(port, seconds), seconds + 10).check()

    def capture_stop(self):
        """Ends the capture: the file is complete when this returns."""
        if self.capture and self.capture.poll() is None:
            # tcpdump ends without reading what it still has: let it come to rest before.
            size, left = -1, 25
            while left and size != os.path.getsize(self.pcap):
                size, left = os.path.getsize(self.pcap), left - 1
                time.sleep(0.3)
            go_on(self.capture)
            os.killpg(self.capture.pid, signal.SIGINT)
            self.capture.wait(10)

    def gone(self):
        return not self.pid or not process_start(self.pid)

    def close(self):
        """Ends everything; may be called twice, and half-way through up()."""
        try:
            self.capture_stop()
        except (OSError, subprocess.TimeoutExpired):
            pass  # the namespace's end kills it
        if self.holder:
            if self.holder.stdin:
                self.holder.stdin.close()
            else:
                os.kill(self.pid, signal.SIGTERM)
            try:
                self.holder.wait(15)
            except subprocess.TimeoutExpired:
                self.holder.kill()
                self.holder.wait()
            self.holder = None
        elif self.pid and not self.gone():
            os.kill(self.pid, signal.SIGTERM)
            poll(lambda: True if self.gone() else None, 15, lambda: None, "lab down")
        for machine in self.machines:
            go_on(machine)
            machine.wait()
        if self.dir and (self.dir / "made-by-lab").exists():
            subprocess.run(["rm", "-rf", str(self.dir)], check=False)

    def _save(self):
        state = {"pid": self.pid, "start": process_start(self.pid), "user": self.user,
                 "pids": self.pids, "nodes": self.nodes}
        (self.dir / "state.json").write_text(json.dumps(state), encoding="ascii")

    @classmethod
    def attach(cls, directory):
        """The lab that another process made to last."""
        path = pathlib.Path(directory).absolute()
        try:
            state = json.loads((path / "state.json").read_text(encoding="ascii"))
        except (OSError, ValueError) as err:
            raise LabError(f"no lab in {path}") from err
        lab = cls(nodes=state["nodes"], keep=True)
        lab.dir, lab.share = path, path / "share"
        lab.pid, lab.user, lab.pids = state["pid"], state["user"], state["pids"]
        if process_start(lab.pid) != state["start"]:
            lab.pid = None
        return lab


def status_of(test, *faults):
    """The exit status of a test in the lab: 77 where there is no lab, 1 where it, or what is tested (faults), broke."""
    try:
        test()
    except Unavailable as err:
        print(f"no lab here: {err}")
        return 77
    except (LabError, *faults) as err:
        print(f"FAULT: {err}")
        return 1
    return 0
