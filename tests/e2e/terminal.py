#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a person sees on a terminal of 80 columns: pages that fit, colors, an interrupt.

Usage: terminal.py PROGRAM
"""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import machines

failures = []
FITTING = ((), ("identity",), ("identity", "--facts"), ("topo",), ("check",), ("prove", "--quick"))


def fail(name, text):
    failures.append(f"{name}: {text}")


def on_terminal(*args, term="xterm", columns=80):
    """What the program writes to a terminal of that width."""
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        os.execve(machines.PROGRAM, ["peerpath", *args], {**env, "TERM": term})
    out = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.waitpid(pid, 0)
    os.close(master)
    return out.decode().replace("\r", "")


def widths(work):
    for faults in ((), ("acs-redirect", "narrow-link"), ("far-nic",), ("acs-unreadable",)):
        name = "+".join(faults) or "good"
        tree = machines.make(f"{work}/{name}", "good2", faults)
        for verb in FITTING:
            out = on_terminal(*verb, "--color", "never", "--replay", tree)
            if len(out) < 200:
                fail(f"{name} {verb}", f"says too little: {out!r}")
            for line in out.splitlines():
                if len(line) > 80 and " " in line.strip():
                    fail(f"{name} {verb}", f"{len(line)} columns: {line}")


def colors(work):
    tree = f"{work}/good"
    if "\033[" not in on_terminal("check", "--replay", tree):
        fail("xterm", "no color")
    if "\033[" not in on_terminal("prove", "--quick", "--replay", tree):
        fail("xterm", "no color of an answer that another process has written")
    if "\033[" in on_terminal("check", "--replay", tree, term="dumb"):
        fail("dumb", "colored")


def virtual_functions(work):
    """good8 has 8 rails, 8 storage ports, 24 virtual functions of theirs."""
    tree = machines.make(f"{work}/good8", "good8")
    text = machines.run("topo", "--replay", tree)[1].decode()
    head = next(line for line in text.splitlines() if line.startswith("        GPU0 "))
    if len(re.findall(r"\bNIC\d+", head)) != 16 or "24 virtual functions" not in text:
        fail("virtual functions", head)
    unused = text.count("0000:")
    vf = vfs(tree)[-1]
    text = machines.run("topo", "--device", vf, "--replay", tree)[1].decode()
    if f"={vf}" not in text or "23 virtual functions" not in text or text.count("0000:") <= unused:
        fail("virtual functions", f"--device {vf} adds nothing")


def vfs(tree):
    top = f"{tree}/raw/sys/bus/pci/devices"
    if not os.path.isdir(top):
        top = f"{tree}/sys/bus/pci/devices"
    return sorted(b for b in os.listdir(top) if os.path.lexists(f"{top}/{b}/physfn"))


def unknown(work):
    """A reason names the whole key of its fact, and whose it is when it is not the node's."""
    text = machines.run("topo", "--replay", f"{work}/acs-unreadable")[1].decode()
    if "pair.route of 0000:18:00.0/0000:19:00.0" not in " ".join(text.split()):
        fail("unknown", text)


def interrupt():
    p = subprocess.Popen(
        [machines.PROGRAM, "topo", "--smi", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    status = p.wait(30)
    out, err = p.stdout.read(), p.stderr.read()
    p.stdin.close()
    if status != 130 or out or err:
        fail("interrupt", f"exit status {status}: {out!r} {err!r}")


def need_terminal():
    try:
        ends = pty.openpty()
    except OSError as error:
        print(f"skipped: no pseudo-terminal here: {error}")
        sys.exit(77)
    for end in ends:
        os.close(end)


def main():
    need_terminal()
    with machines.scratch() as work:
        machines.need_program()
        for part in (widths, colors, virtual_functions, unknown):
            part(work)
    interrupt()
    for f in failures:
        print(f"FAIL {f}")
    print(f"terminal: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
