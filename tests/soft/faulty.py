#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of calls and of devices, met by programs of others: what they print, how they end, which
events they see, and that nobody beside them notices. The words are the programs' own (rdma-core's
examples, perftest, UCX), the names of states and events libibverbs'.

usage: faulty.py PEERPATH PART [SUBSTRING-OF-A-CASE...]

Parts: calls (descriptions: one program or the client of a pair), running (peerpath soft fault).
"""
import json
import os
import random
import re
import select
import socket
import subprocess
import sys
import time

from soft import PART as PART_OF_A_NIC
from soft import LOOP, Fault, alone, cases, listening, need, not_sanitized, on, pair, port

PEERPATH, PART = sys.argv[1:3]
LO = "name=soft0,address=127.0.0.1"
UCX = {"UCX_TLS": "rc_verbs,ud_verbs:aux", "UCX_NET_DEVICES": "soft0:1", "UCX_IB_GID_INDEX": "0"}
WAIT_S = 30


def config(fault=""):
    return LO + (f",fault={fault}" if fault else "")


def expect(good, *what):
    if not good:
        raise Fault(" ".join(map(str, what)))


# ── one program, one description ──

def alone_says(fault, words, status, *wanted, device=LO):
    described = f"{device},fault={fault}"
    done = subprocess.run(on(PEERPATH, described, words.split()), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=WAIT_S, check=False)
    missing = [want for want in wanted if not re.search(want, done.stdout, re.M)]
    expect(done.returncode == status and not missing, f"exit {done.returncode}, without {missing}\n{done.stdout[-2000:]}")


def client_says(fault, words, status, *wanted, env=None):
    """The client of a pair meets the fault; the server is sound. status None: any but 0."""
    number = port()
    words = [*words.split(), "-p", str(number)]
    _, (code, said) = pair(on(PEERPATH, config(), words), on(PEERPATH, config(fault), [*words, "127.0.0.1"]),
                           number, WAIT_S, env)
    missing = [want for want in wanted if not re.search(want, said, re.M)]
    expect((code == status if status is not None else code != 0) and not missing,
           f"exit {code}, without {missing}\n{said[-2000:]}")


def table_of_gids():
    """One address is gone, two change places: the table, and who asks for an index that holds none."""
    alone_says("gid=off:0", "ibv_devinfo -v", 0, r"GID\[ +1\]:\s+::1, RoCE v2", device=LOOP)
    alone_says("gid=0:1", "ibv_devinfo -v", 0, r"GID\[ +0\]:\s+::1, RoCE v2", r"GID\[ +1\]:\s+::ffff:127.0.0.1, RoCE v2",
               device=LOOP)
    done = subprocess.run(on(PEERPATH, f"{LOOP},fault=gid=off:0", ["ibv_devinfo", "-v"]), text=True, capture_output=True,
                          timeout=WAIT_S, check=False)
    expect("127.0.0.1" not in done.stdout, done.stdout)
    client_says("gid=off:0", "ibv_rc_pingpong -d soft0 -g 0", 1, "local address: .* GID ::$")


def dmabuf_probe(error, name):
    """As NCCL and UCX look for dma-buf: by the errno of a registration that cannot succeed."""
    code = ("import ctypes, errno; v = ctypes.CDLL('libibverbs.so.1', use_errno=True); p = ctypes.c_void_p\n"
            "for f in ('ibv_get_device_list', 'ibv_open_device', 'ibv_alloc_pd', 'ibv_reg_dmabuf_mr'):\n"
            "    getattr(v, f).restype = p\n"
            "pd = p(v.ibv_alloc_pd(p(v.ibv_open_device(p(p.from_address(v.ibv_get_device_list(None)).value)))))\n"
            "u = ctypes.c_uint64\n"
            "mr = v.ibv_reg_dmabuf_mr(pd, u(0), ctypes.c_size_t(0), u(0), -1, 0)\n"
            "print(mr, ctypes.get_errno())\n")
    fault = f"reg_dmabuf_mr={name}" if name else ""
    done = subprocess.run(on(PEERPATH, config(fault), [sys.executable, "-c", code]), text=True, capture_output=True,
                          timeout=WAIT_S, check=False)
    expect(done.stdout == f"None {error}\n", done.stdout, done.stderr)


def calls():
    need("ibv_devinfo", "ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ib_write_bw", "ib_send_lat", "ucx_perftest")
    rc, bw = "ibv_rc_pingpong -d soft0 -g 0", "ib_write_bw -d soft0 -x 0 -s 4096 -n 200"
    ucx = "ucx_perftest -t ucp_put_bw -n 500 -s 8192"
    table = [(f"{fault}, {words}", alone_says, fault, words, 1, want) for fault, words, want in (
        ("open_device=ENOMEM", "ibv_devinfo", "^Failed to open device$"),
        ("device=removed", "ibv_devinfo", "^Failed to open device$"),
        ("open_device=EMFILE", rc, "^Couldn't get context for soft0$"),
        ("alloc_pd=ENOMEM", rc, "^Couldn't allocate PD$"),
        ("reg_mr=ENOMEM", rc, "^Couldn't register MR$"),
        ("create_cq=12", rc, "^Couldn't create CQ$"),
        ("create_qp=ENOMEM", rc, "^Couldn't create QP$"),
        ("create_srq=ENOMEM", "ibv_srq_pingpong -d soft0 -g 0", "^Couldn't create SRQ$"),
        ("modify_qp_init=EINVAL", rc, "^Failed to modify QP to INIT$"),
        ("post_recv=ENOMEM", rc, r"^Couldn't post receive \(0\)$"),
        ("post_recv=ENOMEM@2", rc, r"^Couldn't post receive \(1\)$"),
    )]
    table += [
        ("port=down, ibv_devinfo", alone_says, "port=down", "ibv_devinfo -v", 0, r"state:\s+PORT_DOWN \(1\)",
         r"phys_state:\s+DISABLED \(3\)"),
        ("port=down, ib_write_bw", alone_says, "port=down", "ib_write_bw -d soft0", 1, "Port number 1 state is Down"),
        ("the table of GIDs", table_of_gids),
        ("an errno that is none is refused", alone_says, "reg_mr=ENOMEMORY", "true", 65, "an errno, by name or number"),
    ]
    for error, name in ((9, None), (93, "EPROTONOSUPPORT"), (95, "EOPNOTSUPP"), (524, "ENOTSUPP"), (22, "EINVAL"),
                        (12, "12")):
        table.append((f"a stack without dma-buf, {name}", dmabuf_probe, error, name))
    for fault, want in (("reg_mr=ENOMEM", "^Couldn't allocate MR$"), ("create_cq=ENOMEM", "^Couldn't create CQ$"),
                        ("create_qp=ENOTSUPP", r"^Unable to create QP\.$"), ("alloc_pd=ENOMEM", "^Couldn't allocate PD$"),
                        ("modify_qp_init=110", "^Failed to modify QP to INIT$"),
                        ("modify_qp_rtr=ETIMEDOUT", "^Failed to modify QP .* to RTR$"),
                        ("modify_qp_rts=EINVAL", "^Failed to modify QP to RTS$"),
                        ("post_send=ENOMEM@50", None)):  # without a word
        table.append((f"{fault}, ib_write_bw", client_says, fault, bw, 1, *([want] if want else [])))
    table += [(f"{fault}, {words}", client_says, fault, words, 1, want) for fault, words, want in (
        ("modify_qp_rtr=EINVAL", rc, "^Failed to modify QP to RTR$"),
        ("modify_qp_rts=EINVAL", rc, "^Failed to modify QP to RTS$"),
        ("post_send=ENOMEM", rc, "^Couldn't post send$"),
        ("create_ah=ENOMEM", "ibv_ud_pingpong -d soft0 -g 0", "^Failed to create AH$"),
    )]
    # The second call is one that this program does not make.
    table.append(("reg_mr=ENOMEM@2, a program that registers once", client_says, "reg_mr=ENOMEM@2", rc, 0, "1000 iters in"))
    for fault, want in (("reg_mr=ENOMEM", r"ibv_reg_mr\(.*failed: Cannot allocate memory"),
                        ("reg_mr=ENOMEM@3", r"ibv_reg_mr\(.*failed: Cannot allocate memory"),
                        ("alloc_pd=ENOMEM", r"ibv_alloc_pd\(\) failed: Cannot allocate memory"),
                        ("create_cq=ENOMEM", "failed to create cq Cannot allocate memory"),
                        ("create_qp=ENOMEM", "no usable transports/devices"),
                        ("open_device=ENODEV", "no usable transports/devices"),
                        ("create_srq=ENOMEM", r"ibv_create_srq\(\) failed: Cannot allocate memory"),
                        ("modify_qp_rtr=EINVAL", "Failed to modify UD QP to RTR: Invalid argument")):
        table.append((f"{fault}, UCX", lambda f, w: client_says(f, ucx, None, w, env=UCX), fault, want))
    for limit, words, want in (("max_qp=1", "-q 2", "Unable to create QP"), ("max_qp=2", "-q 2", None),
                               ("max_cqe=16", "-t 64", "Couldn't create CQ"), ("max_qp_wr=16", "-t 64", "Unable to create QP"),
                               ("max_pd=1", "", None), ("max_mr=1", "", None), ("max_inline=32", "-I 64", "Unable to create QP"),
                               ("max_inline=64", "-I 64", None)):
        table.append((f"{limit}, enforced", capped, limit, words, want))
    table.append(("max_mr=1, UCX", capped_ucx))
    return table


def capped(limit, words, want):
    """A device that grants less: shown by ibv_devinfo, and not one more is given."""
    number = port()
    argv = ["ib_write_bw", "-d", "soft0", "-x", "0", "-s", "64", "-n", "200", "-p", str(number), *words.split()]
    name, _, value = limit.partition("=")
    device = LO + PART_OF_A_NIC  # without which perftest inlines nothing
    if name != "max_inline":
        done = subprocess.run(on(PEERPATH, f"{device},{limit}", ["ibv_devinfo", "-v"]), text=True, capture_output=True,
                              timeout=WAIT_S, check=False)
        expect(re.search(rf"{name}:\s+{value}$", done.stdout, re.M), f"ibv_devinfo does not say {limit}\n{done.stdout}")
    _, (code, said) = pair(on(PEERPATH, device, argv), on(PEERPATH, f"{device},{limit}", [*argv, "127.0.0.1"]), number, WAIT_S)
    expect((code == 0) == (want is None) and (want is None or want in said), f"exit {code}\n{said[-2000:]}")


def capped_ucx():
    number = port()
    argv = ["ucx_perftest", "-t", "ucp_put_bw", "-n", "500", "-s", "8192", "-p", str(number)]
    _, (code, said) = pair(on(PEERPATH, LO, argv), on(PEERPATH, f"{LO},max_mr=1", [*argv, "127.0.0.1"]), number, WAIT_S, UCX)
    expect(code and re.search(r"ibv_reg_mr\(.*failed: Cannot allocate memory", said), code, said[-1500:])


# ── while they run ──

def soft(*args):
    return subprocess.run([PEERPATH, "soft", *args], stdin=subprocess.DEVNULL, text=True, capture_output=True,
                          timeout=WAIT_S, check=False)


def fault(*args):
    done = soft("fault", *args)
    expect(done.returncode == 0 and not done.stderr, "fault", args, done)
    return done.stdout


def fatal(*args):
    """A fault that ends its program, which may be gone before the answer is."""
    done = soft("fault", *args)
    if done.returncode == 1:
        expect("closed without an answer; has it ended?" in done.stderr, "fault", args, done)
    else:
        expect(done.returncode == 0 and not done.stderr, "fault", args, done)


def devices():
    """By process: what its device shows."""
    return {p["pid"]: p["devices"][0] for p in json.loads(soft("show", "--json").stdout)["processes"] if p["devices"]}


def received():
    """By process: packets that came by either link."""
    return {p["pid"]: sum(d["traffic"]["received_packets"] for d in p["devices"]) +
                      sum(x["records"] for x in p["lanes"] if x["direction"] == "in")
            for p in json.loads(soft("show", "--json").stdout)["processes"]}


class Program:
    """A program that runs, and what it has said."""

    def __init__(self, words, fault_words="", **env):
        self.text = ""
        self.process = subprocess.Popen(on(PEERPATH, config(fault_words), words), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **env})
        os.set_blocking(self.process.stdout.fileno(), False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def read(self, seconds):
        if select.select([self.process.stdout], [], [], seconds)[0]:
            self.text += (self.process.stdout.read() or b"").decode("utf-8", "replace")

    def wait_for(self, want):
        end = time.monotonic() + WAIT_S
        while not re.search(want, self.text, re.M):
            expect(time.monotonic() < end and (self.process.poll() is None or select.select([self.process.stdout], [], [], 0)[0]),
                   f"{self.process.args} does not say {want}:\n{self.text[-2000:]}")
            self.read(0.1)

    def ends(self):
        try:
            status = self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired as err:
            raise Fault(f"{self.process.args} does not end:\n{self.text[-2000:]}") from err
        self.read(0)
        return status, self.text


class Pair:
    """A client and a server that exchange for some seconds, and are exchanging now."""

    def __init__(self, words, seconds):
        number = str(port())
        words = [*words.split(), "-D", str(seconds), "-p", number]
        self.server = Program(words)
        end = time.monotonic() + WAIT_S
        while not listening(int(number)) and time.monotonic() < end:
            time.sleep(0.02)
        self.client = Program([*words, "127.0.0.1"])

    def __enter__(self):
        def moving():
            shown = received()
            return all(shown.get(p.process.pid, 0) > 100 for p in (self.server, self.client))
        end = time.monotonic() + WAIT_S
        while not moving():
            expect(time.monotonic() < end, f"no traffic\n{self.server.text}{self.client.text}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        self.client.__exit__()


# enum ibv_wc_status, as perftest says it
RETRIES, FLUSHED = "Failed status 12: wr_id", "Failed status 5: wr_id"
BW = "ib_write_bw -d soft0 -x 0 -s 65536"


def events():
    """ibv_asyncwatch prints what a device tells; its numbers are enum ibv_event_type's."""
    with Program(["ibv_asyncwatch", "-d", "soft0"]) as watch, Program(["ibv_asyncwatch", "-d", "soft0"]) as other:
        watch.wait_for("async event FD")
        other.wait_for("async event FD")
        me = ["--pid", str(watch.process.pid)]
        for words, want in (("port=down", r"IBV_EVENT_PORT_ERR \(10\), port 1"),
                            ("port=up", r"IBV_EVENT_PORT_ACTIVE \(9\), port 1"),
                            ("gid=off:0", r"IBV_EVENT_GID_CHANGE \(18\), port 1"),
                            ("device=removed", r"IBV_EVENT_DEVICE_FATAL \(8\)")):
            said = fault(words, *me)
            expect(re.search(rf"^{watch.process.pid} +ibv_asyncwatch +soft0 +{words} +yes$", said, re.M), said)
            watch.wait_for(want)
        other.read(0.2)
        expect("event_type" not in other.text, f"the other process sees {other.text}")


def port_down_for_good():
    """Without a port requests are sent again until retries are exhausted (12), at both ends of one pair;
    another pair goes on."""
    with Pair(BW, 4) as beside, Pair(BW, 60) as pair_:
        fault("port=down", "--pid", str(pair_.server.process.pid))
        status, said = pair_.client.ends()
        expect(status != 0 and RETRIES in said, status, said[-1500:])
        status, said = beside.client.ends()
        expect(status == 0, status, said[-1500:])


def port_down_for_a_moment():
    """Shorter than retries last (8 times 67 ms of perftest's timeout 14): nothing is lost."""
    with Pair(BW, 4) as pair_:
        fault("port=down", "--pid", str(pair_.server.process.pid))
        shown = devices()[pair_.server.process.pid]
        expect(shown["port_state"] == "down", shown["port_state"])
        time.sleep(0.1)
        fault("port=off", "--pid", str(pair_.server.process.pid))
        expect(devices()[pair_.server.process.pid]["fault_log"]["cut"] > 0, "no packet met the port")
        for end in (pair_.client, pair_.server):
            status, said = end.ends()
            expect(status == 0, status, said[-1500:])


def half_a_partition():
    with Pair(BW, 60) as pair_:
        fault("partition_in=127.0.0.1", "--pid", str(pair_.client.process.pid))
        status, said = pair_.client.ends()
        expect(status != 0 and RETRIES in said, status, said[-1500:])


def ucx_loses_its_port():
    """Both ends are ill, and nothing is lost; then the receiver's port goes down, and the sender says why it ends.
    In this test of UCX's the client sends. Eager and without flow control it always has something to be acknowledged:
    who has nothing on its way when the port goes down learns of nothing, and waits."""
    number = str(port())
    words = ["ucx_perftest", "-t", "tag_bw", "-n", "1000000", "-s", "65536", "-p", number]
    env = {**UCX, "UCX_RC_TIMEOUT": "100ms", "UCX_RNDV_THRESH": "inf", "UCX_RC_FC_ENABLE": "n"}
    with Program(words, "loss=1% duplicate=1%", **env) as server:
        end = time.monotonic() + WAIT_S
        while not listening(int(number)) and time.monotonic() < end:
            time.sleep(0.02)
        with Program([*words, "127.0.0.1"], "loss=1% corrupt=0.1%", **env) as client:
            while devices().get(client.process.pid, {}).get("traffic", {}).get("sent_packets", 0) < 2000:
                expect(time.monotonic() < end and client.process.poll() is None, "no traffic", client.text)
                client.read(0.1)
            fault("port=down", "--pid", str(server.process.pid))
            status, said = client.ends()
            expect(status != 0 and "send completion with error: transport retry counter exceeded" in said, status, said[-2000:])


def queue_pairs_break():
    with Pair(BW, 4) as beside, Pair(BW, 60) as pair_:
        fatal("qp=fatal", "--pid", str(pair_.client.process.pid))
        status, said = pair_.client.ends()
        expect(status != 0 and FLUSHED in said, status, said[-1500:])
        status, said = beside.client.ends()
        expect(status == 0, status, said[-1500:])


def device_goes():
    with Pair(BW, 4) as beside, Pair(BW, 60) as pair_:
        fatal("device=removed", "--pid", str(pair_.client.process.pid))
        status, said = pair_.client.ends()
        expect(status != 0 and FLUSHED in said, status, said[-1500:])
        status, said = beside.client.ends()
        expect(status == 0, status, said[-1500:])


def registration_fails_later():
    """Set while a program waits for its peer; what it does then fails, once."""
    number = str(port())
    words = ["ib_write_bw", "-d", "soft0", "-x", "0", "-n", "500", "-p", number]
    with Program(["ibv_asyncwatch", "-d", "soft0"]) as watch:
        watch.wait_for("async event FD")
        done = soft("fault", "reg_mr=ENOMEM", "--device", "soft1")
        expect(done.returncode == 2 and "no process of this user and network namespace uses a device soft1" in done.stderr, done)
        done = soft("fault", "reg_mr=ENOMEM", "--pid", "1")
        expect(done.returncode == 2 and "no process 1 of this user" in done.stderr, done)
        done = soft("fault", "gid=off:5")
        expect(done.returncode == 1 and "soft0 has 1 addresses" in done.stderr, done)
        done = soft("fault", "reg_mr=ENOMEM", "los=1%")
        expect(done.returncode == 64 and "is it loss?" in done.stderr and not done.stdout, done)
        fault("reg_mr=ENOMEM@2", "loss=1%", "seed=7")
        listed = json.loads(fault("--json"))
        expect([f["fault"] for f in listed["faults"]] == ["reg_mr=ENOMEM@2", "loss=1%", "seed=7"], listed)
        fault("clear")
        expect(not json.loads(fault("list", "--json"))["faults"], "not cleared")
        # Others took no part in it.
        results = pair(on(PEERPATH, LO, words), on(PEERPATH, LO, [*words, "127.0.0.1"]), int(number), WAIT_S)
        expect(results[0][0] == 0 and results[1][0] == 0, results)


def strangers_at_the_socket():
    """Who says nothing, too much, or nonsense to a process learns nothing and changes nothing."""
    with Program(["ibv_asyncwatch", "-d", "soft0"]) as watch:
        watch.wait_for("async event FD")

        def call(message):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
                s.connect("\0peerpath-soft.0.show")
                s.settimeout(WAIT_S)
                s.sendall(message)
                try:
                    byte, fds, _, _ = socket.recv_fds(s, 1, 1)
                except ConnectionResetError:
                    return None
                if not fds:
                    return None
                with os.fdopen(fds[0]) as f:
                    f.seek(0)
                    return json.load(f)

        chance = random.Random(3)
        for message in (b"fault", b"fault *", b"fault * los=1%", b"\0", b"show ", b"fault * port=down\n", b"x" * 4096,
                        b"fault " + b"*" * 3000, *(chance.randbytes(chance.randrange(1, 200)) for _ in range(50))):
            said = call(message)
            expect(said is None or (said["error"] and not said["changed"]), message, said)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            silent.connect("\0peerpath-soft.0.show")
            expect(watch.process.pid in devices(), "a silent caller keeps others out")
        for _ in range(20):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gone:
                gone.connect("\0peerpath-soft.0.show")
        said = call(b"fault * port=down")
        expect(said["error"] is None and said["changed"] == ["soft0"], said)
        watch.wait_for("IBV_EVENT_PORT_ERR")
        expect(watch.text.count("event_type") == 1, watch.text)


def congestion():
    """Marks at the receiver, a notification at the sender: np_* and rp_* as a NIC counts them."""
    with Pair(BW, 4) as pair_:
        fault("ecn=10%", "--pid", str(pair_.client.process.pid))
        time.sleep(1)
        shown = devices()
        there = shown[pair_.server.process.pid]["hw_counters"]
        here = shown[pair_.client.process.pid]["hw_counters"]
        expect(there["np_ecn_marked_roce_packets"] >= there["np_cnp_sent"] > 0 and here["rp_cnp_handled"] > 0, there, here)
        expect(not here["np_cnp_sent"], "the sender notifies")
        status, said = pair_.client.ends()
        expect(status == 0, status, said[-1500:])


def next_acknowledge():
    """One acknowledge is lost, and no other packet; what it was for is sent again."""
    with Pair("ib_send_bw -d soft0 -x 0 -s 65536", 3) as pair_:
        fault("loss=ack@1", "--pid", str(pair_.server.process.pid))
        time.sleep(0.5)
        (row,) = devices()[pair_.server.process.pid]["faults"]
        last = devices()[pair_.server.process.pid]["fault_log"]["last"]
        expect(row["fired"] == 1 and row["matched"] > 1, row)
        expect([(e["opcode"], e["fate"]) for e in last] == [("RC_ACKNOWLEDGE", "loss")], last)
        status, said = pair_.client.ends()
        expect(status == 0, status, said[-1500:])


def late(noun):
    """No answer is faster than what holds it up at both ends: 2 ms each way."""
    number = port()
    words = ["ib_send_lat", "-d", "soft0", "-x", "0", "-s", "8", "-n", "50", "-p", str(number)]
    c = config(f"{noun}=2ms")
    results = pair(on(PEERPATH, c, words), on(PEERPATH, c, [*words, "127.0.0.1"]), number, WAIT_S)
    expect(not results[0][0] and not results[1][0], results)
    row = re.search(r"^ 8 +50 +([\d.]+)", results[1][1], re.M)
    # Two clocks are read for each; half of a round trip.
    expect(row and float(row[1]) > 1900, results[1][1][-500:])


OVERFLOW = """
import pyverbs.device as d, pyverbs.cq as cq, pyverbs.pd as pd, pyverbs.qp as q, pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.mr import MR
from pyverbs.wr import SGE, SendWR
ctx = d.Context(name='soft0'); p = pd.PD(ctx); c = cq.CQ(ctx, 64)
cap = q.QPCap(max_send_wr=32, max_recv_wr=32)
qp = q.QP(p, q.QPInitAttr(qp_type=e.IBV_QPT_RC, scq=c, rcq=c, cap=cap, sq_sig_all=1))
attr = q.QPAttr(port_num=1); attr.dest_qp_num = qp.qp_num; attr.timeout = 14; attr.retry_cnt = 7
attr.rnr_retry = 7; attr.max_rd_atomic = attr.max_dest_rd_atomic = 1; attr.path_mtu = e.IBV_MTU_1024
attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=ctx.query_gid(1, 0), sgid_index=0), is_global=1, port_num=1)
attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_LOCAL_WRITE
qp.to_rts(attr)
m = MR(p, 64, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE)
for i in range(8):
    wr = SendWR(wr_id=i, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(m.buf, 8, m.lkey)], send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_rdma(m.rkey, m.buf)
    qp.post_send(wr)
event = ctx.get_async_event()
print('event', event.event_type); event.ack()
n, wcs = c.poll(32)
print('completions', n, [w.status for w in wcs])
"""


def overflow():
    """CQ made for 64, of which a fault leaves 4: the fifth completion is an IBV_EVENT_CQ_ERR (0)."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pyverbs"], capture_output=True, check=False).returncode:
        return "not tried: no pyverbs"
    done = subprocess.run(on(PEERPATH, config("cq_depth=4"), [python, "-c", OVERFLOW]), text=True, capture_output=True,
                          timeout=WAIT_S, check=False)
    expect(done.stdout == "event 0\ncompletions 4 [0, 0, 0, 0]\n", done.stdout, done.stderr)
    return ""


def running():
    need("ibv_asyncwatch", "ib_write_bw", "ib_send_bw", "ib_send_lat", "ucx_perftest")
    return [("events of port, GID and device", events), ("a port goes down for good", port_down_for_good),
            ("a port goes down for a moment", port_down_for_a_moment), ("half a partition", half_a_partition),
            ("queue pairs break", queue_pairs_break), ("UCX loses its port", ucx_loses_its_port), ("the device goes", device_goes),
            ("what is set, listed, refused, cleared", registration_fails_later),
            ("strangers at the socket", strangers_at_the_socket), ("congestion", congestion), ("exactly the next acknowledge", next_acknowledge),
            ("late packets", late, "delay"), ("late completions", late, "cq_delay"), ("a queue overflows", overflow)]


def main():
    not_sanitized()
    alone(needed=True)
    os.environ.pop("UCX_TLS", None)
    return cases({"calls": calls, "running": running}[PART](), sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
