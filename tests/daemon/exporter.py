#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter: HTTP as clients use and abuse it, promtool, and a real Prometheus that scrapes it while an alert fires and clears.

usage: exporter.py METRICS DATA PEERPATH MAKE_MACHINE

DATA: the folder of prometheus/ and grafana/. Runs in a network namespace of its own.
"""
import http.client
import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

SKIP = 77
INSIDE = "PEERPATH_TEST_INSIDE"
FAULTS = []
PORT, PROMETHEUS = 19758, 19090
TEXT, OPEN = "text/plain; version=0.0.4; charset=utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8"
# What Prometheus 2.42 sends.
PROMETHEUS_ACCEPT = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def need(good, what):
    if not good:
        FAULTS.append(what)


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def alone():
    """In a network namespace: the ports are then free, whatever runs here."""
    if os.environ.get(INSIDE):
        return
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode:
        skip(f"no network namespace: {probe.stderr.decode().strip()}")
    os.execvpe("unshare", ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', sys.executable, *sys.argv],
               {**os.environ, INSIDE: "1"})


def get(path="/metrics", accept=None, method="GET", body=None):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=20)
    c.request(method, path, body=body, headers={"Accept": accept} if accept else {})
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, r.getheader("Content-Type"), text.decode()


LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


def parse(text):
    """Samples as Prometheus gives them: {(name, labels): value}; comments by (word, name)."""
    samples, comments = {}, {}
    for line in text.split("\n"):
        if line.startswith("# "):
            word, *rest = line[2:].split(" ", 2)
            if rest:
                need((word, rest[0]) not in comments, f"twice: {line}")
                comments[word, rest[0]] = rest[1] if len(rest) > 1 else ""
            continue
        if not line:
            continue
        m = LINE.match(line)
        if not m:
            need(False, f"no sample: {line}")
            continue
        labels, at = {}, 0
        while m[2] and at < len(m[2]):
            one = LABEL.match(m[2], at)
            if not one:
                need(False, f"no labels: {line}")
                break
            labels[one[1]] = re.sub(r"\\(.)", lambda e: "\n" if e[1] == "n" else e[1], one[2])
            at = one.end()
        key = (m[1], tuple(sorted((k, v) for k, v in labels.items() if v)))
        need(key not in samples, f"two samples of {key}")
        samples[key] = float(m[3])
    return samples, comments


class Served:
    def __init__(self, program, alarms):
        self.process = subprocess.Popen([program, "serve", f"127.0.0.1:{PORT}", str(alarms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        need(self.process.stdout.readline().strip() == str(PORT), "it does not listen")

    def end(self):
        self.process.stdin.close()
        need(self.process.wait(timeout=30) == 0, "the exporter did not end well")


def printed(program, form):
    return subprocess.run([program, "print", form], capture_output=True, check=True).stdout.decode()


def formats(program):
    """Both formats tell the same; what the state holds stands in them."""
    text, comments = parse(printed(program, "prometheus"))
    both, open_comments = parse(printed(program, "openmetrics"))
    need(text == both, f"the formats differ: {set(text.items()) ^ set(both.items())}")
    need(printed(program, "openmetrics").endswith("\n# EOF\n"), "no # EOF")
    need("# EOF" not in printed(program, "prometheus") and "# UNIT" not in printed(program, "prometheus"), "0.0.4 has no UNIT, no EOF")
    need(all(name + "_total" in comments_names(comments) for name in
             [n for (w, n), t in open_comments.items() if w == "TYPE" and t == "counter"]), "counters")
    for (word, name), unit in open_comments.items():
        need(word != "UNIT" or name.endswith("_" + unit), f"{name} does not end with {unit}")
    for name in comments_names(comments):
        need(name.startswith("peerpath_") and not name.startswith("peerpath_infiniband"), name)
        need(("HELP", name) in comments, f"no HELP: {name}")
    want = {
        ("peerpath_build_info", (("version", "1.2.3"),)): 1,
        ("peerpath_node_info", (("driver", "580.95.05"), ("kernel", "6.8.0-60-generic"), ("module_flavour", "open"),
                                ("node", 'gpu-"1"\n\\'))): 1,
        ("peerpath_baseline_info", (("bundle", "a-bundle"),)): 1,
        ("peerpath_baseline_timestamp_seconds", ()): 1790000000,
        ("peerpath_monitor_rounds_total", ()): 17,
        ("peerpath_monitor_last_round_timestamp_seconds", ()): 1790000000.5,
        ("peerpath_check_status", (("check", "identity"), ("state", "pass"))): 1,
        ("peerpath_check_status", (("check", "memory"), ("state", "unknown"))): 1,
        ("peerpath_check_status", (("check", "memory"), ("state", "pass"))): 0,
        ("peerpath_check_last_run_timestamp_seconds", (("check", "identity"),)): 1789990000,
        ("peerpath_check_duration_seconds", (("check", "identity"),)): 1.5,
        ("peerpath_check_simulated", (("check", "memory"),)): 1,
        ("peerpath_monitor_period_seconds", ()): 5,
        ("peerpath_check_last_run_timestamp_seconds", (("check", "library"),)): None,  # not known
        ("peerpath_signals_open", (("level", "alarm"), ("signal", "retransmits"))): 2,
        ("peerpath_signals_open", (("level", "early"), ("signal", "acs"))): 0,
        ("peerpath_signal_last_timestamp_seconds", (("signal", "acs"),)): 1790000000,
        ("peerpath_watched", (("signal", "retransmits"),)): 3,
        ("peerpath_watched_unknown", (("signal", "retransmits"),)): 1,
        ("peerpath_port_retransmits_total", (("device", "0000:2b:00.0"), ("port", "1"))): 2.0 ** 53,
        ("peerpath_port_pfc_pauses_total", (("device", "0000:19:00.0"), ("port", "1"))): 40,
        ("peerpath_gpu_bar1_free_bytes", (("device", "0000:18:00.0"),)): 137437904896,
        ("peerpath_host_pressure_ratio", (("resource", "memory"),)): 0.125,
        ("peerpath_application_figure", (("figure", 'step_seconds{rank="0",dir="C:\\x"}'),)): 1.5,
        ("peerpath_application_figure", (("figure", "not utf-8 ?? ??? but ä"),)): 2,
        ("peerpath_processes", (("registration", "dmabuf"),)): 1,
        ("peerpath_processes", (("registration", "mixed"),)): 1,
    }
    for key, value in want.items():
        need(text.get(key) == value, f"{key}: {text.get(key)}, not {value}")
    for name, states in {("peerpath_check_status", c): [v for k, v in text.items() if k[0] == "peerpath_check_status" and
                                                      ("check", c) in k[1]] for c in ("identity", "memory")}.items():
        need(sorted(states) == [0, 0, 0, 1], f"no state set: {name} {states}")
    need(not [k for k in text if k[0] == "peerpath_port_link_flaps_total"], "node_exporter tells of flaps")
    need(not [k for k in text if any("pid" in v for _, v in k[1])], "a process is a label")
    return text


def comments_names(comments):
    return {name for word, name in comments if word == "TYPE"}


def http_as_used():
    need(get()[:2] == (200, TEXT), f"no Accept: {get()[:2]}")
    need(get(accept=PROMETHEUS_ACCEPT)[:2] == (200, OPEN), "what Prometheus asks for")
    for accept, kind in (("*/*", TEXT), ("text/plain", TEXT), ("application/openmetrics-text", OPEN),
                         ("application/openmetrics-text;q=0.1,text/plain;q=0.9", TEXT),
                         ("application/openmetrics-text;q=0,text/html", TEXT), ("application/openmetrics-text;q=x", TEXT),
                         ("application/openmetrics-textual", TEXT), (",;,;q=;,", TEXT), ("text/*;q=0.3, application/openmetrics-text ; q=0.4", OPEN)):
        need(get(accept=accept)[:2] == (200, kind), f"{accept}: {get(accept=accept)[:2]}")
    status, _, body = get(method="HEAD")
    need(status == 200 and not body, f"HEAD: {status} {body[:40]}")
    for path in ("/", "/metrics/", "/metrics/../metrics", "/favicon.ico", "/../etc/passwd", "//metrics"):
        need(get(path)[0] == 404, f"{path}: {get(path)[0]}")
    need(get("/metrics?name=x")[0] == 200, "a query is passed over")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        try:
            status = get(method=method, body="x" * 100)[0]
        except (ConnectionError, http.client.HTTPException):
            status = 405  # closed before it took the body
        need(status == 405, f"{method}: {status}")


def raw(data, limit=15):
    """What is answered to these bytes until it closes."""
    got = b""
    with socket.create_connection(("127.0.0.1", PORT), timeout=limit) as s:
        try:
            s.sendall(data)
            while (part := s.recv(65536)):
                got += part
        except (ConnectionError, TimeoutError):
            pass
    return got


def http_as_abused():
    need(not raw(b"\x16\x03\x01" + bytes(range(256)) * 8).startswith(b"HTTP/1.1 200"), "TLS is no HTTP")
    long = raw(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200000 + b"\r\n\r\n")
    need(not long.startswith(b"HTTP/1.1 200"), "a head of 200 kB")
    need(not raw(b"GET /" + b"m" * 100000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200"), "an address of 100 kB")
    # More that say nothing than are let in: others are served as soon as they are gone.
    idle = []
    for _ in range(28):
        s = socket.socket()
        s.settimeout(5)
        s.connect(("127.0.0.1", PORT))
        idle.append(s)
    closed = time.monotonic()
    for s in idle:
        s.close()
    need(get()[0] == 200, "after idle connections")
    need(time.monotonic() - closed < 60, "it took a minute to be free again")


def sockets(pid):
    return sum(os.readlink(f.path).startswith("socket:") for f in os.scandir(f"/proc/{pid}/fd"))


def is_ended(s):
    """The other end has ended it, whatever it had still to say."""
    s.setblocking(False)
    try:
        while s.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def http_as_starved(pid):
    """Clients that never come to an end, each in its own way, and more of them than there are places."""
    quiet = sockets(pid)
    slow = [socket.create_connection(("127.0.0.1", PORT), timeout=20) for _ in range(3)]
    slow[0].sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
    slow[1].sendall(b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
    # Asked for much, and read a little at a time.
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    reader.connect(("127.0.0.1", PORT))
    reader.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
    reader.settimeout(5)
    ended = set()
    end = time.monotonic() + 60
    while time.monotonic() < end and len(ended) < 3:
        for i, s in enumerate(slow):
            try:
                s.setblocking(True)
                s.sendall(b"x")  # a byte twice a second, for ever
            except OSError:
                ended.add(i)
            if is_ended(s):
                ended.add(i)
        try:
            reader.recv(256)
        except OSError:
            pass
        time.sleep(0.5)
    need(len(ended) == 3, f"of those that send a byte now and then, ended are {sorted(ended)}")
    until("who reads a byte now and then has no place any more", 60, lambda: sockets(pid) <= quiet)
    for s in (*slow, reader):
        s.close()
    many = []
    for _ in range(1000):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", PORT))
        many.append(s)
    until("a scrape among a thousand that say nothing", 120, lambda: get()[0] == 200)
    need(sockets(pid) <= quiet + 17, f"{sockets(pid)} sockets")
    for s in many:
        s.close()
    until("a scrape after them", 60, lambda: get()[0] == 200)


def no_page(alarms):
    alarms.rename(str(alarms) + ".away")
    need(get()[0] == 500, f"no page: {get()[0]}")
    pathlib.Path(str(alarms) + ".away").rename(alarms)
    need(get()[0] == 200, "again")


def listening(program):
    for where in ("127.0.0.1", "example.org:80", "127.0.0.1:", "127.0.0.1:70000", "[::1", "::1:80", ":80", "127.0.0.1:80:90", "", "x"):
        done = subprocess.run([program, "serve", where, "/nowhere"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        need(done.returncode == 64 and done.stderr, f"--listen '{where}': {done.returncode} {done.stderr}")
    done = subprocess.run([program, "serve", f"127.0.0.1:{PORT}", "/nowhere"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    need(b"EADDRINUSE" in done.stderr, f"a port that is taken: {done.stderr}")
    for where in (str(PORT + 1), f"[::1]:{PORT + 1}"):
        done = subprocess.run([program, "serve", where, "/nowhere"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
        need((done.returncode, done.stdout) == (0, f"{PORT + 1}\n".encode()), f"'{where}': {done}")


def textfile(program, folder):
    file = folder / "peerpath.prom"
    file.write_text("old")
    (folder / ".peerpath.prom.new").symlink_to("/etc/hostname")  # never written through
    for _ in range(2):
        done = subprocess.run([program, "textfile", str(file)], capture_output=True, check=False)
        need(done.returncode == 0, f"textfile: {done.stderr}")
    need(file.read_text() == printed(program, "prometheus"), "textfile's content")
    need(file.stat().st_mode & 0o7777 == 0o644, f"mode {oct(file.stat().st_mode)}")
    need([p.name for p in folder.iterdir()] == ["peerpath.prom"], f"left: {list(folder.iterdir())}")
    done = subprocess.run([program, "textfile", str(folder / "no/peerpath.prom")], capture_output=True, check=False)
    need(done.returncode == 1 and b"ENOENT" in done.stderr, f"no folder: {done.stderr}")


def promtool(program, data):
    for words, text in ((["check", "metrics"], printed(program, "prometheus")),):
        done = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False)
        need(done.returncode == 0 and not done.stderr and not done.stdout, f"promtool {words}: {done.stdout}{done.stderr}")
    bad = subprocess.run(["promtool", "check", "metrics"], input="a{b=\"\\x\"} 1\n", capture_output=True, text=True, check=False)
    need(bad.returncode != 0, "promtool finds nothing wrong with nonsense")
    for words in (["check", "rules", "peerpath.rules.yml"], ["test", "rules", "peerpath.rules.test.yml"], ["check", "config", "prometheus.example.yml"]):
        done = subprocess.run(["promtool", *words], cwd=data / "prometheus", capture_output=True, text=True, check=False)
        need(done.returncode == 0, f"promtool {words}: {done.stdout}{done.stderr}")


def ask(path, **query):
    c = http.client.HTTPConnection("127.0.0.1", PROMETHEUS, timeout=20)
    c.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
    doc = json.loads(c.getresponse().read())
    c.close()
    return doc


def until(what, seconds, condition):
    """Waits for what must come; how long it takes is not asserted, only that it comes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return True
        except (ConnectionError, OSError, ValueError, KeyError):
            pass
        time.sleep(0.25)
    need(False, f"it never came: {what}")
    return False


class Prometheus:
    """The shipped rules, with a shorter memory of an alarm: 5m becomes 3s."""

    def __init__(self, folder, data, jobs):
        rules = (data / "prometheus/peerpath.rules.yml").read_text()
        need("[5m]) > 0\n" in rules, "the rule of alarms remembers for 5m")
        (folder / "peerpath.rules.yml").write_text(rules.replace("[5m]) > 0\n", "[3s]) > 0\n"))
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s, scrape_timeout: 1s}\nrule_files: [peerpath.rules.yml]\n"
            "scrape_configs:\n" + "".join(
                f"  - {{job_name: {job}, metrics_path: {path}, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}\n"
                for job, port, path in jobs))
        self.log = open(folder / "prometheus.log", "w")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{PROMETHEUS}", "--log.level=warn"], stdout=self.log, stderr=self.log, cwd=folder)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def stored(job):
    found = {}
    for one in ask("query", query=f'{{__name__=~"peerpath_.*",job="{job}"}}')["data"]["result"]:
        labels = {k: v for k, v in one["metric"].items() if k not in ("__name__", "instance", "job")}
        found[one["metric"]["__name__"], tuple(sorted(labels.items()))] = float(one["value"][1])
    return found


def same(a, b, what):
    """The clock of the last round goes on; all else is as it was printed."""
    moving = {"peerpath_monitor_last_round_timestamp_seconds"}
    a, b = ({k: v for k, v in d.items() if k[0] not in moving} for d in (a, b))
    need(a.keys() == b.keys(), f"{what}: {sorted(a.keys() ^ b.keys())[:4]}")
    for key in a.keys() & b.keys():
        need(a[key] == b[key] or math.isclose(a[key], b[key], rel_tol=1e-12), f"{what}: {key}: {a[key]}, {b[key]}")


def firing():
    return sorted(a["labels"]["signal"] for a in ask("alerts")["data"]["alerts"]
                  if a["labels"]["alertname"] == "PeerpathAlarm" and a["labels"]["job"] == "peerpath" and a["state"] == "firing")


def dashboard(data, names):
    """Each query is one that Prometheus understands and that finds something, or names a metric of the page."""
    doc = json.loads((data / "grafana/peerpath.json").read_text())
    need(doc["uid"] == "peerpath" and len(doc["panels"]) > 10, "dashboard")
    need(len({p["id"] for p in doc["panels"]}) == len(doc["panels"]), "two panels of one id")
    for panel in doc["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "1m")
            answer = ask("query", query=query)
            need(answer["status"] == "success", f"{panel['title']}: {answer.get('error')}: {query}")
            nobody = ask("query", query=target["expr"].replace("$instance", "nobody").replace("$__rate_interval", "1m"))
            need(not nobody["data"]["result"], f"{panel['title']}: of a node that nobody watches: {nobody}")
            for name in re.findall(r"peerpath_[a-z0-9_]+", query):
                need(name in names or name in LIVE_ONLY, f"{panel['title']}: nobody exports {name}")
    cells = [(p["gridPos"]["x"] + dx, p["gridPos"]["y"] + dy) for p in doc["panels"]
             for dx in range(p["gridPos"]["w"]) for dy in range(p["gridPos"]["h"])]
    need(len(cells) == len(set(cells)) and all(x < 24 for x, _ in cells), "panels overlap")


# Of a machine that counts them; the made state has none.
LIVE_ONLY = {"peerpath_port_out_of_sequence_total", "peerpath_port_cnps_total", "peerpath_host_cpu_busy_ratio",
             "peerpath_host_memory_traffic_bytes_per_second"}


def scraped(program, data, folder, alarms):
    want, _ = parse(printed(program, "prometheus"))
    alarms.write_text("2\n")
    (folder / "served").mkdir()
    subprocess.run([program, "textfile", str(folder / "served/peerpath.prom")], check=True)
    server = subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder / "served"), "19100"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    p = Prometheus(folder, data, [("peerpath", PORT, "/metrics"), ("node", 19100, "/peerpath.prom")])
    try:
        if not until("Prometheus scrapes", 60, lambda: stored("peerpath") and stored("node")):
            sys.stderr.write((folder / "prometheus.log").read_text())
            return
        same(stored("peerpath"), want, "OpenMetrics, as Prometheus stores it")
        same(stored("node"), want, "a textfile, as Prometheus stores it")
        until("the alert fires", 60, lambda: firing() == ["retransmits"])
        dashboard(data, {k[0] for k in want})
        alarms.write_text("0\n")
        until("the alert clears", 60, lambda: firing() == [])
        need(stored("peerpath")[("peerpath_signals_open", (("level", "alarm"), ("signal", "retransmits")))] == 0, "0 is told, not nothing")
        health = [t for t in ask("targets")["data"]["activeTargets"] if t["labels"]["job"] == "peerpath"]
        need(len(health) == 1 and health[0]["health"] == "up" and not health[0]["lastError"], f"target: {health}")
    finally:
        p.end()
        server.terminate()
        server.wait(timeout=20)


def not_looked(words, port):
    """With a long period the time of the last look stays what it was, however often it is scraped; the period is told beside it."""
    process = subprocess.Popen([*words, "--period", "1h", "--listen", str(port)], stdout=subprocess.DEVNULL)

    def look():
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        c.request("GET", "/metrics")
        samples = parse(c.getresponse().read().decode())[0]
        c.close()
        return samples[("peerpath_monitor_last_round_timestamp_seconds", ())], samples[("peerpath_monitor_period_seconds", ())]

    try:
        until("the first look", 60, look)
        first = look()
        time.sleep(1)
        need(look() == first and first[1] == 3600, f"the last look: {first}, then {look()}")
    finally:
        process.terminate()
        process.wait(timeout=30)


def monitored(peerpath, make, data, folder):
    """The monitor itself on a recorded machine: a port goes down, which the site calls an alarm; Prometheus tells; it comes back."""
    machine, port = folder / "machine", PORT + 2
    subprocess.run([sys.executable, make, "--gpus", "2", "--nics", "2", "--switches", "2", str(machine)], check=True)
    state = next(p for p in (machine / "raw/sys/devices").rglob("0000:19:00.0/infiniband/*/ports/1/state"))
    policy, prom = folder / "policy.conf", folder / "monitored.prom"
    policy.write_text("[monitor]\nlink-state = alarm\n")
    words = [peerpath, "monitor", "--replay", str(machine), "--policy", str(policy), "--period", "500ms"]
    for extra in (["--once", "--listen", str(port)], ["--show", "--listen", str(port)], ["--show", "--textfile", str(prom)],
                  ["--listen", "example.org:1"]):
        done = subprocess.run([*words, *extra], capture_output=True, timeout=60, check=False)
        need(done.returncode == 64 and done.stderr, f"{extra}: {done.returncode} {done.stderr}")
    done = subprocess.run([*words, "--once", "--textfile", str(prom)], capture_output=True, timeout=60, check=False)
    need(prom.exists() and parse(prom.read_text())[0].get(("peerpath_monitor_rounds_total", ())) == 1, f"--once --textfile: {done}")
    not_looked(words, port + 1)
    monitor = subprocess.Popen([*words, "--listen", str(port), "--textfile", str(prom)], stdout=subprocess.DEVNULL)
    p = Prometheus(folder, data, [("peerpath", port, "/metrics")])
    try:
        until("the monitor's rounds", 60, lambda: stored("peerpath").get(("peerpath_monitor_rounds_total", ()), 0) > 2)
        need(firing() == [], f"at rest: {firing()}")
        down, was = "1: DOWN\n", state.read_text()
        state.write_text(down)
        until("the alert of the port fires", 60, lambda: firing() == ["link-state"])
        state.write_text(was)
        until("the alert of the port clears", 60, lambda: firing() == [])
        text = prom.read_text()
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        need(done.returncode == 0 and not done.stdout + done.stderr, f"promtool of the textfile: {done}")
        names = {k[0] for k in parse(text)[0]}
        need("peerpath_gpu_bar1_free_bytes" in names and "peerpath_port_retransmits_total" in names, f"of the machine: {names}")
        monitor.terminate()
        need(monitor.wait(timeout=30) == 0, "the monitor did not end well")
    finally:
        monitor.kill()
        monitor.wait()
        p.end()


def main():
    alone()
    program, data, peerpath, make = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    formats(program)
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "textfile").mkdir()
        textfile(program, folder / "textfile")
        alarms = folder / "alarms"
        alarms.write_text("0\n")
        served = Served(program, alarms)
        try:
            http_as_used()
            http_as_abused()
            http_as_starved(served.process.pid)
            no_page(alarms)
            listening(program)
            missing = [p for p in ("prometheus", "promtool") if not shutil.which(p)]
            if not missing:
                promtool(program, data)
                scraped(program, data, folder, alarms)
                (folder / "second").mkdir()
                monitored(peerpath, make, data, folder / "second")
        finally:
            served.end()
    for fault in FAULTS:
        print(fault, file=sys.stderr)
    if FAULTS:
        return 1
    if missing:
        skip(f"{' and '.join(missing)} not here (Debian: prometheus); all else of the exporter passed")
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
