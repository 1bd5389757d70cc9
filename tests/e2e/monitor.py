#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The monitor, walked through the changes of a node; killed; on a full disk; as a service.

usage: monitor.py PEERPATH PROJECT-ROOT PART

walk     a made node changes, one kind of signals.def after the other: the right signal at the right
         level, once; and nothing at rest
kill     kill -9 fifty times while logs grow: no event lost, none doubled
keep     damaged and newer databases, two monitors, a full disk, a file of events that cannot grow
rotate   Debian's logrotate with the file that the package has, while events come: each line once in all files together
service  READY, STATUS, WATCHDOG, RELOADING, STOPPING by datagrams; the unit as systemd reads it
earlier  an alarm names what moved before it, in its line, in --show, and after a restart
quick    on a running node, which is read whole once an hour: access control that changes is told within a few looks
baseline what may be one: results of prove, in a directory
refused  what is no baseline: simulated, scrubbed, failed, of another node, newer; what takes it all the same
"""
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

PEERPATH, ROOT, PART = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
FAULTS = []
# Without peermem, whose regions nobody could tell from others in a recording; a change may undo what the base has.
BASE = {"roce", "no-peermem"}
NIC = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0"


def need(good, what):
    if not good:
        FAULTS.append(what)
        print("FAULT:", what, flush=True)


def make(out, *faults):
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, ROOT / "tests/fixtures/make_machine.py", "good2", "--faults", ",".join(sorted(BASE ^ set(faults))), out],
                   check=True, capture_output=True)


def monitor(*words, **more):
    return subprocess.run([PEERPATH, "monitor", *map(str, words)], capture_output=True, text=True, timeout=120, **more)


class Node:
    """A recording in a directory that the monitor reads anew in each round."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.dir, self.clean = self.top / "node", self.top / "clean"
        self.others, self.changed = True, set()
        make(self.clean)
        for name, data in registrations("dmabuf").items():
            self.answer(name, data, self.clean)
        for path, text in {"srv/slo.prom": "tokens_per_second 1000\n", "proc/stat": "cpu 100 0 100 800 0 0 0 0 0 0\n", "proc/pressure/cpu": PRESSURE % 0,
                           "etc/security/limits.conf": "* - memlock unlimited\n"}.items():
            self.write(path, text, self.clean)
        self.reset()

    def reset(self, *faults):
        if faults:
            make(self.top / "other", *faults)
            for extra in ("rdma-resources", "rdma-processes", "dma-buf"):
                shutil.copy(self.clean / f"answers/{extra}.json", self.top / f"other/answers/{extra}.json")
            for path in ("srv/slo.prom", "proc/stat", "proc/pressure/cpu", "etc/security/limits.conf"):
                self.write(path, (self.clean / "raw" / path).read_text(), self.top / "other")
        if faults or self.others:
            shutil.rmtree(self.dir, ignore_errors=True)
            shutil.copytree(self.top / "other" if faults else self.clean, self.dir, symlinks=True)
        else:  # a thousand files more are as they were
            for path in self.changed:
                if (self.clean / path).exists():
                    shutil.copy(self.clean / path, self.dir / path)
                else:
                    (self.dir / path).unlink()
        self.others, self.changed = bool(faults), set()

    def write(self, path, text, top=None):
        file = (top or self.dir) / "raw" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        fresh.write_text(text)
        os.replace(fresh, file)
        self.note(file)

    def note(self, file):
        if file.is_relative_to(self.dir):
            self.changed.add(file.relative_to(self.dir))

    def port(self, counter, value):
        self.write(f"sys/devices/{NIC}/infiniband/mlx5_0/ports/1/{counter}", f"{value}\n")

    def answer(self, name, data, top=None, outcome="answered", detail=""):
        text = json.dumps({"schema": "peerpath.answer/1", "name": name, "outcome": outcome, "detail": detail, "took_ms": 1, "data": data})
        file = (top or self.dir) / "answers" / f"{name}.json"
        file.with_name("new").write_text(text)
        os.replace(file.with_name("new"), file)
        self.note(file)

    def read_answer(self, name):
        return json.loads((self.dir / f"answers/{name}.json").read_text())["data"]


PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def registrations(way):
    """One process with one region of 2 MiB: its buffer is attached to the hca, or not."""
    gpu = way == "dmabuf"
    return {
        "rdma-resources": {"core": True, "privileged": True, "first_user_namespace": True, "first_pid_namespace": True, "devices": [
            {"index": 0, "name": "mlx5_0", "mr": [{"id": 7, "parent": 1, "length": 2 << 20, "lkey": 1, "rkey": 1, "tid": 4711}],
             "pd": [{"id": 1, "parent": 3}], "ctx": [{"id": 3}], "qp": []}]},
        "rdma-processes": {"first_pid_namespace": True, "own_proc": True, "init_listed": True, "pid_ns": 4026531836, "unreadable": 0,
                           "processes": [{"pid": 4711, "started": 99, "uid": 0, "comm": "job", "pinned_kb": 0 if gpu else 2048,
                                          "descriptors": True, "gpu_descriptors": 4, "uverbs": ["uverbs0"], "buffers": [], "threads": [4711]}]},
        "dma-buf": {"text": "\nDma-buf Objects:\nsize\tflags\tmode\tcount\texp_name\tino\tname\n" + (
            "02097152\t00080002\t00080007\t00000001\tnv_dmabuf\t00000900\t<none>\n\n\tAttached Devices:\n\t0000:19:00.0\n"
            "Total 1 devices attached\n\n" if gpu else "") + f"\nTotal {int(gpu)} objects, {2097152 * gpu} bytes\n"},
    }


def bar1(node):
    data = node.read_answer("nvml")
    data["gpus"][0]["bar1_used_bytes"] = data["gpus"][0]["bar1_total_bytes"] - (32 << 20)
    node.answer("nvml", data)


def kernel_log(node):
    data = node.read_answer("kmsg")
    data["records"].append("4,3,3000000,-;NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n")
    data.update(last=3, read=4, matched=3)
    node.answer("kmsg", data)


def pauses(node):
    data = node.read_answer("ethtool")
    data["enp25s0"]["stats"]["rx_prio3_pause"] = 4000
    node.answer("ethtool", data)


def moved(way):
    def change(node):
        for name, data in registrations(way).items():
            node.answer(name, data)
    return change


def job_log(node):
    with open(node.top / "job.log", "a") as f:
        f.write("node7:811:902 [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4791> with status=12 "
                "opcode=0 len=0 vendor err 129 (Recv)\n")


def no_log(node):
    os.mkfifo(node.top / "job.log.pipe")


def slo(value):
    def change(node):
        node.write("srv/slo.prom", f"tokens_per_second {value}\n")
    return change


ANY = object()
# What changes; how; the kinds that must be told, each with its level.
WALK = [
    ("firmware", lambda n: n.write(f"sys/devices/{NIC}/infiniband/mlx5_0/fw_ver", "28.99.9999\n"), {"software-fingerprint": "early"}),
    ("module flavour", ["proprietary"], {"module-flavour": "early"}),
    ("nvidia-peermem", ["no-peermem"], {"peermem": "early"}),
    ("access control", ["acs-redirect"], {"acs": "early", "topology-class": "early"}),
    ("IOMMU", ["iommu-translated"], {"iommu": "early", "acs": ANY, "topology-class": ANY}),
    ("a port is down", ["port-down"], {"link-state": "alarm"}),
    ("a link is narrow", ["narrow-link"], {"link-speed": "early"}),
    ("flaps", lambda n: n.write(f"sys/devices/{NIC}/net/enp25s0/carrier_down_count", "3\n"), {"link-flaps": "early"}),
    ("symbol errors", lambda n: n.port("counters/symbol_error", 7), {"port-errors": "early"}),
    ("retransmits", lambda n: n.port("hw_counters/local_ack_timeout_err", 100000), {"retransmits": "alarm"}),
    ("out of sequence", lambda n: n.port("hw_counters/out_of_sequence", 5), {"out-of-sequence": "early"}),
    ("discards", lambda n: n.port("counters/port_xmit_discards", 9), {"discards": "early"}),
    ("pauses", pauses, {"pfc-pauses": "early"}),
    ("CNPs", lambda n: n.port("hw_counters/np_cnp_sent", 70), {"cnps": "early"}),
    ("kernel log", kernel_log, {"kernel-log": "early"}),
    ("BAR1", bar1, {"bar1-free": "alarm"}),
    ("memlock", lambda n: n.write("etc/security/limits.conf", "* - memlock 65536\n"), {"memlock": "early"}),
    ("NCCL's file", lambda n: n.write("etc/nccl.conf", "NCCL_P2P_DISABLE=1\n"), {"nccl-files": "early"}),
    ("registration", moved("host"), {"registration-path": "early"}),
    ("NCCL error", job_log, {"nccl-errors": "early"}),
    ("no log", no_log, {"no-log": "info"}),
    ("application", slo(100), {"application-slo": "alarm"}),
    ("hung call", lambda n: n.answer("cuda", {}, outcome="timeout", detail="cuInit did not return in 5000 ms"), {"hung-call": "early", "watcher": ANY}),
    ("privilege", ["acs-unreadable"], {"watcher": "info", "topology-class": ANY}),
]
POLICY = """[monitor]
link-state = alarm
retransmits = alarm
retransmits.above = 100
bar1-free = alarm
bar1-free.below = 64MiB
application-slo/tokens_per_second = alarm
application-slo/tokens_per_second.below = 900
host-cpu.above = 0.9
host-pressure/cpu.above = 0.5
"""


class Walk:
    def __init__(self, top):
        self.node, self.top, self.seen, self.ids = Node(top), pathlib.Path(top), 0, set()
        (self.top / "policy.conf").write_text(POLICY)
        (self.top / "job.log").write_text("")

    def words(self, *more):
        t = self.top
        return ["--replay", t / "node", "--state", t / "m.db", "--events", t / "events", "--policy", t / "policy.conf",
                "--log", t / "job.log*", "--slo", "/srv/slo.prom", "--period", "30ms", *more]

    def run(self, time="200ms"):
        done = monitor(*self.words("--for", time))
        need(done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr}")
        return self.told()

    def told(self):
        lines = (self.top / "events").read_text().splitlines()[self.seen:]
        self.seen += len(lines)
        events = [json.loads(line) for line in lines]
        for e in events:
            need(e["id"] not in self.ids, f"{e['id']} came twice")
            self.ids.add(e["id"])
        return events

    def changed(self):
        db = sqlite3.connect(self.top / "m.db")
        return db.execute("SELECT value FROM monitor_about WHERE name = 'saved_ns'").fetchone()[0]


def judge(name, events, expected):
    # A counter that jumped once is fast in one round, and slow in the next.
    events = [e for e in events if e["kind"] != "retransmits" or e["what"] != "ends"]
    need(len({(e["kind"], e["object"]) for e in events}) == len(events), f"{name}: told twice: {events}")
    for e in events:
        need(e["what"] in ("begins", "returns") or expected.get(e["kind"]) is ANY, f"{name}: {e['what']}: {e['text']}")
        level = expected.get(e["kind"])
        need(level in (ANY, e["level"]), f"{name}: {e['level']} {e['kind']} of {e['object']}: {e['text']}")
    for kind, level in expected.items():
        need(level is ANY or any(e["kind"] == kind for e in events), f"{name}: no {kind}: {[e['text'] for e in events]}")


def walk():
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        need(w.run() == [], "the first look told something")
        kinds = set()
        for name, change, expected in WALK if len(sys.argv) < 5 else [step for step in WALK if step[0] in sys.argv[4:]]:
            if isinstance(change, list):
                w.node.reset(*change)
            else:
                change(w.node)
            events = w.run()
            judge(name, events, expected)
            kinds |= {e["kind"] for e in events}
            again = w.run()
            need(again == [], f"{name}: told again at rest: {[e['what'] + ' ' + e['text'] for e in again]}")
            w.node.reset()
            # What is over ends; what comes and goes, counters and events need their quiet time.
            for e in w.run():
                need(e["what"] == "ends", f"after {name}: {e['what']}: {e['text']}")
            need(w.run() == [], f"after {name}: told at rest")
        kinds |= rates(w)
        names = set(re.findall(r'^X\(\w+, "([^"]+)"', (ROOT / "src/daemon/signals.def").read_text(), re.M))
        if len(sys.argv) > 4:
            return
        # Controllers of memory are counted on a live machine only; what is not kept is walked through in keep.
        need(kinds == names - {"host-memory-traffic", "monitor-state"}, f"not walked through: {sorted(names - kinds)}; unknown: {sorted(kinds - names)}")
        print(f"{len(WALK) + 2} changes, {len(kinds)} kinds, {len(w.ids)} lines told")
        shown = json.loads(monitor("--show", "--json", "--state", w.top / "m.db").stdout)
        need(shown["schema"] == "peerpath.monitor/1" and not shown["at_work"] and len(shown["looks"]) > 40, "what --show says")
        documented = (ROOT / "docs/monitor.md").read_text()
        for key in names:
            need(f"`{key}`" in documented, f"{key} is not in docs/monitor.md")


def rates(w):
    """Figures between two looks: the node changes while the monitor is at work; then an hour's rest in small."""
    process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words("--for", "3s"))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until, busy, waited, kinds = time.monotonic() + 1.2, 200, 0, set()
    while time.monotonic() < until:
        busy, waited = busy + 1000, waited + 1000000
        w.node.write("proc/stat", f"cpu {busy} 0 100 800 0 0 0 0 0 0\n")
        w.node.write("proc/pressure/cpu", PRESSURE % waited)
        time.sleep(0.02)
    process.wait(30)
    events = w.told()
    for kind in ("host-cpu", "host-pressure"):
        of = [e for e in events if e["kind"] == kind and e["what"] == "begins"]
        need(len(of) == 1 and of[0]["level"] == "early", f"{kind}: {events}")
        kinds |= {e["kind"] for e in of}
    before = w.changed()
    process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    begun = w.changed()
    time.sleep(3)
    # A hundred rounds: nothing told, nothing written.
    need(w.changed() == begun, "something was written at rest")
    need(begun >= before and w.told() == [], "something was told at rest")
    process.terminate()
    need(process.wait(30) == 0, "SIGTERM is no clean end")
    return kinds


class Grower(threading.Thread):
    """A kernel log and a job's log that grow, each line once."""

    def __init__(self, node, top):
        super().__init__(daemon=True)
        self.node, self.log, self.n, self.stop = node, pathlib.Path(top) / "job.log", 0, threading.Event()
        self.records = node.read_answer("kmsg")

    def run(self):
        while not self.stop.is_set():
            self.n += 1
            self.records["records"].append(f"4,{10 + self.n},{3000000 + self.n},-;NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', "
                                           "name=<unknown>, GPU has fallen off the bus.\n")
            self.records.update(last=10 + self.n, read=4 + self.n, matched=4 + self.n)
            self.node.answer("kmsg", self.records)
            with self.log.open("a") as f:
                f.write(f"node7:811:{self.n} [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4791> "
                        f"with status=12 opcode=0 len=0 vendor err {self.n} (Recv)\n")
            if self.n % 150 == 0:  # rotated, as logrotate does it
                os.replace(self.log, self.log.with_name(f"job.log.{self.n}"))
            time.sleep(0.01)


def kill():
    dice = random.Random(9)
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        words = w.words()
        need(w.run("60ms") == [], "the first look told something")
        grower = Grower(w.node, top)
        grower.start()
        kills = 0
        while kills < 50:
            process = subprocess.Popen([PEERPATH, "monitor", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.uniform(0.02, 0.35))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
        grower.stop.set()
        grower.join()
        done = monitor(*w.words("--for", "1s"))
        need(done.returncode == 1, f"the last run: {done.returncode} {done.stderr}")
        db = sqlite3.connect(w.top / "m.db")
        for kind, written in (("kernel-log", grower.n), ("nccl-errors", grower.n)):
            names = db.execute("SELECT count(*), count(DISTINCT name) FROM monitor_event WHERE kind = ?", (kind,)).fetchone()
            count = db.execute("SELECT sum(count) FROM monitor_signal WHERE kind = ?", (kind,)).fetchone()[0]
            need(names == (written, written) and count == written,
                 f"{kind}: {written} lines were written, {names} events are kept, signals count {count}")
        seen = {int(row[0].rsplit(":", 1)[1]) - 10 for row in db.execute("SELECT name FROM monitor_event WHERE kind = 'kernel-log'")
                if row[0].rsplit(":", 1)[1].isdigit()}
        need(seen == set(range(1, grower.n + 1)), f"records that are lost: {sorted(set(range(1, grower.n + 1)) - seen)}")
        kept = {row[0] for row in db.execute("SELECT line FROM monitor_telling")}
        lines = (w.top / "events").read_text().splitlines()
        ids = [json.loads(line)["id"] for line in lines]
        need(kept <= set(lines), f"{len(kept - set(lines))} lines were never told")
        need(len({json.loads(line)["id"]: line for line in lines}) == len(set(lines)), "one id, two lines")
        print(f"{kills} kills, {grower.n} lines in each log; {len(ids)} lines told, {len(ids) - len(set(ids))} of them twice")


def keep():
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        need(w.run() == [], "the first look told something")
        two_monitors(w)
        damaged(w)
        newer(w)
        many_logs(w)
        others(w)
        full(w)
        for how in ("new", "known", "readonly"):
            unkept(w, how)


def two_monitors(w):
    process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    done = monitor(*w.words("--once"))
    need(done.returncode == 70 and "another monitor is at work" in done.stderr, f"two at a time: {done.returncode} {done.stderr}")
    need("monitor at work       yes" in monitor("--show", "--state", w.top / "m.db").stdout, "--show does not see the one at work")
    process.terminate()
    process.wait(30)


def damaged(w):
    for damage in (b"", b"no database at all" * 100, None):
        path = w.top / "m.db"
        whole = path.read_bytes()
        if damage is None:  # pages in the middle
            path.write_bytes(whole[:4096] + os.urandom(len(whole) - 8192) + whole[-4096:])
        elif damage:
            path.write_bytes(damage)
        else:
            path.write_bytes(whole[:100] + b"\0" * 3000 + whole[3100:])
        done = monitor(*w.words("--once"))
        need(done.returncode in (0, 1) and "damaged" in done.stderr, f"damaged: {done.returncode} {done.stderr}")
        need(len(list(w.top.glob("m.db.damaged-*"))) >= 1, "the damaged one is not kept")
        done = monitor(*w.words("--once"))
        need(done.returncode in (0, 1) and "damaged" not in done.stderr, f"the new one: {done.returncode} {done.stderr}")
        for old in w.top.glob("m.db.damaged-*"):
            old.unlink()
    odd(w)


def odd(w):
    """Rows of somebody else's making: left out, said, and no harm."""
    db = sqlite3.connect(w.top / "m.db")
    n = db.execute("SELECT count(*) FROM monitor_look").fetchone()[0]
    db.execute("UPDATE monitor_look SET kind = 'nonsense' WHERE rowid IN (SELECT rowid FROM monitor_look LIMIT 3)")
    db.execute("INSERT INTO monitor_signal (id, kind, level, object, since_ns, last_ns, ended_ns, count, restless)"
               " VALUES (-5, 'acs', 'loud', 'x', 1, 1, 0, -1, 7)")
    db.execute("INSERT OR REPLACE INTO monitor_mark VALUES ('kernel-log', 'sequence', ?)", ("x" * 100000,))
    db.execute("INSERT INTO monitor_about VALUES ('last_telling_', '99') ON CONFLICT DO NOTHING")
    db.execute("UPDATE monitor_about SET value = '-1' WHERE name = 'rounds'")
    db.commit()
    db.close()
    done = monitor(*w.words("--once"))
    need(done.returncode in (0, 1) and re.search(r"\d rows of the database are not as", done.stderr) and n > 3,
         f"odd rows: {done.returncode} {done.stderr}")


def newer(w):
    db = sqlite3.connect(w.top / "m.db")
    db.execute("UPDATE peerpath_schema SET version = 99 WHERE name = 'monitor'")
    db.commit()
    db.close()
    done = monitor(*w.words("--once"))
    need(done.returncode == 65 and "newer" in done.stderr, f"newer: {done.returncode} {done.stderr}")
    for old in w.top.glob("m.db*"):
        old.unlink()


FULL = """
mount -t tmpfs -o size=400k tmpfs "$1/small" || exit 77
cd "$1"
"$2" monitor --replay node --state small/m.db --events small/events --policy policy.conf --log 'job*.log' --period 30ms --for 12s 2>err >out &
sleep 1
dd if=/dev/zero of=small/filler bs=4k 2>/dev/null
i=0
while [ $i -lt 40 ]; do
    i=$((i + 1))
    echo "node7:811:$i [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4791> with status=12 opcode=0 len=0 vendor err $i (Recv)" >>job.log
    echo "line $i" >>job.log
    sleep 0.02
done
sleep 1
rm small/filler
wait
cp small/m.db* small/events .
"""


# From the first moment nothing can be written: $3 says what the disk holds and how it comes to be so.
UNKEPT = """
mount -t tmpfs -o size=400k tmpfs "$1/small" || exit 77
cd "$1"
monitor=$2
watch() { "$monitor" monitor --replay node --state small/m.db --events told --policy policy.conf --log 'job*.log' --period 30ms --for "$1" 2>>err >out; }
if [ "$3" != new ]; then
    watch 200ms
    echo "$4" >>job.log
    watch 200ms
fi
if [ "$3" = readonly ]; then
    mount -o remount,ro small || exit 77
else
    dd if=/dev/zero of=small/filler bs=1k 2>/dev/null
fi
watch 12s &
sleep 1
echo "$5" >>job.log
sleep 1
cp told told.unkept
if [ "$3" = readonly ]; then
    mount -o remount,rw small
else
    rm small/filler
fi
wait
cp small/m.db* .
"""


LINE = ("node7:811:{0} [0] transport/net_ib.cc:1298 NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4791> "
        "with status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:192.0.2.6 remoteGids::ffff:192.0.2.7 hca mlx5_0\n")


def others(w):
    """Files that are not the monitor's stay as they are."""
    theirs = w.top / "theirs"
    for content in (b"\x28\xb5\x2f\xfd not a database", b"notes"):
        theirs.write_bytes(content)
        done = monitor("--replay", w.top / "node", "--state", theirs, "--once")
        need(done.returncode == 65 and "left as it is" in done.stderr and done.stderr.count("\n") == 1, f"others: {done}")
        need(theirs.read_bytes() == content and not list(w.top.glob("theirs?*")), "others: the file, or one beside it")
    theirs.unlink()
    db = sqlite3.connect(theirs)
    db.execute("CREATE TABLE notes (text TEXT)")
    db.commit()
    db.close()
    of_fleet = w.top / "fleet.db"
    subprocess.run([PEERPATH, "prove", "--replay", w.top / "clean", "-o", w.top / "of.tar.zst"], capture_output=True, timeout=60)
    subprocess.run([PEERPATH, "fleet", "--database", of_fleet, "add", w.top / "of.tar.zst"], check=True, capture_output=True, timeout=60)
    for path, words in ((theirs, "tables of another program"), (of_fleet, "database of 'fleet'")):
        before = path.read_bytes()
        done = monitor("--replay", w.top / "node", "--state", path, "--once")
        need(done.returncode == 65 and words in done.stderr and done.stderr.count("\n") == 1, f"others' tables: {done}")
        need(path.read_bytes() == before and not path.with_name(path.name + ".lock").exists(), f"others' tables: {path.name} is another, or has a lock")
    done = monitor("--replay", w.top / "node", "--state", "postgresql:///x", "--once")
    need(done.returncode != 0 and "a file of this node" in done.stderr, f"a server: {done}")
    # Unfinished lines at the end of a file of events: of ours they go, anybody else's stay.
    for content, kept in ((b'whole\n{"schema":"peerp', b"whole\n"), (b"whole\nhalf", b"whole\nhalf\n"), (b"x" * (3 << 20), b"x" * (3 << 20) + b"\n"),
                          (b'{"schema":"peerpath.signal/1","id":"1"', b"")):
        events = w.top / "more"
        events.write_bytes(content)
        monitor("--replay", w.top / "node", "--events", events, "--once")
        need(events.read_bytes() == kept, f"events of others: {events.read_bytes()[-60:]}")


def many_logs(w):
    """More logs than a line of text holds positions of: what they held before is no news after a restart either."""
    logs = w.top / "logs"
    logs.mkdir()
    words = ["--replay", w.top / "node", "--state", w.top / "many.db", "--log", logs / "*", "--once"]
    for i in range(200):
        (logs / f"job.{i}").write_text(LINE.format(i) * 3)
    for what in ("first", "second"):
        done = monitor(*words, "--json")
        events = [s for s in json.loads(done.stdout)["signals"] if s["kind"] == "nccl-errors"]
        need(not events, f"many logs, {what}: {events[:2]}")
    for i in range(0, 200, 2):
        with open(logs / f"job.{i}", "a") as f:
            f.write(LINE.format(i))
    monitor(*words)
    db = sqlite3.connect(w.top / "many.db")
    names = db.execute("SELECT count(*), count(DISTINCT name) FROM monitor_event WHERE kind = 'nccl-errors'").fetchone()
    need(names == (100, 100), f"many logs: {names} events of 100 lines")


def full(w):
    (w.top / "small").mkdir()
    (w.top / "events").unlink()
    done = subprocess.run(["unshare", "-rm", "sh", "-c", FULL, "sh", str(w.top), PEERPATH], capture_output=True, text=True, timeout=120)
    if done.returncode == 77 or "unshare" in done.stderr:
        print("no file system of its own can be mounted here: a full disk is not tried")
        return
    err = (w.top / "err").read_text()
    need("cannot write what is known" in err and "disk is full" in err and "watching goes on in memory" in err, f"full disk: {err}")
    need(err.count("cannot write what is known") == 1, f"said more than once: {err}")
    need("can be written again" in err, f"room again: {err}")
    db = sqlite3.connect(w.top / "m.db")
    kept = db.execute("SELECT count(*) FROM monitor_event WHERE kind = 'nccl-errors'").fetchone()[0]
    need(kept == 40, f"full disk: {kept} of 40 events are kept")
    need(db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "the database is not whole")
    for line in (w.top / "events").read_text().splitlines():
        json.loads(line)


def rotate():
    if not (tool := shutil.which("logrotate", path=os.environ["PATH"] + ":/usr/sbin:/sbin")):
        print("SKIP: no logrotate here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        need(w.run() == [], "the first look told something")
        rules = pathlib.Path(top) / "rules"
        rules.write_text((ROOT / "debian/peerpath-monitor.logrotate").read_text().replace("/var/log/peerpath/events.jsonl", f"{top}/events"))
        process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words())], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for i in range(160):
            (w.top / f"job.log.{i}").write_text(LINE.format(i))  # of each log its own signal
            if i % 20 == 9:  # there are lines behind the last rotation
                done = subprocess.run([tool, "-v", "-f", "-s", f"{top}/rotated", rules], capture_output=True, text=True)
                need(done.returncode == 0 and "error" not in done.stderr, f"logrotate: {done.stderr[-500:]}")
            time.sleep(0.02)
        time.sleep(1)
        process.terminate()
        err = process.communicate(timeout=60)[1]
        need(process.returncode == 0 and "cannot write events" not in err, f"rotated: {process.returncode} {err}")
        lines = [line for file in w.top.glob("events*") for line in (gzip.open(file, "rt") if file.suffix == ".gz" else file.open()).read().splitlines()]
        db = sqlite3.connect(w.top / "m.db")
        told = [row[0] for row in db.execute("SELECT line FROM monitor_telling")]
        files = sorted(f.name for f in w.top.glob("events*"))
        need(sorted(lines) == sorted(told) and len(told) == 160, f"rotated: {len(lines)} lines in {files}, {len(told)} told")
        need({"events", "events.1"} <= set(files) and any(f.endswith(".gz") for f in files), f"rotated: {files}")
        print(f"{len(lines)} lines in {len(files)} files")
        removed(w)
        links(w)


def removed(w):
    """A file that somebody takes away comes again with the next line; SIGHUP needs no good policy to open it."""
    process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words())], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    (w.top / "events").unlink()
    (w.top / "policy.conf").write_text("[monitor]\nlink-stat = alarm\n")
    process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 30
    while not (w.top / "events").exists() and time.monotonic() < end:
        time.sleep(0.05)
    need((w.top / "events").read_text() == "", "SIGHUP opens no file of events where the policy has a fault")
    (w.top / "policy.conf").write_text(POLICY)
    (w.top / "events").unlink()
    (w.top / "job.log.removed").write_text(LINE.format(1))
    time.sleep(1)
    process.terminate()
    process.communicate(timeout=60)
    lines = (w.top / "events").read_text().splitlines()
    need(len(lines) == 1 and json.loads(lines[0])["object"].endswith("job.log.removed"), f"removed: {lines}")


def links(w):
    """Root writes through no link but those of its own descriptors."""
    link, target = w.top / "link", w.top / "target"
    link.symlink_to(target)
    words = ["--replay", w.top / "node", "--log", w.top / "new.log*", "--policy", w.top / "policy.conf", "--state", w.top / "l.db"]
    done = monitor(*words, "--events", link, "--once")
    root = os.geteuid() == 0
    need(target.exists() != root and ("through which root writes no events" in done.stderr) == root, f"a link: {done.returncode} {done.stderr}")
    monitor(*words, "--once")
    for i, name in enumerate(("/dev/stdout", "/dev/fd/1")):
        (w.top / f"new.log.{i}").write_text(LINE.format(i))
        done = monitor(*words, "--events", name, "--for", "100ms")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        need([line["object"] for line in lines] == [str(w.top / f"new.log.{i}")], f"{name}: {done.stdout} {done.stderr}")


def unkept(w, how):
    """Nothing can be written when the monitor starts: it watches, says so, and keeps it all as soon as it can."""
    for old in (*w.top.glob("m.db*"), *w.top.glob("told*"), w.top / "err"):
        old.unlink(missing_ok=True)
    (w.top / "job.log").write_text("")
    lines = [LINE.format(n).strip().replace("status=12", f"status={n}") for n in (12, 5)]
    done = subprocess.run(["unshare", "-rm", "sh", "-c", UNKEPT, "sh", str(w.top), PEERPATH, how, *lines], capture_output=True, text=True, timeout=120)
    if done.returncode == 77 or "unshare" in done.stderr:
        print(f"no file system of its own can be mounted here: {how} is not tried")
        return
    err = (w.top / "err").read_text()
    need(err.count("cannot write what is known") == 1 and "watching goes on in memory" in err and "can be written again" in err, f"{how}: {err} {done.stderr}")
    before = [json.loads(line) for line in (w.top / "told.unkept").read_text().splitlines()]
    told = [json.loads(line) for line in (w.top / "told").read_text().splitlines()]
    known = how != "new"
    need([e["kind"] for e in before].count("monitor-state") == 1, f"{how}: while nothing can be written: {[e['text'] for e in before]}")
    need([e["kind"] for e in before].count("nccl-errors") == 1 + known, f"{how}: told while nothing can be written: {[e['text'] for e in before]}")
    need([e["what"] for e in told if e["kind"] == "monitor-state"] == ["begins", "ends"], f"{how}: {[e['text'] for e in told]}")
    need(len({e["id"] for e in told}) == len(told), f"{how}: an id twice")
    db = sqlite3.connect(w.top / "m.db")
    kept = db.execute("SELECT count(*), count(DISTINCT name) FROM monitor_event WHERE kind = 'nccl-errors'").fetchone()
    need(kept == (1 + known, 1 + known), f"{how}: {kept} events are kept")
    need(db.execute("PRAGMA integrity_check").fetchone()[0] == "ok", f"{how}: the database is not whole")
    signals = dict(db.execute("SELECT kind, count(*) FROM monitor_signal WHERE kind IN ('nccl-errors', 'monitor-state') GROUP BY kind"))
    need(signals == {"nccl-errors": 1 + known, "monitor-state": 1}, f"{how}: signals that are kept: {signals}")


def service():
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        for name in (f"{top}/notify", f"@peerpath-test-{os.getpid()}"):
            notified(w, name)
    unit()


def notified(w, name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind("\0" + name[1:] if name[0] == "@" else name)
        s.settimeout(30)
        process = subprocess.Popen([PEERPATH, "monitor", *map(str, w.words())], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "400000"})
        lines = []

        def until(what):
            while not any(what in line for line in lines):
                lines.extend(s.recv(4096).decode().split("\n"))
        until("READY=1")
        until("STATUS=")
        until("WATCHDOG=1")
        need(any(re.match(r"STATUS=\d+ looks; open signals: \d+ alarm, \d+ early, \d+ info", line) for line in lines), f"status: {lines}")
        lines.clear()
        (w.top / "policy.conf").write_text("[monitor]\nlink-stat = alarm\n")
        process.send_signal(signal.SIGHUP)
        until("RELOADING=1")
        until("READY=1")
        (w.top / "policy.conf").write_text(POLICY)
        process.send_signal(signal.SIGHUP)
        lines.clear()
        until("READY=1")
        process.terminate()
        until("STOPPING=1")
        out, err = process.communicate(timeout=30)
        need(process.returncode == 0, f"{name}: exit {process.returncode}: {err}")
        need("no signal is called 'link-stat'; did you mean 'link-state'?" in err and "are read anew" in err, f"reload: {err}")


def unit():
    if not shutil.which("systemd-analyze"):
        print("no systemd-analyze: the unit is not verified")
        return
    with tempfile.TemporaryDirectory() as top:
        file = pathlib.Path(top) / "peerpath-monitor.service"
        file.write_text((ROOT / "data/systemd/peerpath-monitor.service").read_text().replace("/usr/bin/peerpath", PEERPATH))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True)
        need(done.returncode == 0 and not done.stderr.strip(), f"systemd-analyze verify: {done.stderr}")
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=45", file], capture_output=True, text=True)
        need(done.returncode == 0, f"systemd-analyze security: {done.stdout[-300:]} {done.stderr}")
        print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "")


def earlier():
    with tempfile.TemporaryDirectory() as top:
        w = Walk(top)
        need(w.run() == [], "the first look told something")
        w.node.reset("acs-redirect")
        kernel_log(w.node)
        before = {e["signal"]: e for e in w.run()}
        need({e["kind"] for e in before.values()} == {"acs", "topology-class", "kernel-log"}, f"before: {before}")
        need(all(e["earlier"] is None for e in before.values()), f"no alarm names what was before: {before}")
        slo(100)(w.node)
        alarm, *others = w.run()
        need(not others and (alarm["kind"], alarm["level"]) == ("application-slo", "alarm"), f"the alarm: {alarm} {others}")
        named = {e["signal"]: e for e in alarm["earlier"]}
        need(named.keys() == before.keys() and len(named) == len(alarm["earlier"]), f"{alarm['earlier']} are not {before.keys()}")
        for number, e in named.items():
            need(all(e[key] == before[number][key] for key in ("kind", "object", "level")), f"{e} is not {before[number]}")
            need(before[number]["since"] <= e["at"] <= alarm["time"], f"{e['at']}: not between {before[number]['since']} and {alarm['time']}")
        # It stays with the alarm, also in another process; what is no alarm has none.
        done = monitor("--show", "--json", "--state", w.top / "m.db")
        shown = {s["kind"]: s["earlier"] for s in json.loads(done.stdout)["signals"]}
        need(shown["application-slo"] == alarm["earlier"] and shown["acs"] is None, f"--show: {shown}")
        text = " ".join(monitor("--show", "--state", w.top / "m.db").stdout.split())
        need("In the hour before: " in text and f"acs of {next(e['object'] for e in before.values() if e['kind'] == 'acs')} (early, " in text, f"--show: {text}")
        slo(1000)(w.node)
        ends = w.run()
        need([(e["what"], e["earlier"]) for e in ends] == [("ends", alarm["earlier"])], f"its end: {ends}")
        # A database of before there was such a list: brought up by the monitor, and by nobody who only reads.
        db = sqlite3.connect(w.top / "m.db")
        shutil.copy(w.top / "m.db", w.top / "old.db")
        old = sqlite3.connect(w.top / "old.db")
        old.execute("DROP TABLE monitor_earlier")
        old.execute("UPDATE peerpath_schema SET version = 1 WHERE name = 'monitor'")
        old.commit()
        old.close()
        done = monitor("--show", "--state", w.top / "old.db")
        need(done.returncode == 65 and "version 1 of schema monitor, 2 is needed" in done.stderr, f"an older one: {done.returncode} {done.stderr}")
        done = monitor("--replay", w.top / "node", "--state", w.top / "old.db", "--once", "-j")
        of = [s["earlier"] for s in json.loads(done.stdout)["signals"] if s["kind"] == "application-slo"]
        need(done.returncode in (0, 1) and of == [[]] and "damaged" not in done.stderr, f"an older one: {done.returncode} {done.stderr} {of}")
        # Rows of somebody else's making are left out.
        db.execute("INSERT INTO monitor_earlier VALUES (?, 99, -1, 'nonsense', 'loud', 'x', -5)", (alarm["signal"],))
        db.execute("INSERT INTO monitor_earlier VALUES (?, 98, 1, 'acs', 'early', ?, 9223372036854775807)", (alarm["signal"], "\x1b[31m" + "y" * 5000))
        db.commit()
        db.close()
        done = monitor(*w.words("--once", "-j"))
        of = next(s for s in json.loads(done.stdout)["signals"] if s["kind"] == "application-slo")["earlier"]
        need(done.returncode in (0, 1) and "1 rows of the database" in done.stderr, f"odd rows: {done.returncode} {done.stderr}")
        need(of[:-1] == alarm["earlier"] and of[-1]["object"].startswith("?[31myyy") and len(of[-1]["object"]) < 110, f"odd rows: {of}")


def set_redirect(path):
    """setpci -s BDF ECAP_ACS+6.w=0x1d: RR and CR into the control register (PCIe 6.0, 7.7.11.3)."""
    data, at = bytearray(path.read_bytes()), 0x100
    while at and int.from_bytes(data[at:at + 2], "little") != 0x000d:
        at = int.from_bytes(data[at + 2:at + 4], "little") >> 4
    need(at, f"{path}: no ACS")
    data[at + 6] ^= 0x0c
    path.write_bytes(data)


def quick():
    with tempfile.TemporaryDirectory() as top:
        node = Node(top)
        root, events, state = node.dir / "raw", node.top / "events", node.top / "q.db"
        # A tree of this boot is a running node: drivers may be asked, and there are none.
        (root / "proc/sys/kernel/random/boot_id").write_text(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text())
        process = subprocess.Popen([PEERPATH, "monitor", "--root", root, "--state", state, "--events", events, "--period", "300ms"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": ""})

        def rounds():
            done = monitor("--show", "-j", "--state", state)
            return json.loads(done.stdout)["rounds"] if done.returncode in (0, 1, 2) else 0

        def told():
            lines = events.read_text().splitlines() if events.exists() else []
            return [e for e in map(json.loads, lines) if e["kind"] == "acs"]
        until = time.monotonic() + 60
        while not rounds() and time.monotonic() < until:
            time.sleep(0.1)
        need(told() == [], f"told at the start: {told()}")
        bridge = root / "sys/devices" / "/".join(NIC.split("/")[:-1]) / "config"
        set_redirect(bridge)
        while not told() and time.monotonic() < until + 60:
            time.sleep(0.1)
        first = told()
        need(len(first) == 1 and first[0]["object"] == bridge.parent.name and first[0]["after"].endswith("RR+CR") and first[0]["level"] == "early",
             f"access control changed: {first}")
        # The state was written with the signal: it was no hourly look (each 60th), which would have seen it too.
        need(0 < rounds() < 60, f"told in round {rounds()}")
        process.terminate()
        _, err = process.communicate(timeout=60)
        need(process.returncode == 0, f"exit {process.returncode}: {err}")


def baseline():
    with tempfile.TemporaryDirectory() as top:
        w, top = Walk(top), pathlib.Path(top)
        bundles = top / "bundles"
        bundles.mkdir()
        done = subprocess.run([PEERPATH, "prove", "--replay", w.node.dir, "-o", bundles / "good.tar.zst"], capture_output=True, text=True, timeout=120)
        verdict = json.loads(subprocess.run([PEERPATH, "prove", "--no-bundle", "-j", "--replay", w.node.dir], capture_output=True, text=True,
                                            timeout=120).stdout)["verdict"]
        need(verdict in ("pass", "degraded"), f"the made node: {verdict}: {done.stderr}")
        words = ["--replay", w.node.dir, "--state", top / "b.db", "--policy", top / "policy.conf"]
        done = monitor(*words, "--once", "-j", "--baseline", bundles / "good.tar.zst")
        shown = json.loads(done.stdout)
        need(done.returncode == 0 and shown["baseline"] and not shown["signals"], f"the same node: {done.returncode} {done.stderr} {shown['signals']}")
        need({c["name"] for c in shown["checks"]} >= {"identity", "prerequisites"}, f"checks: {shown['checks']}")
        # Changed before the monitor ever looked: the first look is not the baseline.
        w.node.reset("port-down")
        done = monitor("--replay", w.node.dir, "--policy", top / "policy.conf", "--once", "-j", "--baseline", bundles / "good.tar.zst")
        kinds = {s["kind"] for s in json.loads(done.stdout)["signals"]}
        need(done.returncode == 1 and {"link-state"} <= kinds <= {"link-state", "topology-class"}, f"changed since the bundle: {done.returncode} {kinds} {done.stderr}")
        refused(w, bundles, verdict)


def refused(w, bundles, verdict):
    def one(path, *more):
        return monitor("--replay", w.node.dir, "--once", "-j", "--baseline", path, *more)
    w.node.reset("no-rdma-device")
    subprocess.run([PEERPATH, "prove", "--replay", w.node.dir, "-o", bundles / "unknown.tar.zst"], capture_output=True, timeout=120)
    w.node.reset()
    done = one(bundles / "unknown.tar.zst")
    need(done.returncode == 65 and "a baseline is what was good" in done.stderr, f"not passed: {done.returncode} {done.stderr}")
    subprocess.run([PEERPATH, "capture", "--replay", w.node.dir, "-o", bundles / "capture.tar.zst"], capture_output=True, timeout=120)
    done = one(bundles / "capture.tar.zst")
    need(done.returncode == 65 and "made by capture" in done.stderr, f"capture: {done.returncode} {done.stderr}")
    cut = bundles / "cut.tar.zst"
    cut.write_bytes((bundles / "good.tar.zst").read_bytes()[:-200])
    done = one(cut)
    need(done.returncode == 65, f"cut: {done.returncode} {done.stderr}")
    done = one(bundles)
    if verdict == "pass":
        need(done.returncode == 0 and json.loads(done.stdout)["baseline"], f"directory: {done.returncode} {done.stderr}")
    else:
        need(done.returncode == 65 and "no bundle in" in done.stderr and "passed" in done.stderr, f"directory: {done.returncode} {done.stderr}")


def no_baselines():
    sys.path[:0] = [str(ROOT / "tests/soft"), str(ROOT / "tests/e2e")]
    import bundle
    import soft
    soft.alone()
    with tempfile.TemporaryDirectory() as top:
        w, top = Walk(top), pathlib.Path(top)

        def prove(name, *more, node=w.node.dir, code=(0, 1, 2)):
            done = subprocess.run([PEERPATH, "prove", "-o", top / f"{name}.tar.zst", *(["--replay", node] if node else []), *map(str, more)],
                                  capture_output=True, text=True, timeout=200)
            need(done.returncode in code, f"{name}: prove: {done.returncode} {done.stderr}")
            return top / f"{name}.tar.zst"

        def one(path, *more, on=w.node.dir):
            return monitor("--replay", on, "--once", "-j", "--baseline", path, *more)

        def refused_as(name, path, why, *more, on=w.node.dir):
            done = one(path, *more, on=on)
            need(done.returncode == 65 and done.stderr.count("\n") == 1 and why in done.stderr and str(path) in done.stderr and not done.stdout,
                 f"{name}: {done.returncode} {done.stderr} {done.stdout[:200]}")

        def taken(name, path, *more, says="", on=w.node.dir):
            done = one(path, *more, on=on)
            need(done.returncode in (0, 1) and says in done.stderr, f"{name}: {done.returncode} {done.stderr}")
            return json.loads(done.stdout) if done.stdout else {}
        good = prove("good")
        own = taken("its own", good, says="looks of")
        need(all(c["took_s"] is None for c in own["checks"]), f"a replay took no time that was measured: {own['checks']}")
        # Scrubbed: nothing takes it.
        refused_as("scrubbed", prove("scrubbed", "--scrub"), "it is scrubbed: its names are not the node's", "--simulate", "--any-node")
        (top / "rules").mkdir()
        (top / "rules/made.rules").write_text(bundle.FAILING_RULE)
        refused_as("failed", prove("failed", "--rules", top / "rules", code=(1,)), "its verdict is fail: a baseline is what was good")
        another(w, top, prove, refused_as, taken)
        newer_documents(top, bundle, good, refused_as)
        simulated(top, prove, refused_as, taken)


def another(w, top, prove, refused_as, taken):
    """Known by its parts: with one of two hcas replaced it is the same node, with both another, whatever it is called."""
    def with_guids(name, *guids):
        tree = top / name
        shutil.copytree(w.node.clean, tree, symlinks=True)
        for i, guid in enumerate(guids):
            for part in ("node_guid", "sys_image_guid"):
                (tree / "raw/sys/class/infiniband" / f"mlx5_{i}" / part).write_text(guid + "\n")
        return tree
    repaired, other = with_guids("repaired", "0200:00ff:feaa:0000"), with_guids("other", "0200:00ff:feaa:0000", "0200:00ff:feaa:0100")
    (repaired / "raw/proc/sys/kernel/hostname").write_text("renamed\n")
    taken("a part replaced, another name", prove("repaired", node=repaired), says="looks of")
    theirs = prove("other", node=other)
    refused_as("another node", theirs, "it is of another node, 'made-node': no GPU and no hca of it is here; --any-node takes it")
    shown = taken("another node, asked for", theirs, "--any-node", says="which is of another node")
    need(shown["baseline"], f"another node, asked for: {shown['baseline']}")
    # In a directory of many nodes' bundles the newest of this node is it.
    many = top / "many"
    many.mkdir()
    for i, name in enumerate(("good", "other")):
        shutil.copy(top / f"{name}.tar.zst", many)
        os.utime(many / f"{name}.tar.zst", (2000000000 + i, 2000000000 + i))
    done = monitor("--replay", w.node.dir, "--once", "-j", "--baseline", many)
    passed = json.loads(subprocess.run([PEERPATH, "prove", "--no-bundle", "-j", "--replay", w.node.dir], capture_output=True, text=True,
                                       timeout=120).stdout)["verdict"] == "pass"
    need((done.returncode in (0, 1) and "good.tar.zst" in done.stderr) if passed else
         (done.returncode == 65 and "of another node" not in done.stderr and "verdict is degraded" in done.stderr), f"many nodes: {done}")
    # Without a part on either side nothing tells whose it is.
    bare = with_guids("bare", "0000:0000:0000:0000", "0000:0000:0000:0000")
    taken("no part", theirs, says="whose it is no part tells", on=bare)


def newer_documents(top, bundle, good, refused_as):
    for name, file, old, new, why in (
            ("newer result", "result.json", "peerpath.prove/1", "peerpath.prove/2", "its result is peerpath.prove/2, newer than this peerpath reads"),
            ("another document", "result.json", "peerpath.prove/1", "peerpath.topo/1", "its result.json is none of prove"),
            ("nonsense", "result.json", "peerpath.prove/1", "peerpath.prove/1x", "its result.json is none of prove"),
            ("newer manifest", "manifest.json", "peerpath.manifest/1", "peerpath.manifest/2", "newer")):
        opened = bundle.unpack(good, top / name.replace(" ", "-"))
        text = (opened / file).read_text()
        need(old in text, f"{name}: no {old}")
        (opened / file).write_text(text.replace(old, new, 1))
        bundle.sign(opened)
        refused_as(name, opened, why)


def simulated(top, prove, refused_as, taken):
    """A chain exercised on the software device, as it is run; and how long that took."""
    path = prove("sim", "--simulate", "-s", "64K", "--repeats", "2", "-D", "20ms", "--through", "2", node=None)
    refused_as("simulated", path, "it is of a simulation; --simulate takes it")
    refused_as("simulated", path, "it is of a simulation; --simulate takes it", "--any-node")
    checks = {c["name"]: c for c in taken("simulated, asked for", path, "--simulate", says="in simulation")["checks"]}
    took = json.loads(subprocess.run(["tar", "--zstd", "-xOf", path, "result.json"], capture_output=True, text=True, check=True).stdout)["took_s"]
    need(took.keys() == {"identity", "prerequisites", "memory"} and all(0 < s < 200 for s in took.values()), f"took_s: {took}")
    need(all(c["simulated"] and abs(c["took_s"] - took[name]) < 1e-6 for name, c in checks.items()) and checks.keys() == took.keys(), f"{checks} {took}")
    monitor("--replay", top / "node", "--once", "--baseline", path, "--simulate", "--textfile", top / "m.prom")
    metrics = dict(re.findall(r'^peerpath_check_duration_seconds\{check="(\w+)"\} (\S+)$', (top / "m.prom").read_text(), re.M))
    need({name: round(float(s), 3) for name, s in metrics.items()} == {name: round(s, 3) for name, s in took.items()}, f"{metrics} {took}")


def main():
    {"walk": walk, "kill": kill, "keep": keep, "rotate": rotate, "service": service, "earlier": earlier, "quick": quick, "baseline": baseline,
     "refused": no_baselines}[PART]()
    sys.exit(1 if FAULTS else 0)


if __name__ == "__main__":
    main()
