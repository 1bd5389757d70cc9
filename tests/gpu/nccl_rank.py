#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a job on NCCL, by ctypes alone: NCCL and CUDA's driver library are all it needs.

usage: nccl_rank.py RANK RANKS MEETING_DIRECTORY PLAN

PLAN is JSON: {"sizes": [bytes...], "ops": ["all_reduce"...], "seconds": s, "mixed": n, "register": bool, "graphs": [bytes...],
"launches": n}. Prints a JSON object a line: a row for each size, at last {"done": true}. Targets are poisoned before, and every byte is compared with
what the host has computed. PP_GPU chooses the GPU; NCCL_LIBRARY names the library.
"""
import array
import ctypes
import json
import os
import pathlib
import random
import sys
import time

RANK, RANKS, MEETING, PLAN = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), json.loads(sys.argv[4])
FLOAT, SUM, PERIOD = 7, 0, 97


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


cuda = ctypes.CDLL("libcuda.so.1")
nccl = ctypes.CDLL(os.environ.get("NCCL_LIBRARY", "libnccl.so.2"))


def cu(name, *args):
    rc = getattr(cuda, name)(*args)
    if rc:
        raise SystemExit(f"{name}: CUDA error {rc}")


def nc(name, *args):
    rc = getattr(nccl, name)(*args)
    if rc:
        nccl.ncclGetLastError.restype = ctypes.c_char_p
        raise SystemExit(f"{name}: NCCL error {rc}: {nccl.ncclGetLastError(None)}")


def say(**row):
    print(json.dumps(row), flush=True)


def alloc(size):
    at = ctypes.c_uint64()
    cu("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
    return at.value


def pattern(count, weight, shift):
    """Element i is weight * (i % PERIOD) + shift, as floats that sums do not round."""
    part = array.array("f", (weight * i + shift for i in range(PERIOD))).tobytes()
    return (part * (count // PERIOD + 1))[:count * 4]


def put(at, data):
    cu("cuMemcpyHtoD_v2", ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))
    cu("cuCtxSynchronize")


def get(at, size):
    data = ctypes.create_string_buffer(size)
    cu("cuMemcpyDtoH_v2", data, ctypes.c_uint64(at), ctypes.c_size_t(size))
    return data.raw


def poison(at, size):
    cu("cuMemsetD8_v2", ctypes.c_uint64(at), ctypes.c_ubyte(0xee), ctypes.c_size_t(size))
    cu("cuCtxSynchronize")


class Job:
    def __init__(self, room):
        context, self.stream, self.comm = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        cu("cuInit", 0)
        cu("cuDevicePrimaryCtxRetain", ctypes.byref(context), int(os.environ.get("PP_GPU", "0")))
        cu("cuCtxSetCurrent", context)
        cu("cuStreamCreate", ctypes.byref(self.stream), 1)
        version = ctypes.c_int()
        nc("ncclGetVersion", ctypes.byref(version))
        self.version = version.value
        begin = time.monotonic()
        nc("ncclCommInitRank", ctypes.byref(self.comm), RANKS, self.meet(), RANK)
        say(init_s=round(time.monotonic() - begin, 3), version=self.version)
        self.src, self.dst = alloc(room), alloc(room)
        if PLAN.get("register"):
            handle = ctypes.c_void_p()
            for at in (self.src, self.dst):
                nc("ncclCommRegister", self.comm, ctypes.c_void_p(at), ctypes.c_size_t(room), ctypes.byref(handle))

    def meet(self):
        ident, file = Id(), MEETING / "id"
        if RANK == 0:
            nc("ncclGetUniqueId", ctypes.byref(ident))
            (MEETING / "id.new").write_bytes(bytes(ident))
            (MEETING / "id.new").rename(file)
        while not file.exists():
            time.sleep(0.01)
        ctypes.memmove(ctypes.byref(ident), file.read_bytes(), 128)
        return ident

    def wait(self):
        cu("cuStreamSynchronize", self.stream)

    def begin(self, op, count):
        """@count elements are what one rank gives. What rank 0 of each operation's definition does, all do."""
        src, dst, n = ctypes.c_void_p(self.src), ctypes.c_void_p(self.dst), ctypes.c_size_t(count)
        if op == "all_reduce":
            nc("ncclAllReduce", src, dst, n, FLOAT, SUM, self.comm, self.stream)
        elif op == "all_gather":
            nc("ncclAllGather", src, dst, n, FLOAT, self.comm, self.stream)
        elif op == "reduce_scatter":
            nc("ncclReduceScatter", src, dst, ctypes.c_size_t(count // RANKS), FLOAT, SUM, self.comm, self.stream)
        elif op == "broadcast":
            nc("ncclBroadcast", src, dst, n, FLOAT, 0, self.comm, self.stream)
        else:
            nc("ncclGroupStart")
            nc("ncclSend", src, n, FLOAT, (RANK + 1) % RANKS, self.comm, self.stream)
            nc("ncclRecv", dst, n, FLOAT, (RANK - 1) % RANKS, self.comm, self.stream)
            nc("ncclGroupEnd")

    def expected(self, op, count):
        total = RANKS * (RANKS - 1) / 2
        if op == "all_reduce":
            return pattern(count, RANKS, total)
        if op == "all_gather":
            return b"".join(pattern(count, 1, rank) for rank in range(RANKS))
        if op == "reduce_scatter":
            part = count // RANKS * 4
            return pattern(count, RANKS, total)[RANK * part:(RANK + 1) * part]
        return pattern(count, 1, 0 if op == "broadcast" else (RANK - 1) % RANKS)

    def check(self, op, count):
        want = self.expected(op, count)
        put(self.src, pattern(count, 1, RANK))
        poison(self.dst, len(want) + 64)
        self.begin(op, count)
        self.wait()
        have = get(self.dst, len(want) + 64)
        if have[:len(want)] != want:
            bad = next(i for i in range(len(want)) if have[i] != want[i])
            say(op=op, bytes=count * 4, wrong=True, first=bad)
            return False
        if op != "broadcast" and have[len(want):] != b"\xee" * 64:
            say(op=op, bytes=count * 4, wrong=True, first=len(want))
            return False
        return True

    def capture(self, count, times):
        """A graph of so many all_reduces behind each other, and its nodes: what is launched without NCCL's call."""
        graph, ready, nodes = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        cu("cuStreamBeginCapture_v2", self.stream, 1)  # other threads' calls are none of the capture's
        for _ in range(times):
            self.begin("all_reduce", count)
        cu("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        cu("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
        cu("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        return graph, ready, nodes.value

    def graph(self, size):
        """Captured once, launched again and again, each time with other data; then back to back, and the call itself beside it."""
        count, times, launches = size // 4 // RANKS * RANKS, 2, PLAN.get("launches", 10)
        if not self.check("all_reduce", count):  # connections are made outside of the capture
            return False
        graph, ready, nodes = self.capture(count, times)
        for shift in range(launches):
            put(self.src, pattern(count, 1, RANK + shift))
            poison(self.dst, count * 4 + 64)
            cu("cuGraphLaunch", ready, self.stream)
            self.wait()
            have, want = get(self.dst, count * 4 + 64), pattern(count, RANKS, RANKS * (RANKS - 1) / 2 + RANKS * shift)
            if have != want + b"\xee" * 64:
                say(op="graph", bytes=count * 4, wrong=True, launch=shift)
                return False
        begin = time.monotonic()
        for _ in range(launches):
            cu("cuGraphLaunch", ready, self.stream)
        self.wait()
        took = (time.monotonic() - begin) / launches / times
        cu("cuGraphExecDestroy", ready)
        cu("cuGraphDestroy", graph)
        say(op="graph", bytes=count * 4, times=launches * times, launches=2 * launches, nodes=nodes, us=round(took * 1e6, 2),
            algbw_gbps=round(count * 4 / took * 1e-9, 3), wrong=False)
        return self.check("all_reduce", count)

    def measure(self, op, size):
        count = size // 4 // RANKS * RANKS
        if not self.check(op, count):
            return False
        for _ in range(5):
            self.begin(op, count)
        self.wait()
        times = 1
        while True:
            begin = time.monotonic()
            for _ in range(times):
                self.begin(op, count)
            self.wait()
            took = time.monotonic() - begin
            # All ranks must come to the same number: it is the size's alone.
            if times > 1:
                break
            times = 200 if size <= 1 << 20 else 60 if size <= 16 << 20 else 20 if size <= 64 << 20 else 8
            if PLAN.get("few"):
                times = max(2, times // 10)
        say(op=op, bytes=count * 4, times=times, us=round(took / times * 1e6, 2),
            algbw_gbps=round(count * 4 * times / took * 1e-9, 3), wrong=False)
        return self.check(op, count)


def main():
    # A rank gathers what all give.
    job = Job(max(PLAN["sizes"] + PLAN.get("graphs", []) + [4 << 20]) * RANKS + 4096)
    good = True
    for op in PLAN["ops"]:
        for size in PLAN["sizes"]:
            good = good and job.measure(op, size)
    for size in PLAN.get("graphs", ()):
        good = good and job.graph(size)
    dice = random.Random(7)
    for i in range(PLAN.get("mixed", 0)):
        op = dice.choice(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "send_recv"))
        count = max(dice.choice((1, 3, 16, 48, 128, 1024, 16384, 150000, 1 << 20)) // RANKS * RANKS, RANKS)
        good = good and job.check(op, count)
    if PLAN.get("mixed"):
        say(mixed=PLAN["mixed"], wrong=not good)
    until = time.monotonic() + PLAN.get("seconds", 0)
    while good and time.monotonic() < until:  # to be ended from outside
        job.begin("all_reduce", 1 << 20)
        job.wait()
    if good:
        nc("ncclCommDestroy", job.comm)
        say(done=True)
    sys.exit(0 if good else 1)


main()
