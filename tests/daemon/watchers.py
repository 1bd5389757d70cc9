#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Watchers on a recorded machine of which one thing changes at a time: exactly that look changes, and comes back.

usage: watchers.py LOOKS MAKE_MACHINE FAKE

FAKE: the folder of the fake NVML and CUDA.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FAULTS = []
FAKE = ""
GPU, NIC, BRIDGE = "0000:18:00.0", "0000:19:00.0", "0000:17:00.0"


def need(good, what):
    if not good:
        FAULTS.append(what)


class Watch:
    """The program that looks, kept running: its watchers keep what they keep."""

    def __init__(self, program, *args, env=None):
        self.process = subprocess.Popen([program, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def look(self, only=""):
        """{(kind, object): (word, text)}, and events as a list of (object, text, named, raw)."""
        self.process.stdin.write(f"look {only}".strip() + "\n")
        self.process.stdin.flush()
        looks, events = {}, []
        for line in self.process.stdout:
            kind, *rest = line.rstrip("\n").split("\t")
            if kind == ".":
                return looks, events
            thing, word, text, named, raw = rest
            if named:
                events.append((thing, text, named, raw))
            else:
                need((kind, thing) not in looks, f"told twice: {kind} of {thing}")
                looks[kind, thing] = (word, text)
        sys.exit("the watchers ended")

    def forget(self):
        self.process.stdin.write("forget\n")

    def end(self):
        self.process.stdin.close()
        need(self.process.wait(timeout=60) == 0, "the program did not end well")


class Machine:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.raw = self.top / "raw"
        # sysfs has loops of links: only what is really there
        self.paths = [os.path.relpath(os.path.join(folder, name), self.raw)
                      for folder, folders, files in os.walk(self.raw) for name in folders + files]

    def find(self, pattern):
        wanted = re.compile(re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*"))
        found = [p for p in self.paths if wanted.fullmatch(p)]
        if len(found) != 1:
            sys.exit(f"{pattern}: {found}")
        return self.raw / found[0]

    def write(self, pattern, text):
        path = self.find(pattern) if "*" in pattern else self.raw / pattern
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return lambda: path.write_bytes(before) if before is not None else path.unlink()

    def bytes(self, pattern, change):
        path = self.find(pattern)
        before = path.read_bytes()
        path.write_bytes(change(before))
        return lambda: path.write_bytes(before)

    def answer(self, name, change):
        path = self.top / "answers" / f"{name}.json"
        before = path.read_text() if path.exists() else None
        doc = json.loads(before) if before else {"schema": "peerpath.answer/1", "name": name, "outcome": "answered",
                                                 "detail": "", "took_ms": 1, "data": {}}
        change(doc)
        path.write_text(json.dumps(doc))
        return lambda: path.write_text(before) if before else path.unlink()


def port(nic=NIC):
    return f"sys/devices/**/{nic}/infiniband/*/ports/1"


def sub(pattern, to):
    def change(data):
        new = re.sub(pattern, to, data.decode())
        if new == data.decode():
            sys.exit(f"nothing to change: {pattern}")
        return new.encode()

    return change


def acs(data):
    """Sets Request Redirect and Completion Redirect in the ACS control register (PCIe 6.0, 7.7.11.3)."""
    at = 0x100
    while at:
        head = int.from_bytes(data[at:at + 4], "little")
        if head & 0xffff == 0x000d:
            value = int.from_bytes(data[at + 6:at + 8], "little") ^ 0x0c
            return data[:at + 6] + value.to_bytes(2, "little") + data[at + 8:]
        at = head >> 20
    sys.exit("no ACS capability")


def hang(doc):
    doc.update(outcome="timeout", detail="nvmlInit_v2 did not return in 5000 ms", data=None)


def stats(name, value):
    def change(doc):
        doc["data"]["enp25s0"]["stats"][name] = value

    return change


def bar1(doc):
    for gpu in doc["data"]["gpus"]:
        if gpu["bdf"].lower().endswith(GPU[5:]):
            gpu["bar1_used_bytes"] = gpu["bar1_total_bytes"] - 4096


def cases(m):
    """Name, what to do (it gives back how to undo it), and {(kind, object): text, or part of it} of what is other then."""
    hw, counters = f"{port()}/hw_counters", f"{port()}/counters"
    p = f"{NIC} port 1"
    rail = {("topology-class", GPU): "root-complex"}
    yield "kernel", lambda: m.write("proc/sys/kernel/osrelease", "6.8.0-61-generic\n"), {
        ("software-fingerprint", "kernel.release"): "6.8.0-61-generic",
        ("software-fingerprint", "rdma.stack_version"): "6.8.0-61-generic"}
    yield "firmware", lambda: m.write(f"sys/devices/**/{NIC}/infiniband/*/fw_ver", "28.99.1000\n"), {
        ("software-fingerprint", NIC): "firmware 28.99.1000"}
    yield "driver", lambda: m.bytes("proc/driver/nvidia/version", sub(r"580\.95\.05", "580.99.01")), {
        ("software-fingerprint", "nvidia.version"): "580.99.01"}
    yield "flavour", lambda: m.bytes("proc/driver/nvidia/version", sub("Open Kernel Module for x86_64", "x86_64 Kernel Module")), {
        ("module-flavour", "node"): "proprietary"}
    yield "acs", lambda: m.bytes(f"sys/devices/**/{BRIDGE}/config", acs), {("acs", BRIDGE): "RR+CR", **rail}
    yield "iommu", lambda: m.write(f"sys/kernel/iommu_groups/{group(m, NIC)}/type", "DMA-FQ\n"), {("iommu", NIC): "DMA-FQ"}
    yield "port down", lambda: m.write(f"{port()}/state", "1: DOWN\n"), {
        ("link-state", p): "DOWN, LinkUp", ("link-speed", p): None}
    yield "port rate", lambda: m.write(f"{port()}/rate", "100 Gb/sec (4X EDR)\n"), {
        ("link-speed", p): "100 Gb/s"}
    yield "pcie width", lambda: m.write(f"sys/devices/**/{NIC}/current_link_width", "8\n"), {
        ("link-speed", f"{NIC} pcie"): "32 GT/s x8"}
    yield "gpu's pcie width", lambda: m.write(f"sys/devices/**/{GPU}/current_link_width", "8\n"), {
        ("link-speed", f"{GPU} pcie"): "x8"}
    yield "gpu idle", lambda: m.write(f"sys/devices/**/{GPU}/current_link_speed", "2.5 GT/s PCIe\n"), {}
    yield "flap", lambda: m.write(f"{counters}/link_downed", "1\n"), {("link-flaps", p): "1"}
    yield "symbol errors", lambda: m.write(f"{counters}/symbol_error", "77\n"), {("port-errors", p): "77"}
    yield "icrc errors", lambda: m.write(f"{hw}/rx_icrc_encapsulated", "3\n"), {("port-errors", p): "3"}
    yield "retransmits", lambda: m.write(f"{hw}/local_ack_timeout_err", "5\n"), {("retransmits", p): "5"}
    yield "naks", lambda: m.write(f"{hw}/packet_seq_err", "6\n"), {("retransmits", p): "6"}
    yield "out of sequence", lambda: m.write(f"{hw}/out_of_sequence", "9\n"), {("out-of-sequence", p): "9"}
    yield "discards", lambda: m.write(f"{counters}/port_xmit_discards", "4\n"), {("discards", p): "4"}
    yield "garbage", lambda: m.write(f"{counters}/port_xmit_discards", "-4\n"), {("discards", p): "not a number"}
    yield "cnps", lambda: m.write(f"{hw}/rp_cnp_handled", "12\n"), {("cnps", p): "12"}
    yield "pauses", lambda: m.answer("ethtool", stats("rx_prio3_pause", 40)), {("pfc-pauses", f"{p} interface"): "40"}
    yield "bar1", lambda: m.answer("nvml", bar1), {("bar1-free", GPU): "4096"}
    yield "memlock", lambda: m.bytes("proc/self/limits", sub(r"(Max locked memory +)\S+( +)\S+", r"\g<1>65536\g<2>65536")), {
        ("memlock", "process"): "soft 65536, hard 65536"}
    yield "users' memlock", lambda: m.write("etc/security/limits.conf", "# c\n* hard memlock unlimited # x\n"), {
        ("memlock", "/etc/security/limits.conf"): "* hard memlock unlimited"}
    yield "nccl.conf", lambda: m.write("etc/nccl.conf", "NCCL_IB_HCA=mlx5_9\n"), {
        ("nccl-files", "/etc/nccl.conf"): "NCCL_IB_HCA=mlx5_9"}
    yield "hung driver", lambda: m.answer("nvml", hang), None
    yield "first process's limit", lambda: m.write("proc/1/limits", "Limit  Soft Limit  Hard Limit  Units\n"
                                                   "Max locked memory  8388608  8388608  bytes\n"), {
        ("memlock", "services"): "soft 8388608, hard 8388608"}


def group(m, bdf):
    return os.path.basename(os.readlink(m.find(f"sys/devices/**/{bdf}") / "iommu_group"))


def compare(name, before, after, expected):
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    if expected is None:
        need(after[("hung-call", "nvml")] == ("value", "did not return"), f"{name}: {after.get(('hung-call', 'nvml'))}")
        lost = {k for k in changed if after.get(k, ("unknown",))[0] != "unknown" and k != ("hung-call", "nvml")}
        need(not lost, f"{name}: values changed that no driver tells: {lost}")
        return
    need(changed == expected.keys(), f"{name}: changed {sorted(changed)}, not {sorted(expected)}")
    for key, text in expected.items():
        if text is None:
            need(key not in after, f"{name}: {key} is told: {after.get(key)}")
        else:
            need(text in after.get(key, ("", ""))[1], f"{name}: {key} is {after.get(key)}, not {text}")


def one_by_one(looks, top):
    m = Machine(top)
    watch = Watch(looks, top)
    first, events = watch.look()
    need(not events, f"a machine at rest tells {events}")
    for name, do, expected in cases(m):
        undo = do()
        after, events = watch.look()
        need(not events, f"{name}: {events}")
        compare(name, first, after, expected)
        undo()
        again, _ = watch.look()
        need(again == first, f"{name}: not as before when it is: "
             f"{[(k, first.get(k), again.get(k)) for k in first.keys() | again.keys() if first.get(k) != again.get(k)][:4]}")
    watch.end()


def peermem_gone(looks, top):
    """The module goes: its line in /proc/modules and its folder."""
    m = Machine(top)
    watch = Watch(looks, top)
    first, _ = watch.look()
    m.bytes("proc/modules", sub(r"(?m)^nvidia_peermem .*\n", ""))
    folder = m.raw / "sys/module/nvidia_peermem"
    folder.rename(m.top / "away")
    after, _ = watch.look()
    compare("peermem", first, after, {("peermem", "node"): "not loaded"})
    watch.end()


def device_gone(looks, top):
    m = Machine(top)
    watch = Watch(looks, top)
    watch.look("link")
    link = next(p for p in (m.raw / "sys/class/infiniband").iterdir() if NIC in os.readlink(p))
    link.unlink()
    after, _ = watch.look("link")
    need(after.get(("link-state", f"{NIC} port 1")) == ("value", "gone"), f"device gone: {after}")
    need(after.get(("link-state", "0000:2b:00.0 port 1")) == ("value", "ACTIVE, LinkUp"), f"device gone: {after}")
    watch.end()


def devices_gone(looks, top):
    """From the start on: that the directory is empty, or not there, is seen; that it cannot be read is no such thing."""
    m = Machine(top)
    folder = m.raw / "sys/class/infiniband"
    for link in folder.iterdir():
        link.unlink()
    for way in ("empty", "absent"):
        watch = Watch(looks, top)
        seen, _ = watch.look("link")
        need(seen == {("link-state", "node"): ("unknown", "/sys/class/infiniband: there is no RDMA device")}, f"{way}: {seen}")
        seen, _ = watch.look("counters")
        need(seen == {}, f"{way}, counters: {seen}")
        watch.end()
        if way == "empty":
            folder.rmdir()
    (m.raw / "sys/class").rename(m.raw / "sys/away")
    watch = Watch(looks, top)
    seen, _ = watch.look("link")
    need(seen == {("link-state", "node"): ("unknown", "/sys/class/infiniband: absent")}, f"no sysfs: {seen}")
    seen, _ = watch.look("counters")
    need(seen.get(("retransmits", "node")) == ("unknown", "/sys/class/infiniband: absent"), f"no sysfs, counters: {seen}")
    watch.end()


def kernel_log(looks, top):
    """What was there is history; a new record is told once; across a restart too; after another boot all are."""
    m = Machine(top)
    xid = f"NVRM: Xid (PCI:{GPU[:-2]}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."

    def say(*texts):
        def change(doc):
            data = doc["data"]
            for text in texts:
                data["last"] += 1
                data["records"].append(f"4,{data['last']},{data['last'] * 1000000},-;{text}\n")
        m.answer("kmsg", change)

    watch = Watch(looks, top)
    say(xid)
    need(watch.look("kernel-log")[1] == [], "history is told")
    say("usb 1-1: new device", xid)
    _, events = watch.look("kernel-log")
    need(len(events) == 1 and "xid" in events[0][1].lower() and events[0][3] == xid, f"xid: {events}")
    boot = (m.raw / "proc/sys/kernel/random/boot_id").read_text().strip()
    need(events and events[0][2] == f"{boot}:5", f"named: {events}")
    need(watch.look("kernel-log")[1] == [], "told twice")
    watch.forget()
    need(watch.look("kernel-log")[1] == [], "told again after a restart")
    watch.forget()
    say("DMAR: [DMA Write NO_PASID] Request device [19:00.0] fault addr 0x1000 [fault reason 0x05] PTE Write access is not set")
    _, events = watch.look("kernel-log")
    need(len(events) == 1 and events[0][2] == f"{boot}:6", f"while away: {events}")
    watch.forget()
    m.write("proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
    _, events = watch.look("kernel-log")
    need(len(events) == 3, f"another boot: {events}")
    watch.end()


def nccl_logs(looks, top):
    """Lines of NCCL 2.28's and 2.23's forms; harmless ones and other people's are none."""
    log = pathlib.Path(top) / "job.log"
    log.write_text("node1:1:1 [0] NCCL INFO Using network IB\n")
    watch = Watch(looks, "-l", str(log) + "*", top)
    need(watch.look("logs")[1] == [], "history is told")
    with log.open("ab") as f:
        f.write(b"node1:42:77 [0] net_ib.cc:1 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 opcode=0 "
                b"len=0 vendor err 129 (Send) localGid fe80::1 remoteGids fe80::2 hca mlx5_0\n"
                b"node1:42:77 [0] ib.cc:1 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address\n"
                b"\x1b[31m NCCL is a word in a book\x00\xff\n"
                b"node1:42:77 [0] NCCL INFO Connected all rings\n"
                b"node1:42:77 [0] misc/ibvwrap.cc:1 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on d")
    _, events = watch.look("logs")
    need([e[0] for e in events] == [str(log)] * 2, f"objects: {events}")
    need(len(events) == 2 and events[0][1].startswith("completion IBV_WC_RETRY_EXC_ERR: "), f"completion: {events}")
    need(len(events) == 2 and events[1][1].startswith("registration: "), f"registration: {events}")
    with log.open("ab") as f:
        f.write(b"ev mlx5_0:1, curr state INIT, next state RTR\n")
    watch.forget()
    _, events = watch.look("logs")
    need(len(events) == 1 and events[0][1].startswith("verb: ") and "next state RTR" in events[0][3], f"half a line: {events}")
    log.rename(log.with_suffix(".log.1"))
    log.write_text("node1:42:77 [0] ib.cc:1 NCCL WARN NET/IB : mlx5_0:1 Got async fatal event: local catastrophic error\n")
    _, events = watch.look("logs")
    need(len(events) == 1 and events[0][1].startswith("async-event"), f"rotated: {events}")
    watch.end()


def host(looks, top):
    m = Machine(top)
    m.write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\n")
    m.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n")
    watch = Watch(looks, top)
    first, _ = watch.look("host")
    need(("host-cpu", "node") not in first and ("host-pressure", "memory") not in first, f"a rate without a time: {first}")
    m.write("proc/stat", "cpu  300 0 100 1000 100 0 0 0 0 0\n")
    # 720 of the 7200 seconds between two looks
    m.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=721000000\n")
    after, _ = watch.look("host")
    need(after.get(("host-cpu", "node")) == ("number", "0.40000000000000002"), f"200 of 500 ticks: {after}")
    need(abs(float(after[("host-pressure", "memory")][1]) - 0.1) < 1e-9, f"a tenth: {after}")
    need(after[("host-pressure", "io")][0] == "unknown", f"io: {after}")
    watch.end()


def slo(looks, top):
    m = Machine(top)
    m.write("var/app.prom", "# TYPE step_seconds gauge\nstep_seconds{rank=\"0\"} 1.5\nstep_seconds{rank=\"1\"} 1.25\nother 3\n")
    watch = Watch(looks, "-s", "/var/app.prom#step_seconds", top)
    after, _ = watch.look("slo")
    need(after == {("application-slo", 'step_seconds{rank="0"}'): ("number", "1.5"),
                   ("application-slo", 'step_seconds{rank="1"}'): ("number", "1.25")}, f"slo: {after}")
    m.write("var/app.prom", "step_seconds NaN\n")
    after, _ = watch.look("slo")
    need(after[("application-slo", "step_seconds")][0] == "unknown", f"nan: {after}")
    (m.raw / "var/app.prom").unlink()
    after, _ = watch.look("slo")
    need(after[("application-slo", "step_seconds")] == ("unknown", "/var/app.prom: absent"), f"gone: {after}")
    watch.end()
    watch = Watch(looks, "-s", "http://127.0.0.1:1/metrics", top)
    after, _ = watch.look("slo")
    need(after[("application-slo", "application")] == ("unknown", "a recording opens no socket"), f"socket: {after}")
    watch.end()


def registrations(looks, top):
    """A job's region is a dma-buf, then the region is there and no attachment is; another start is another process."""
    m = Machine(top)

    def world(attached, started=99, pinned=0):
        mrs = [{"id": 7, "parent": 1, "length": 2 << 20, "lkey": 100, "rkey": 100, "tid": 4711}]
        answers = {
            "rdma-resources": {"core": True, "privileged": True, "first_user_namespace": True, "first_pid_namespace": True,
                               "devices": [{"index": 0, "name": "mlx5_0", "mr": mrs, "pd": [{"id": 1, "parent": 3}],
                                            "ctx": [{"id": 3}], "qp": []}]},
            "rdma-processes": {"first_pid_namespace": True, "own_proc": True, "init_listed": True, "pid_ns": 4026531836,
                               "unreadable": 0, "processes": [
                                   {"pid": 4711, "started": started, "uid": 0, "comm": "job", "pinned_kb": pinned,
                                    "descriptors": True, "gpu_descriptors": 4, "uverbs": ["uverbs0"], "buffers": [],
                                    "threads": [4711]}]},
            "dma-buf": {"text": "\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\tino\tname\n" + (
                "02097152\t00080002\t00080007\t00000001\tnv_dmabuf\t00000900\t<none>\n\n\tAttached Devices:\n"
                f"\t{NIC}\nTotal 1 devices attached\n\n" if attached else "") +
                f"\nTotal {int(attached)} objects, {2097152 * attached} bytes\n"},
        }
        for name, data in answers.items():
            m.answer(name, lambda doc, data=data: doc.update(data=data))

    m.bytes("proc/modules", sub(r"(?m)^nvidia_peermem .*\n", ""))
    (m.raw / "sys/module/nvidia_peermem").rename(m.top / "away")
    watch = Watch(looks, top)
    world(True)
    after, _ = watch.look("registrations")
    need(after == {("registration-path", "pid 4711 started 99"): ("value", "dmabuf")}, f"dma-buf: {after}")
    world(False, pinned=2048)
    after, _ = watch.look("registrations")
    need(after.get(("registration-path", "pid 4711 started 99"), ("", ""))[1] != "dmabuf", f"no dma-buf: {after}")
    world(True, started=200)
    after, _ = watch.look("registrations")
    need(after == {("registration-path", "pid 4711 started 200"): ("value", "dmabuf")}, f"another: {after}")
    watch.end()


def drivers(looks, top):
    """A live root whose NVML and CUDA are those of tests/fake: a window with 54 MiB left; calls that never return."""
    root = pathlib.Path(top) / "live"
    (root / "proc/driver/nvidia/gpus/0000:18:00.0").mkdir(parents=True)
    (root / "sys").mkdir()
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text())
    folders = ":".join(str(pathlib.Path(FAKE) / name) for name in ("nvml", "cuda"))

    def watch(**env):
        return Watch(looks, "-r", str(root), env={**os.environ, "LD_LIBRARY_PATH": folders, "PP_FAKE_GPU_BUS": "18", **env})

    w = watch(PP_FAKE_NVML="small-bar1")
    after, _ = w.look("bar1")
    need(after == {("bar1-free", GPU): ("number", str(54 << 20)), ("hung-call", "bar1"): ("value", "returns")}, f"bar1: {after}")
    w.end()
    w = watch(PP_FAKE_NVML="block", PP_FAKE_CUDA="block")
    after, _ = w.look("bar1")
    need(after.get(("hung-call", "bar1")) == ("value", "did not return"), f"hung: {after}")
    need(after.get(("bar1-free", GPU), ("", ""))[0] == "unknown" and "did not return" in after["bar1-free", GPU][1], f"hung: {after}")
    after, _ = w.look("facts")
    need({o: v[1] for (k, o), v in after.items() if k == "hung-call" and o in ("nvml", "cuda")} ==
         {"nvml": "did not return", "cuda": "did not return"}, f"hung: {after}")
    again, _ = w.look("facts")  # not asked anew: what was seen stands
    need(again == after, "hung, again")
    w.end()


def wiring(looks, top):
    """On a live root the whole is read once an hour: not so access control and IOMMU, which change while a node runs."""
    m = Machine(top)
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text()
    m.write("proc/sys/kernel/random/boot_id", boot)
    asleep = m.find(f"sys/devices/**/{BRIDGE}/config").parent / "power/runtime_status"
    w = Watch(looks, "-r", str(m.raw), env={**os.environ, "LD_LIBRARY_PATH": ""})
    first, _ = w.look("facts")
    need(first.get(("acs", BRIDGE), ("", ""))[0] == "value", f"acs: {first.get(('acs', BRIDGE))}")
    # What is no word of the wiring waits for its hour: so the node is not collected at each look.
    width = m.write(f"sys/devices/**/{GPU}/current_link_width", "8\n")
    again, _ = w.look("facts")
    need(again == first, "a look at rest collected the node")
    width()
    for name, do, key, text in (
            ("acs", lambda: m.bytes(f"sys/devices/**/{BRIDGE}/config", acs), ("acs", BRIDGE), "RR+CR"),
            ("iommu", lambda: m.write(f"sys/kernel/iommu_groups/{group(m, NIC)}/type", "DMA-FQ\n"), ("iommu", NIC), "DMA-FQ"),
            ("privilege", lambda: m.bytes(f"sys/devices/**/{BRIDGE}/config", lambda data: data[:64]), ("acs", BRIDGE), "only 64 bytes")):
        undo = do()
        after, _ = w.look("facts")
        need(text in after[key][1], f"{name}: {after[key]}")
        undo()
        if name != "privilege":
            after, _ = w.look("facts")
            need(after == first, f"{name}: not as before")
    w.end()
    # A bridge that sleeps is not woken to be read.
    asleep.parent.mkdir(exist_ok=True)
    asleep.write_text("active\n")
    w = Watch(looks, "-r", str(m.raw), env={**os.environ, "LD_LIBRARY_PATH": ""})
    w.look("facts")
    asleep.write_text("suspended\n")
    m.bytes(f"sys/devices/**/{BRIDGE}/config", acs)
    after, _ = w.look("facts")
    need(after == first, "a bridge that sleeps was read")
    asleep.write_text("active\n")
    after, _ = w.look("facts")
    need("RR+CR" in after["acs", BRIDGE][1], f"awake again: {after['acs', BRIDGE]}")
    w.end()


TESTS = (drivers, wiring, one_by_one, peermem_gone, device_gone, devices_gone, kernel_log, nccl_logs, host, slo, registrations)


def main():
    global FAKE
    looks, make, FAKE = sys.argv[1:4]
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder:
            top = os.path.join(folder, "machine")
            done = subprocess.run([sys.executable, make, "--gpus", "2", "--nics", "2", "--switches", "2",
                                   "--faults", "roce", top], check=False)
            if done.returncode:
                sys.exit("the machine could not be made")
            before = len(FAULTS)
            test(looks, top)
            print(f"{test.__name__}: {'ok' if len(FAULTS) == before else 'FAILED'}")
    for fault in FAULTS:
        print(fault, file=sys.stderr)
    return bool(FAULTS)


if __name__ == "__main__":
    sys.exit(main())
