#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: bench_rxe.py LAB-DIR ENDS

Two guests with the kernel's rdma_rxe: bench's endpoints and loops between them, connected by addresses and by the
system's librdmacm (-R), every byte looked at, and what must be refused. perftest runs beside it on the same link.
"""
import os
import sys

sys.path.insert(0, sys.argv[1])
from lab import Lab, LabError, status_of  # noqa: E402

ENDS = sys.argv[2]


def perftest(lab):
    command = "ib_write_bw -d rxe0 -x $GID4 -n 20 -u 18 -F -p 18515"
    server = lab.guest(0).start(command)
    lab.guest(0).wait_port(18515)
    lab.guest(1).run(f"{command} 10.77.0.1").check()
    server.wait(20).check()


def ends(lab, number, words):
    port = 7000 + number
    first = lab.guest(0).start(f"ends rxe0 {words} brief listen {port}")
    lab.guest(0).wait_port(port)
    second = lab.guest(1).run(f"ends rxe0 {words} brief connect 10.77.0.1 {port}", 260)
    for result in (first.wait(30), second):
        result.check()
        if "both ends right" not in result.text:
            raise LabError(f"{result.what}:\n{result.text}")


def tested():
    with Lab(nodes=2, mtu=1500, put=[(ENDS, "bin/ends")]) as lab:
        perftest(lab)
        for number, words in enumerate(("", "cm")):
            ends(lab, number, words)
    print("both guests right, by addresses and by librdmacm")


def main():
    if os.environ.get("PEERPATH_SANITIZED"):
        print("what a sanitizer sees of these ends it sees beside the software device; the plain build runs this")
        return 77
    return status_of(tested)


if __name__ == "__main__":
    sys.exit(main())
