#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peerpath trace from outside: recordings, wrong usage, unknown processes, no RDMA device, commands, Ctrl-C.

usage: trace.py PEERPATH
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

FAULTS = []
NIC = "0000:3b:00.0"


def need(good, what):
    if not good:
        FAULTS.append(what)


def run(*words, **more):
    done = subprocess.run([PEERPATH, "trace", *words], capture_output=True, text=True, timeout=60, **more)
    return done.returncode, done.stdout, done.stderr


def answer(name, data):
    return {"schema": "peerpath.answer/1", "name": name, "outcome": "answered", "detail": "", "took_ms": 1, "data": data}


def machine(top, pinned_kb=0, buffers=1, tids=(4711, 4711), lengths=(2 << 20, 4096), unreadable=0, core=True, events=None):
    """An mlx5 hca and one process; bufinfo has an attachment or two of NVIDIA's exporter to it."""
    raw = top / "raw"
    device = raw / "sys/devices/pci0000:3a/0000:3a:00.0" / NIC / "infiniband/mlx5_0"
    device.mkdir(parents=True)
    (raw / "sys/class/infiniband").mkdir(parents=True)
    os.symlink(f"../../devices/pci0000:3a/0000:3a:00.0/{NIC}/infiniband/mlx5_0", raw / "sys/class/infiniband/mlx5_0")
    os.symlink(f"../../../{NIC}", device / "device")
    os.symlink("../../../../bus/pci/drivers/mlx5_core", device.parent.parent / "driver")
    (raw / "sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    (raw / "sys/module").mkdir()
    (raw / "proc").mkdir()
    (raw / "proc/modules").write_text("mlx5_core 1 0 - Live 0x0\n")
    (raw / "sys/kernel/mm").mkdir(parents=True)
    mrs = [{"id": 7 + i, "parent": 1, "length": length, "lkey": 100 + i, "rkey": 100 + i, **({"tid": tid} if tid else {})}
           for i, (tid, length) in enumerate(zip(tids, lengths))]
    answers = {
        "rdma-resources": {"core": core, "privileged": True, "first_user_namespace": True, "first_pid_namespace": True, "devices": [
            {"index": 0, "name": "mlx5_0", "mr": mrs, "pd": [{"id": 1, "parent": 3}], "ctx": [{"id": 3}], "qp": []}]},
        "rdma-processes": {"first_pid_namespace": True, "own_proc": True, "init_listed": True, "pid_ns": 4026531836,
                           "unreadable": unreadable, "processes": [
                               {"pid": 4711, "started": 99, "uid": 0, "comm": "job", "pinned_kb": pinned_kb, "descriptors": True,
                                "gpu_descriptors": 4, "uverbs": ["uverbs0"], "buffers": [], "threads": [4711]}]},
        "dma-buf": {"text": "\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\tino\tname\n" + "".join(
            f"02097152\t00080002\t00080007\t00000001\tnv_dmabuf\t{900 + i:08d}\t<none>\n\n\tAttached Devices:\n"
            f"\t{NIC}\nTotal 1 devices attached\n\n" for i in range(buffers)) +
            f"\nTotal {buffers} objects, {2097152 * buffers} bytes\n"},
    }
    if events is not None:
        answers["trace-events"] = {"events": events, "lost": 0, "surfaces": {
            name: {"state": "read", "why": ""} for name in ("self-probe", "live-probe", "symbols", "btf")}}
    (top / "answers").mkdir()
    for name, data in answers.items():
        (top / "answers" / f"{name}.json").write_text(json.dumps(answer(name, data)))
    return top


def replayed(**how):
    with tempfile.TemporaryDirectory() as d:
        status, out, err = run("-j", "--replay", str(machine(pathlib.Path(d), **how)))
        text_status, text, _ = run("--replay", d)
    need(status == text_status, f"{how}: exit {status} with -j, {text_status} without")
    need(all(len(line) <= 80 for line in text.splitlines()), f"{how}: lines beyond 80 columns:\n{text}")
    try:
        return status, json.loads(out), text
    except ValueError:
        sys.exit(f"{how}: no document: {out} {err}")


def regions(doc):
    return {e["mrn"]: e for e in doc["evidence"] if e["scope"] == "mr"}


def recordings():
    # One region, one attachment, nothing pinned: it can be no other.
    status, doc, text = replayed(lengths=(2 << 20,), tids=(4711,))
    mr = regions(doc)[7]
    need((status, mr["registration"], mr["state"], mr["gpu_memory"]) == (0, "dmabuf", "proven", True), f"one: {status} {mr}")
    need(mr["exporter"] == "nv_dmabuf" and mr["importer"] == NIC and mr["bdf"] == NIC and mr["pid"] == 4711, f"one: {mr}")
    need("bufinfo" in text and "DMA-BUF" in text, text)
    # As much pinned as it is long: something else may be attached.
    status, doc, _ = replayed(lengths=(2 << 20,), tids=(4711,), pinned_kb=2048)
    need(status == 2 and regions(doc)[7]["state"] == "unproven", f"pinned: {status} {regions(doc)[7]}")
    # Two regions, one attachment: not told which; each row has a next command.
    status, doc, text = replayed()
    need(status == 2 and all(r["registration"] is None and r["missing"] for r in regions(doc).values()), f"two: {doc}")
    need(" ".join(text.split()).count("next:") == 2, text)
    # Both are attached.
    status, doc, _ = replayed(buffers=2)
    need(status == 0 and {r["registration"] for r in regions(doc).values()} == {"dmabuf"}, f"both: {status}")
    # No owner: it stays a row.
    status, doc, text = replayed(tids=(0,), lengths=(4096,), unreadable=3)
    need(status == 2 and regions(doc)[7]["pid"] is None and regions(doc)[7]["why_pid"], f"no owner: {doc}")
    need("process that is not known" in text, text)
    # No RDMA core.
    status, doc, text = replayed(core=False)
    need(status == 2 and not regions(doc) and "no RDMA" in doc["why"], f"no core: {doc}")


def probes():
    """Where bufinfo leaves two regions to one attachment, recorded probes tell; without one of their events nothing more is told."""
    about = {"kind": "region", "by": "self-probe", "tid": 4711, "pid": 4711, "hca": "mlx5_0", "has_umem": True, "is_peer": False}
    events = [
        {**about, "at_ns": 1, "mrn": 7, "is_dmabuf": True, "exporter": "nv_dmabuf", "device": NIC, "inode": "0x384", "size": "0x200000"},
        {**about, "at_ns": 2, "mrn": 8, "is_dmabuf": False},
    ]
    status, doc, text = replayed(pinned_kb=4, events=events)
    told = {n: (r["registration"], r["state"], r["gpu_memory"]) for n, r in regions(doc).items()}
    need(status == 0 and told == {7: ("dmabuf", "proven", True), 8: ("host", "proven", False)}, f"probes: {status} {told}")
    need("self-probe" in text, text)
    process = next(e for e in doc["evidence"] if e["scope"] == "process")
    need((process["registration"], process["state"]) == ("dmabuf", "proven"), f"probes: {process}")
    for kept in range(2):
        _, less, _ = replayed(pinned_kb=4, events=[events[kept]])
        for n, r in regions(less).items():
            need(r["state"] != "proven" or (r["registration"], "proven", r["gpu_memory"]) == told[n], f"event {kept} alone: {n} {r}")
    other = [{**events[0], "inode": "0x385"}, events[1]]
    status, less, _ = replayed(pinned_kb=4, events=other)
    need(status == 2 and regions(less)[7]["state"] == "unproven", f"another inode: {status}")
    way = {"by": "live-probe", "tid": 4711, "pid": 4711}
    live = [
        {**way, "kind": "attach", "at_ns": 1, "result": 0, "symbol": "dma_buf_dynamic_attach", "exporter": "nv_dmabuf", "device": NIC,
         "inode": "0x384", "size": "0x200000"},
        {**way, "kind": "dmabuf", "at_ns": 2, "result": 0, "symbol": "ib_umem_dmabuf_get", "fd": 9},
        {**way, "kind": "added", "at_ns": 3, "symbol": "rdma_restrack_add", "hca": "mlx5_0", "lkey": 100, "object": "0xffff888000000700"},
        {**way, "kind": "host", "at_ns": 4, "result": 0, "symbol": "ib_umem_get"},
        {**way, "kind": "added", "at_ns": 5, "symbol": "rdma_restrack_add", "hca": "mlx5_0", "lkey": 101, "object": "0xffff888000000800"},
    ]
    status, doc, _ = replayed(pinned_kb=4, events=live)
    told_live = {n: (r["registration"], r["state"], r["gpu_memory"]) for n, r in regions(doc).items()}
    need(status == 0 and told_live == told, f"live probes: {status} {told_live} {regions(doc)[8]}")
    for i in range(len(live)):
        _, less, _ = replayed(pinned_kb=4, events=live[:i] + live[i + 1:])
        for n, r in regions(less).items():
            need(r["state"] != "proven" or (r["registration"], "proven", r["gpu_memory"]) == told[n],
                 f"without event {i}: {n} is {r['registration']}: {r['why']}")


def logs(top):
    """A log that claims direct traffic of a process whose regions are all DMA-BUF agrees; capability lines do not count."""
    log = top / "nccl.log"
    log.write_text("n1:4711:50 [0] NCCL INFO DMA-BUF is available on GPU device 0\n"
                   "n1:4711:50 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n")
    tree = top / "machine"
    tree.mkdir()
    machine(tree, lengths=(2 << 20,), tids=(4711,))
    status, out, err = run("-j", "--replay", str(tree), "--log", str(log))
    states = [entry["state"] for entry in json.loads(out)["logs"]] if status == 0 else err
    need(states == ["recorded", "agrees"], f"log: exit {status}, {states}")
    perftest = top / "perftest.log"
    perftest.write_text("using DMA-BUF for GPU buffer address at 0x7f00 aligned at 0x7f00 with aligned size 65536\n")
    status, out, _ = run("-j", "--replay", str(tree), "--log", str(perftest))
    need(status == 0 and json.loads(out)["logs"][0]["state"] == "agrees", f"perftest's log: {status}")
    status, _, err = run("--replay", str(tree), "--log", str(top / "absent"))
    need(status == 65 and "absent" in err, f"absent log: {status} {err}")
    status, _, err = run("--replay", str(tree), "--log", PEERPATH)
    need(status == 65, f"a program as a log: {status} {err}")


def captured(top):
    """A capture holds what trace asked: it replays to the same table; scrubbed, but for what a process is called."""
    tree = top / "captured"
    tree.mkdir()
    machine(tree, lengths=(2 << 20,), tids=(4711,))
    _, want, _ = run("-j", "--replay", str(tree))
    for more in ((), ("--scrub",)):
        copy = top / f"copy{len(more)}"
        done = subprocess.run([PEERPATH, "capture", "--replay", str(tree), "-o", str(copy), *more], capture_output=True, text=True, timeout=60)
        need(done.returncode == 0, f"capture {more}: {done.stderr}")
        status, out, err = run("-j", "--replay", str(copy))
        first, second = json.loads(want), json.loads(out or "{}")
        called = {e.pop("comm") for e in second.get("evidence", ())}
        need(len(called) == 1 and called.pop().startswith("prog-" if more else "job"), f"capture {more}: {out}")
        for e in first["evidence"]:
            e.pop("comm")
        del first["source"], second["source"]
        need(status == 0 and first == second, f"capture {more}: exit {status} {err}\n{out}")


def usage():
    for words in (("--pid", "0"), ("--pid", "x"), ("--pid", "99999999"), ("--watch=0",), ("--watch=soon",), ("--watch", "--log", "x"),
                  ("--watch", "--replay", "x"), ("--pid", "1", "--", "true"), ("--watch", "--", "true"), ("--probes",),
                  ("--", "/nonexistent/program"), ("--replay", "x", "--", "true")):
        status, out, err = run(*words)
        need(status == 64 and not out and len(err.splitlines()) == 1, f"{words}: exit {status}: {out}{err}")
    status, out, err = run("--pid", "4194303")
    need(status == 2 and not out and err == "peerpath trace: there is no process 4194303\n", f"no process: {status} {out}{err}")


def here():
    """Whatever this machine is: one document, a verdict that fits the exit status, nobody's rights are assumed."""
    for who in ({}, {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}):
        try:
            status, out, err = run("-j", **who)
        except PermissionError:
            continue
        doc = json.loads(out)
        need(doc["schema"] == "peerpath.trace/1" and status == {"pass": 0, "unknown": 2}[doc["verdict"]], f"here: {status} {err}")
        need(all(s["state"] == "read" or s["how"] for s in doc["surfaces"]), f"here: a surface without a way: {doc['surfaces']}")
        netlink = next(s for s in doc["surfaces"] if s["surface"] == "resources")
        if not os.path.isdir("/sys/class/infiniband"):
            need(status == 2 and netlink["state"] == "absent" and "no RDMA device" in doc["why"], f"here: {doc['why']}")


def command(top):
    status, out, err = run("-j", "--", "sh", "-c", "echo said; exit 3")
    doc = json.loads(out)
    need(doc["command"]["exit_status"] == 3 and doc["command"]["argv"][0] == "sh", f"command: {doc.get('command')}")
    need(status in (0, 2) and "said" in err, f"command: {status} {err}")
    status, out, _ = run("--", "sh", "-c", "echo said; kill -9 $$")
    need("said" in out and "signal 9" in out, f"killed command: {out}")
    mark = top / "pid"
    child = subprocess.Popen([PEERPATH, "trace", "-j", "--", "sh", "-c", f"echo $$ > {mark}; exec sleep 60"], stdout=-1, stderr=-1)
    while not (mark.exists() and mark.read_text().strip()):
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=30)
    need(child.returncode == 130 and json.loads(out)["command"]["signal"] == signal.SIGTERM, f"Ctrl-C: {child.returncode} {out}")
    need(not os.path.exists(f"/proc/{mark.read_text().strip()}"), "Ctrl-C left the command")
    watch = subprocess.Popen([PEERPATH, "trace", "-j", "--watch=200ms"], stdout=-1, stderr=-1)
    need(b"watching" in watch.stderr.readline(), "watch does not say that it does")
    watch.send_signal(signal.SIGINT)
    out, _ = watch.communicate(timeout=30)
    need(watch.returncode == 130 and all(json.loads(line) for line in out.splitlines()), f"watch: {watch.returncode}")
    sleep = subprocess.Popen(["sleep", "60"])
    watch = subprocess.Popen([PEERPATH, "trace", "--watch=200ms", "--pid", str(sleep.pid)], stdout=-1, stderr=-1)
    need(b"watching" in watch.stderr.readline(), "watch of a process")
    sleep.kill()
    sleep.wait()
    watch.communicate(timeout=30)
    need(watch.returncode in (0, 2), f"watch of a process that ended: {watch.returncode}")


def main():
    recordings()
    probes()
    usage()
    here()
    with tempfile.TemporaryDirectory() as d:
        logs(pathlib.Path(d))
    with tempfile.TemporaryDirectory() as d:
        captured(pathlib.Path(d))
    with tempfile.TemporaryDirectory() as d:
        command(pathlib.Path(d))
    print("\n".join(FAULTS) or "trace says what it is to say")
    return 1 if FAULTS else 0


PEERPATH = sys.argv[1]
sys.exit(main())
