#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""UCX, unmodified, on the software device: its own perftest between two processes, with no other
transport allowed. It is the judge: it fails when a message does not arrive.

usage: soft_abi_ucx.py PEERPATH
"""
import os
import re
import shutil
import subprocess
import sys
import time

PEERPATH = sys.argv[1]
TIMEOUT_S = 100
# transports, ucx_perftest's test, size; the same asleep between messages (completion channels)
CASES = [("rc_verbs,ud_verbs", "ucp_put_bw", 65536, []), ("rc_verbs,ud_verbs", "ucp_fadd", 8, []),
         ("rc_verbs,ud_verbs", "tag_lat", 8, ["-E", "sleep"]), ("ud_verbs", "tag_bw", 4096, [])]


def run(transports, test, size, more, port):
    env = {**os.environ, "UCX_TLS": transports + ",self", "UCX_NET_DEVICES": "soft_lo:1", "UCX_LOG_LEVEL": "warn"}
    argv = [PEERPATH, "soft", "--config", "name=soft_lo,address=127.0.0.1,address=::1", "--", "ucx_perftest", "-p",
            str(port), *more]
    server = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            time.sleep(0.1)
            client = subprocess.run([*argv, "127.0.0.1", "-t", test, "-s", str(size), "-n", "200"], env=env,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S,
                                    check=False)
            # the server may not listen yet
            if "Connection refused" not in client.stdout or time.monotonic() > deadline:
                break
        said, _ = server.communicate(timeout=TIMEOUT_S)
    finally:
        server.kill()
        server.wait()
    assert client.returncode == 0 and server.returncode == 0, (test, client.stdout[-2000:], said[-2000:])
    assert re.search(r"^Final: +200 ", client.stdout, re.M), client.stdout


def main():
    if not shutil.which("ucx_perftest") or not shutil.which("ucx_info"):
        print("ucx_perftest is not installed")
        return 77
    env = {**os.environ, "UCX_NET_DEVICES": "soft_lo:1"}
    out = subprocess.run([PEERPATH, "soft", "--", "ucx_info", "-d"], env=env, stdout=subprocess.PIPE, text=True,
                         timeout=TIMEOUT_S, check=True).stdout
    if "rc_verbs" not in out and "#" in out and not re.search(r"Transport: (rc|ud)_", out):
        # built without InfiniBand
        modules = subprocess.run(["ucx_info", "-b"], stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout
        if "define HAVE_IB " not in modules and "define HAVE_IB_" not in modules:
            print("this UCX has no InfiniBand transports")
            return 77
    for transport in ("rc_verbs", "ud_verbs"):
        assert re.search(rf"Transport: {transport}\n.*Device: soft_lo:1", out), out
    for at, case in enumerate(CASES):
        run(*case, 27000 + os.getpid() % 5000 + at)
        print("ok", *case[:3], *case[3], flush=True)
    return 0


if __name__ == "__main__":
    if os.environ.get("PEERPATH_SANITIZED"):
        print("programs that are not instrumented cannot load an instrumented library")
        sys.exit(77)
    sys.exit(main())
