#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that connect by rdma_cm, unmodified, between two processes on the software device: on one
host over the loopback, and on two that are network namespaces with a veth between them.

usage: rdmacm.py PEERPATH PART [SUBSTRING-OF-A-CASE...]

Parts: perftest (-R), examples (rdma-core's), libfabric (fi_pingpong over verbs), ucx (its example of a
client and a server, over rdmacm), ends (a peer that is killed, a port that is wrong or taken).
"""
import atexit
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from soft import Fault, alone, cases, need, not_sanitized, on, port, skip

PEERPATH, PART = sys.argv[1:3]
LOOP = "name=soft0,address=127.0.0.1,address=::1"
# The kernel's numbers of a socket that listens, and of a datagram socket that is bound.
LISTENS, BOUND = ("tcp", "0A"), ("udp", "07")


class Host:
    """Where a program runs: a network namespace, and its device."""

    def __init__(self, config, addresses, enter=(), proc="self"):
        self.config, self.addresses, self.enter, self.proc = config, addresses, list(enter), proc

    def line(self, words):
        return self.enter + on(PEERPATH, self.config, words)

    def waits(self, number):
        """Does somebody listen on port number, or have it for datagrams?"""
        for name, state in (LISTENS, BOUND):
            want = re.compile(rf":{number:04X} [0:A-F]+ {state}")
            for table in (name, name + "6"):
                if want.search(pathlib.Path(f"/proc/{self.proc}/net/{table}").read_text(encoding="ascii")):
                    return True
        return False


def two_hosts():
    """A second namespace behind a veth: (server, client). Both end with this process."""
    other = subprocess.Popen(["unshare", "--net", "sleep", "1000"], stdin=subprocess.DEVNULL)
    here = os.stat("/proc/self/ns/net").st_ino
    end = time.monotonic() + 10
    while os.stat(f"/proc/{other.pid}/ns/net").st_ino == here and time.monotonic() < end:
        time.sleep(0.01)
    enter = ["nsenter", f"--net=/proc/{other.pid}/ns/net"]
    for words in (["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", str(other.pid)],
                  ["ip", "addr", "add", "10.9.0.1/24", "dev", "va"],
                  ["ip", "addr", "add", "fd00:9::1/64", "dev", "va", "nodad"], ["ip", "link", "set", "va", "up"],
                  [*enter, "ip", "addr", "add", "10.9.0.2/24", "dev", "vb"],
                  [*enter, "ip", "addr", "add", "fd00:9::2/64", "dev", "vb", "nodad"],
                  [*enter, "ip", "link", "set", "vb", "up"]):
        if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            other.kill()
            other.wait()
            skip(f"no veth between two namespaces: {' '.join(words)}")
    atexit.register(lambda: (other.kill(), other.wait()))
    return (Host("name=soft0,address=10.9.0.1,address=fd00:9::1", ("10.9.0.1", "fd00:9::1")),
            Host("name=soft0,address=10.9.0.2,address=fd00:9::2", ("10.9.0.2", "fd00:9::2"), enter, other.pid))


def text(process, seconds):
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        raise Fault(f"no end after {seconds} s:\n{said.decode('utf-8', 'replace')[-1500:]}") from None
    return said.decode("utf-8", "replace")


def start(host, words):
    return subprocess.Popen(host.line(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)


def listen(host, words, number, seconds=20):
    """The server, once it waits at port number."""
    server = start(host, words)
    end = time.monotonic() + seconds
    while not host.waits(number) and server.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if server.poll() is not None or time.monotonic() >= end:
        server.kill()
        raise Fault(f"{words[0]} does not listen on port {number}:\n{text(server, 5)}")
    return server


def run(hosts, server_words, client_words, number, *, wanted=None, stays=False, seconds=60):
    """Both ends to their end, with status 0; stays: the server has to be stopped. The client's text."""
    server_host, client_host = hosts
    server = listen(server_host, server_words, number)
    client = start(client_host, client_words)
    try:
        answer = text(client, seconds)
        if client.returncode or stays:
            time.sleep(0.2)
            server.terminate()
        said = text(server, 20)
    finally:
        for process in (server, client):
            process.kill()
            process.wait()
    if client.returncode or (server.returncode and not stays):
        raise Fault(f"server {server.returncode}, client {client.returncode}\n{said[-1500:]}\n{answer[-1500:]}")
    if wanted and not re.search(wanted, answer, re.M):
        raise Fault(f"without {wanted}:\n{answer[-1500:]}")


def perftest(hosts, words):
    number = port()
    tool, *options = words.split()
    line = [tool, "-R", "-F", "-n", "100", "-p", number, *options]
    address = hosts[0].addresses[0]
    # UD promises no delivery, and perftest waits for every message.
    tries = 4 if "UD" in options else 1
    for again in range(tries):
        try:
            run(hosts, line, [*line, address], number, wanted=r"^ *\d+ +\d+ +[\d.]+ +[\d.]+",
                seconds=10 if "UD" in options else 60)
            return f"{again} times with a message lost" if again else None
        except Fault:
            if again + 1 == tries:
                raise
    return None


def perftest_cases(places):
    need("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_send_lat", "ib_atomic_bw")
    table = []
    for place, hosts in places:
        for words in ("ib_write_bw -s 65536", "ib_read_bw -s 65536", "ib_send_bw -s 65536", "ib_write_lat -s 8",
                      "ib_send_lat -s 8", "ib_read_lat -s 8", "ib_atomic_bw", "ib_write_bw -q 4 -s 4096",
                      "ib_send_bw -q 4 -s 4096", "ib_write_bw -b -s 4096", "ib_send_bw -c UD -s 1024",
                      "ib_send_lat -c UD -s 1024", "ib_send_bw -c UD -q 4 -s 1024"):
            table.append((f"{words}, {place}", perftest, hosts, words))
    return table


def example(hosts, server, client, number=7471, **more):  # the port of most
    run(hosts, server.split(), client.split(), number, **more)


def examples(places):
    need("rping", "ucmatose", "udaddy", "rdma_server", "rdma_client", "rdma_xserver", "cmtime", "mckey", "rstream")
    table = []
    for place, hosts in places:
        for family, address in enumerate(hosts[0].addresses):
            for options in ("-v", "-S 60000", "-q"):
                table.append((f"rping {options}, {place}, IPv{'46'[family]}", example, hosts,
                              f"rping -s -a {address} -C 20 -V {options}", f"rping -c -a {address} -C 20 -V {options}",
                              7174))
        v4, v6 = hosts[0].addresses
        table += [
            (f"rping, a listener of both families, {place}", example, hosts, "rping -s -a :: -C 5 -V",
             f"rping -c -a {v4} -C 5 -V", 7174),
            (f"rping -P, {place}", example, hosts, "rping -s -P", f"rping -c -a {v4} -C 5 -V", 7174),
            (f"ucmatose, {place}", example, hosts, "ucmatose -c 20", f"ucmatose -s {v4} -c 20"),
            (f"ucmatose, IPv6, {place}", example, hosts, f"ucmatose -b {v6}", f"ucmatose -s {v6}"),
            (f"ucmatose -m, {place}", example, hosts, "ucmatose -m", f"ucmatose -s {v4} -m"),
            (f"udaddy, {place}", example, hosts, "udaddy -c 10", f"udaddy -s {v4} -c 10",
             7174),
            (f"udaddy, IPv6, {place}", example, hosts, f"udaddy -b {v6}", f"udaddy -s {v6}", 7174),
            (f"rdma_server, {place}", example, hosts, "rdma_server", f"rdma_client -s {v4}"),
            (f"rdma_xserver, {place}", example, hosts, "rdma_xserver", f"rdma_xclient -s {v4}"),
            (f"cmtime, {place}", example, hosts, "cmtime -c 200", f"cmtime -s {v4} -c 200"),
        ]
    # rping -s -P serves for ever, and so does Debian 12's cmtime.
    return [(name, function, *args) if not re.match("rping -P|cmtime", name) else
            (name, lambda *a: example(*a, stays=True), *args) for name, function, *args in table]


def libfabric_once(hosts, endpoint):
    # Its control connection: the port after -B. Over rxm 256 peers would want a larger completion queue.
    number = port()
    os.environ["FI_UNIVERSE_SIZE"] = "16"
    line = ["fi_pingpong", "-p", "verbs", "-e", endpoint, "-I", "20", "-c", "-S", "4096", "-B", number]
    client = [*line[:-2], "-P", number, hosts[0].addresses[0]]
    run(hosts, line, client, number, wanted=r"^4k +20 ", seconds=60)


def libfabric(hosts, endpoint):
    """rdm's end is a race within fi_pingpong: who hears of the other's leaving first may read its own flushed
    receive, after its row of figures. Then, and only then, again."""
    for again in range(4):
        try:
            libfabric_once(hosts, endpoint)
            return f"{again} times with a receive flushed at the end" if again else None
        except Fault as err:
            if endpoint != "rdm" or "Work Request Flushed" not in str(err) or again == 3:
                raise
    return None


def libfabric_cases(places):
    need("fi_pingpong", "fi_info")
    hosts = dict(places)["two hosts"]
    said = subprocess.run(hosts[0].line(["fi_info", "-p", "verbs"]), capture_output=True, text=True, check=False)
    if "FI_PROTO_RDMA_CM_IB_RC" not in said.stdout:
        raise SystemExit(f"no message endpoints:\n{said.stdout}{said.stderr}")
    return [(f"fi_pingpong -p verbs -e {endpoint}, two hosts", libfabric, hosts, endpoint)
            for endpoint in ("msg", "rdm")]


EXAMPLE = pathlib.Path("/usr/share/doc/libucx-dev/examples/ucp_client_server.c")


def ucx(hosts, program, interface):
    number = port()
    line = [program, "-c", interface, "-p", number, "-i", "50"]
    server = [*line, "-l", hosts[0].addresses[0]]
    run(hosts, server, [*line, "-a", hosts[0].addresses[0]], number, wanted="^ABCDEFGHIJKLMNO", stays=True)


def ucx_cases(places):
    need("gcc")
    if not EXAMPLE.exists():
        skip("libucx-dev, with its examples, is not installed")
    where = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, where, ignore_errors=True)
    built = subprocess.run(["gcc", "-o", f"{where}/ucp", EXAMPLE, "-lucp", "-lucs"], capture_output=True, text=True,
                           check=False)
    if built.returncode:
        skip(f"UCX's example does not build here: {built.stderr[:300]}")
    os.environ.update(UCX_TLS="rc_verbs,ud_verbs,rdmacm,self", UCX_SOCKADDR_TLS_PRIORITY="rdmacm",
                      UCX_NET_DEVICES="soft0:1", UCX_LOG_LEVEL="error")
    return [(f"UCX, {interface}, {place}", ucx, hosts, f"{where}/ucp", interface)
            for place, hosts in places for interface in ("stream", "tag", "am") if place != "loopback"]


def killed(hosts, which):
    """The survivor is told, and ends by itself."""
    address = hosts[0].addresses[0]
    server = listen(hosts[0], ["rping", "-s", "-a", address], 7174)
    client = start(hosts[1], ["rping", "-c", "-a", address, "-C", "100000000"])
    try:
        time.sleep(1)
        if client.poll() is not None or server.poll() is not None:
            raise Fault(f"over before anybody was killed:\n{text(client, 5)}")
        victim, survivor = (server, client) if which == "server" else (client, server)
        victim.send_signal(signal.SIGKILL)
        said = text(survivor, 20)
        if "DISCONNECT EVENT" not in said:
            raise Fault(said[-1500:])
    finally:
        for process in (server, client):
            process.kill()
            process.wait()


def fails(hosts, words, *wanted):
    done = subprocess.run(hosts[1].line(words.split()), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    said = done.stdout.decode("utf-8", "replace")
    missing = [want for want in wanted if want not in said]
    if missing:
        raise Fault(f"exit {done.returncode}, without {missing}:\n{said}")


def taken(hosts):
    address = hosts[0].addresses[0]
    server = listen(hosts[0], ["rping", "-s", "-a", address], 7174)
    try:
        fails((hosts[0], hosts[0]), f"rping -s -a {address}", "Address already in use")
    finally:
        server.kill()
        server.wait()


def ends(places):
    need("rping", "ucmatose", "mckey", "rstream")
    table = []
    for place, hosts in places:
        address = hosts[0].addresses[0]
        table += [
            (f"the server is killed, {place}", killed, hosts, "server"),
            (f"the client is killed, {place}", killed, hosts, "client"),
            (f"nobody listens, {place}", fails, hosts, f"rping -c -a {address} -p 4444", "RDMA_CM_EVENT_REJECTED",
             "error 8"),
            (f"the port is taken, {place}", taken, hosts),
        ]
    hosts = dict(places)["two hosts"]
    return table + [
        ("no route", fails, hosts, "rping -c -a 192.0.2.1", "Network is unreachable"),
        ("no such address here", fails, hosts, "rping -s -a 192.0.2.1", "Cannot assign requested address"),
        ("multicast", fails, hosts, f"mckey -m 239.1.1.1 -b {hosts[1].addresses[0]}", "Function not implemented"),
        ("rsocket", fails, hosts, f"rstream -s {hosts[0].addresses[0]}", "rsocket failed: Function not implemented"),
    ]


def main():
    not_sanitized()
    need("unshare", "nsenter", "ip")
    alone(needed=True)
    place = Host(LOOP, ("127.0.0.1", "::1"))
    places = [("loopback", (place, place)), ("two hosts", two_hosts())]
    parts = {"perftest": perftest_cases, "examples": examples, "libfabric": libfabric_cases, "ucx": ucx_cases,
             "ends": ends}
    return cases(parts[PART](places), sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
