# SPDX-License-Identifier: Apache-2.0
"""Programs on the software device, two at a time, and judges of what they sent."""
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("PEERPATH_SHARED") or TOP.parent / "shared")

# Index 0 is the IPv4 GID, 1 the IPv6 one. An unknown part makes programs post by ibv_post_send(),
# ConnectX-5's by ibv_wr_*().
LOOP = "name=soft0,address=127.0.0.1,address=::1"
# How two processes talk: as they do by themselves, by the wire, or where neither can read the other's memory.
LINK = os.environ.get("PEERPATH_TEST_LINK", "same-host")
if LINK == "wire":
    LOOP += ",same-host=no"
PART = ",vendor_id=0x2c9,vendor_part_id=4119"
# A clock for perftest that lets it come to the point (tests/fake/hurry.c); its programs run with it where it is told.
HURRY = os.environ.get("PEERPATH_TEST_HURRY")


class Fault(Exception):
    """What a test found."""


class Late(Fault):
    """A pair that did not end in its time."""


def skip(reason):
    """Ends the test: meson's exit status for one that could not be run."""
    print(reason)
    sys.exit(77)


def need(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        skip(f"not installed: {' '.join(missing)}")


def not_sanitized():
    if os.environ.get("PEERPATH_SANITIZED"):
        skip("a program of the system cannot load a sanitizer's library; the plain build runs this")


def alone(needed=False):
    """Goes on in a network namespace of its own, where the kernel lets us: whatever else uses the software
    device, or the ports, is out of the way. Needed: without one the test is skipped."""
    if os.environ.get("PEERPATH_TEST_ALONE") == "1":
        return
    ways = ([], ["--user", "--map-root-user"]) if os.geteuid() == 0 else (["--user", "--map-root-user"],)
    for way in ways if shutil.which("unshare") and shutil.which("ip") else ():
        again = ["unshare", *way, "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
        if subprocess.run([*again, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0:
            os.environ["PEERPATH_TEST_ALONE"] = "1"
            os.execvp("unshare", [*again, sys.executable, *sys.argv])
    if needed:
        skip("no network namespace for one user alone (unshare, ip)")


def on(peerpath, config, words):
    """The command line that runs words on the software device."""
    # The other's number means nothing in a pid namespace of one's own.
    apart = ["unshare", "--pid", "--fork", "--kill-child"] if LINK == "two-copies" else []
    words = [str(word) for word in words]
    clock = ["env", f"LD_PRELOAD={HURRY}"] if HURRY and words[0].startswith("ib_") else []
    return [*apart, *clock, os.path.abspath(peerpath), "soft", "--config", config, "--", *words]


def port():
    """A TCP port for the programs' own talk: another one for each call and for each running test."""
    return 20000 + (os.getpid() * 40 + next(port.next)) % 12000


port.next = itertools.count()


def listening(number):
    """As the kernel lists it: to connect would take the one connection that a server waits for."""
    want = re.compile(rf":{number:04X} 0+:0000 0A")
    return any(want.search(pathlib.Path(f"/proc/net/{table}").read_text(encoding="ascii"))
               for table in ("tcp", "tcp6"))


def pair(server, client, number, seconds=60, env=None):
    """Runs server, and client when the server listens on TCP port number. Both results: (status, text)."""
    env = {**os.environ, **(env or {})}
    first = subprocess.Popen(server, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=env)
    end = time.monotonic() + seconds
    try:
        while not listening(number) and first.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        second = subprocess.run(client, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=env, timeout=seconds, check=False)
        if second.returncode:
            time.sleep(0.2)  # a server that has lost its client may wait for ever
            if first.poll() is None:
                first.terminate()
        said, _ = first.communicate(timeout=max(1, end - time.monotonic()))
    except subprocess.TimeoutExpired as err:
        first.kill()
        said, _ = first.communicate()
        raise Late(f"no end after {seconds} s: {' '.join(map(str, err.cmd))}\n"
                   f"{(err.output or b'').decode('utf-8', 'replace')[-2000:]}\n"
                   f"server:\n{said.decode('utf-8', 'replace')[-2000:]}") from err
    finally:
        first.kill()
        first.wait()
    return ((first.returncode, said.decode("utf-8", "replace")),
            (second.returncode, second.stdout.decode("utf-8", "replace")))


def both_right(what, results):
    """Status 0 of both, else Fault. The texts."""
    (first, said), (second, answer) = results
    if first or second:
        raise Fault(f"{what}: server {first}, client {second}\n{said[-2000:]}\n{answer[-2000:]}")
    return said, answer


# rdma_check: 9 sizes of 7 ops (2 of them by memory windows), one that invalidates, 3 atomics, 8 sizes (6 where
# the path MTU is 1024) of 2 UD ops, 9 (8) of 3 UC ops, 7 ops to be refused; both directions.
CASES = {1024: 220, 4096: 234}


def checked(what, text, mtu):
    found = re.search(r"^(\d+) ok, 0 bad, \d+ skipped$", text, re.M)
    if not found or int(found[1]) != CASES[mtu]:
        raise Fault(f"{what}: not {CASES[mtu]} cases right\n{text[-3000:]}")


def case(name, function, *args):
    """Was it right? Says so in a line."""
    start = time.monotonic()
    try:
        said, right = function(*args), True
    except Fault as err:
        said, right = f"FAULT: {err}", False
    print(f"{'ok' if right else 'bad'} {name}, {time.monotonic() - start:.2f} s{': ' + said if said else ''}", flush=True)
    return right


def cases(table, only=(), together=1):
    """Runs (name, function, arguments...), some at a time; one line each. How many were wrong."""
    wanted = [row for row in table if not only or any(word in row[0] for word in only)]
    with concurrent.futures.ThreadPoolExecutor(together) as pool:
        right = sum(pool.map(lambda row: case(*row), wanted))
    print(f"{right} of {len(wanted)} cases right")
    return 0 if wanted and right == len(wanted) else 1
