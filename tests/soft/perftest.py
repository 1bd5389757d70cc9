#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perftest, unmodified, between two processes on the software device: every tool and the options
that take another way through the library, posted the old way and the new. The tools judge: exit
status of both ends and a row of figures for every size.

usage: perftest.py PEERPATH [SUBSTRING-OF-A-CASE...]
"""
import re
import sys

from soft import LOOP, PART, Fault, Late, alone, both_right, cases, need, not_sanitized, on, pair, port

PEERPATH, ONLY = sys.argv[1], sys.argv[2:]

# Tools and, for each case of theirs, options. Common things first.
CASES = (
    (("ib_write_bw", "ib_read_bw", "ib_send_bw"), ("-s 65536", "-s 1", "-b -s 4096", "-q 8 -s 65536",
                                                   "-l 16 -s 2048 -n 208")),
    (("ib_read_bw", "ib_send_bw"), ("-e -s 4096",)),  # perftest has no events for WRITE
    (("ib_write_bw", "ib_send_bw"), ("-I 64 -s 64",)),
    (("ib_write_lat", "ib_read_lat", "ib_send_lat"), ("-s 8", "-s 65536")),
    (("ib_read_lat", "ib_send_lat"), ("-e -s 8",)),
    (("ib_write_lat", "ib_send_lat"), ("-I 64 -s 64",)),
    (("ib_atomic_bw", "ib_atomic_lat"), ("-A FETCH_AND_ADD", "-A CMP_AND_SWAP")),
    (("ib_send_bw",), ("-c UD -s 1024", "-c UD -s 1024 -b", "-c UD -s 1024 -e", "-c UD -s 1024 -q 8")),
    (("ib_send_lat",), ("-c UD -s 1024", "-c UD -s 1024 -e")),
    (("ib_write_bw", "ib_send_bw"), ("-c UC -s 65536", "-c UC -s 1 -q 8")),
    (("ib_write_lat", "ib_send_lat"), ("-c UC -s 8", "-c UC -I 64 -s 64")),
    (("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_read_lat"), ("-a -n 5",)),
    (("ib_write_bw",), ("-c UC -a -n 5",)),
    (("ib_send_bw",), ("-c UD -a -n 20",)),
)
SIZES_ALL, SIZES_UD = 23, 12  # 2 to 8388608 bytes, 2 to the path MTU


def unreliable(options):
    return "UD" in options or "UC" in options


def patience(options):
    # perftest measures the processor's clock for every row of figures.
    return 100 if not unreliable(options) else 60 if "-a" in options.split() else 20


class Clock(Fault):
    """perftest could not measure the processor's clock (a busy machine), and shows no figures."""


def run(config, gid, tool, options):
    # UD and UC promise no delivery, and perftest waits for every message: then, and only then, again.
    late, clock = 4 if unreliable(options) else 1, 4
    while True:
        try:
            once(config, gid, tool, options)
            return f"{4 - late} times with a message lost" if unreliable(options) and late < 4 else None
        except Clock:
            clock -= 1
            if not clock:
                raise
        except Late:
            late -= 1
            if not late:
                raise


def once(config, gid, tool, options):
    number = port()
    # -u: on a busy machine a peer may be away for longer than perftest's timeout of 67 ms, seven times over.
    words = [tool, "-d", "soft0", "-x", gid, "-p", number, "-F", "-u", "18", *options.split(),
             *([] if "-n " in options else ["-n", "100"])]
    _, said = both_right(tool, pair(on(PEERPATH, config, words), on(PEERPATH, config, [*words, "127.0.0.1"]),
                                    number, patience(options)))
    if "Correlation coefficient" in said:
        raise Clock(said[-500:])
    rows = re.findall(r"^ *\d+ +\d+ +[\d.]+ +[\d.]+", said, re.M)
    want = 1 if "-a" not in options.split() else SIZES_UD if "UD" in options else SIZES_ALL
    if len(rows) != want:
        raise Fault(f"{len(rows)} rows of figures, not {want}:\n{said[-2000:]}")


def main():
    not_sanitized()
    alone()
    need(*{tool for tools, _ in CASES for tool in tools})
    table = []
    for tools, options in CASES:
        for tool, option in ((tool, option) for option in options for tool in tools):
            for way, config in (("old", LOOP), ("new", LOOP + PART)):
                # -a takes long: one way each. Every second case over IPv6: both ways see both.
                gid = (len(table) // 2 + len(table)) % 2
                if "-a" in option.split() and (way == "old") == (tool.endswith("lat")):
                    continue
                table.append((f"{tool} {option}, posted the {way} way, {'IPv6' if gid else 'IPv4'}",
                              run, config, gid, tool, option))
    # perftest sleeps while it measures the processor's clock: two at a time, where nothing may be lost.
    table = [row for row in table if not ONLY or any(word in row[0] for word in ONLY)]
    lossy = [row for row in table if unreliable(row[-1])]
    sound = [row for row in table if row not in lossy]
    return max((cases(rows, together=n) for rows, n in ((sound, 2), (lossy, 1)) if rows), default=1)


if __name__ == "__main__":
    sys.exit(main())
