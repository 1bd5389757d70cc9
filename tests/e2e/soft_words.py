#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What 'peerpath soft' says to who is new to it: one line for each wrong thing, a page of 80 columns, and
JSON whose every key stands in the manual page.

usage: soft_words.py PEERPATH PROJECT-ROOT
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PEERPATH, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
PAGE = (ROOT / "man/peerpath-soft.1.scd").read_text()
NOBODY = 65534
LO = "name=lo,address=127.0.0.1"
failures = []

WRONG = (
    ((), 64, "missing operand"),
    (("--confg", "x", "--", "true"), 64, "did you mean '--config'"),
    (("--all", "--", "true"), 64, "--all belongs to 'show'"),
    (("--json", "--", "true"), 64, "--json belongs to 'show'"),
    (("show", "more"), 64, "unexpected operand 'more' of show"),
    (("-c", LO, "show"), 64, "show takes no --config"),
    (("-c", LO, "shwo"), 127, "did you mean 'show'?"),
    (("-c", LO, "--", "no-such-program"), 127, "no such command in PATH"),
    (("-c", LO, "--", "/"), 126, "a directory"),
    (("-c", LO, "--", "/etc/passwd"), 126, "chmod +x"),
    (("-c", "soft0", "--", "true"), 65, "--config: soft0: No such file or directory; as text"),
    (("-c", "name=a,netdev=eth77", "--", "true"), 65, "no netdev eth77"),
    (("-c", "name=a,adress=::1", "--", "true"), 65, "is it address?"),
    (("-c", "address=127.0.0.1", "--", "true"), 65, "its name comes before it"),
    (("-c", LO + ",trains=maybe", "--", "true"), 65, "neither yes nor no"),
    (("-c", LO + ",loss_ppm=2000000", "--", "true"), 65, "from 0 to 1000000"),
)


def expect(good, *what):
    if not good:
        failures.append(" ".join(map(str, what)))


def soft(*args, **kwargs):
    return subprocess.run([PEERPATH, "soft", *args], capture_output=True, text=True, timeout=60, **kwargs)


def wrong_things():
    for args, code, says in WRONG:
        done = soft(*args)
        expect(done.returncode == code and says in done.stderr and done.stderr.count("\n") == 1 and not done.stdout,
               args, done)
    done = soft("--", "true", env={**os.environ, "PEERPATH_SOFT": "x=1"})
    expect(done.returncode == 65 and done.stderr.startswith("peerpath soft: PEERPATH_SOFT: "), done)
    with tempfile.TemporaryDirectory() as work:
        script = pathlib.Path(work, "script")
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        done = soft("-c", LO, "--", str(script))
        expect(done.returncode == 127 and '"#!"' in done.stderr, done)
        conf = pathlib.Path(work, "devices")
        conf.write_text("[device a]\naddress = 127.0.0.1\nlos_ppm = 1\n")
        done = soft("-c", str(conf), "--", "true")
        expect(done.returncode == 65 and f"{conf}:3: " in done.stderr, done)


def written_examples():
    """Descriptions in the documents are taken, on addresses that this namespace has."""
    files = texts = 0
    for name in ("docs/soft.md", "man/peerpath-soft.1.scd"):
        text = (ROOT / name).read_text().replace("eth0", "lo").replace("10.0.0.1", "127.0.0.1").replace("eth1", "lo")
        for block in re.findall(r"^```\n((?:#.*\n)?\[all\].*?)^```", text, re.M | re.S):
            with tempfile.NamedTemporaryFile("w") as conf:
                conf.write(block)
                conf.flush()
                done = soft("-c", conf.name, "--", "true")
            expect(done.returncode == 0 and not done.stderr, name, block, done)
            files += 1
        for words in re.findall(r"'(name=[^' ]*)'", text):
            done = soft("-c", words, "--", "true")
            expect(done.returncode == 0 and not done.stderr, name, words, done)
            texts += 1
    expect(files == 2 and texts >= 2, "examples found:", files, texts)


def commands_own():
    """Exit status, output, signals are the command's, and nothing is added."""
    done = soft("-c", LO, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    expect((done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n"), done)
    with subprocess.Popen([PEERPATH, "soft", "-c", LO, "--", "sh", "-c", "echo on; exec sleep 60"],
                          stdout=subprocess.PIPE) as job:
        job.stdout.readline()
        job.send_signal(signal.SIGINT)
        expect(job.wait(20) == -signal.SIGINT, "SIGINT", job.returncode)


def keys(value):
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from keys(member)
    elif isinstance(value, list):
        for member in value:
            yield from keys(member)


def shown():
    """A process with a long name on a device of the longest one, in both forms."""
    if not shutil.which("ibv_rc_pingpong"):
        return print("not tried: show (no ibv_rc_pingpong)")
    if os.environ.get("PEERPATH_SANITIZED"):
        return print("not tried: show (a program of the system cannot load a sanitizer's library)")
    name = "n" * 47
    with subprocess.Popen([PEERPATH, "soft", "-c", f"name={name},address=127.0.0.1,address=::1", "--",
                           "ibv_rc_pingpong", "-g", "0", "-d", name], stdout=subprocess.DEVNULL) as job:
        try:
            look(job)
        finally:
            job.kill()


def look(job):
    """The page, the document, what another user sees, a full disk."""
    waits = re.compile(r"0x[0-9a-f]{6} +RC +INIT +- +- +0 +500 +-$", re.M)
    for _ in range(100):
        done = soft("show")
        if waits.search(done.stdout):
            break
        time.sleep(0.1)
    expect(done.returncode == 0 and str(job.pid) in done.stdout and "0x" in done.stdout, done)
    expect(waits.search(done.stdout), "not connected yet:", done.stdout)
    for line in done.stdout.splitlines():
        expect(len(line) <= 80, f"{len(line)} columns: {line}")
    document = json.loads(soft("show", "--json").stdout)
    expect([p["pid"] for p in document["processes"]] == [job.pid], document)
    if os.getuid() == 0 and shutil.which("setpriv") and not in_user_namespace():
        others(document["processes"][0]["slot"])
    for key in set(keys(document["processes"])) | {"silent", "reason"}:
        expect(f"_{key}_" in PAGE.replace("\\", ""), f"the manual page does not tell of {key}")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PEERPATH, "soft", "show"], stdout=full, stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 70 and done.stderr.count("\n") == 1, done)


def others(slot):
    """To another user they are there, and say nothing."""
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if subprocess.run([*as_nobody, "test", "-x", PEERPATH], check=False).returncode:
        return print("not tried: another user (cannot run this program)")
    done = subprocess.run([*as_nobody, PEERPATH, "soft", "show", "--json"], capture_output=True, text=True)
    document = json.loads(done.stdout)
    expect(document["processes"] == [] and document["silent"] == [{"slot": slot, "reason": "it is another user's"}],
           document)
    done = subprocess.run([*as_nobody, PEERPATH, "soft", "show"], capture_output=True, text=True)
    expect("1 process of this network namespace uses" in done.stdout and "none tells" in done.stdout, done)


def warned():
    """Said before the program runs, which runs all the same. The kernel's own tables are the judge."""
    done = soft("-c", LO, "--", "true")
    expect(done.returncode == 0 and not done.stderr, done)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_address:
        any_address.bind(("0.0.0.0", 4791))
        done = soft("-c", LO, "--", "true")
        expect(done.returncode == 0 and "port 4791 of 127.0.0.1 belongs to another" in done.stderr, done)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_address:
        any_address.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        any_address.bind(("::", 4791))
        done = soft("-c", LO, "--", "true")
        expect(done.returncode == 0 and not done.stderr, done)
        done = soft("-c", "name=six,address=::1", "--", "true")
        expect("port 4791 of ::1 belongs to another" in done.stderr, done)
    linked()
    if os.getuid() or in_user_namespace():
        return print("not tried: a setuid program (not root)")
    with tempfile.TemporaryDirectory() as work:
        copy = shutil.copy(shutil.which("true"), work)
        os.chown(copy, NOBODY, NOBODY)
        os.chmod(copy, 0o4755)
        done = soft("-c", LO, "--", copy)
        expect(done.returncode == 0 and "gains privileges" in done.stderr and done.stderr.count("\n") == 1, done)


def linked():
    """The loader itself is the judge of what it loads: by LD_TRACE_LOADED_OBJECTS."""
    compiler = shutil.which("cc")
    if not compiler:
        return print("not tried: ways of linking (no compiler)")
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "p.c")
        source.write_text("int verbs(void);\nint main(void) { return verbs(); }\n")
        library = pathlib.Path(work, "libibverbs.so.1")
        pathlib.Path(work, "v.c").write_text("int verbs(void) { return 0; }\n")
        subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libibverbs.so.1", "-o", library,
                        pathlib.Path(work, "v.c")], check=True)
        for tags, path in (("disable", work), ("disable", "$ORIGIN"), ("enable", work), ("disable", "/nowhere")):
            program = pathlib.Path(work, "p")
            subprocess.run([compiler, "-o", program, source, library, f"-Wl,--{tags}-new-dtags,-rpath,{path}"],
                           check=True)
            done = soft("-c", LO, "--", "env", "LD_TRACE_LOADED_OBJECTS=1", str(program))
            loads = re.search(r"libibverbs\.so\.1 => (\S+)", done.stdout)
            blind = bool(loads) and loads[1].startswith(work)
            said = soft("-c", LO, "--", str(program)).stderr
            expect(blind == (tags == "disable" and path != "/nowhere") and blind == ("DT_RPATH" in said), tags, path,
                   done, said)
        source.write_text("int main(void) { return 0; }\n")
        if subprocess.run([compiler, "-static", "-o", program, source], check=False, capture_output=True).returncode:
            return print("not tried: a static program (no static libc)")
        done = soft("-c", LO, "--", str(program))
        expect(done.returncode == 0 and "linked statically" in done.stderr, done)


def in_user_namespace():
    return not re.match(r"\s*0\s+0\s+4294967295", pathlib.Path("/proc/self/uid_map").read_text())


def main():
    if "PEERPATH_WORDS_INSIDE" not in os.environ:
        os.environ["PEERPATH_WORDS_INSIDE"] = "1"
        how = "-n" if os.getuid() == 0 and not in_user_namespace() else "-rn"
        if subprocess.run(["unshare", how, "ip", "link", "set", "lo", "up"], check=False).returncode:
            print("no network namespace of its own can be made here")
            sys.exit(77)
        os.execvp("unshare", ["unshare", how, sys.executable, *sys.argv])
    os.environ.pop("PEERPATH_SOFT", None)
    down = soft("--", "true")
    expect(down.returncode == 0 and "there will be no device" in down.stderr, down)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for _ in range(50):  # ::1 is tentative for a moment
        if b"tentative" not in subprocess.run(["ip", "addr"], capture_output=True, check=True).stdout:
            break
        time.sleep(0.1)
    wrong_things()
    written_examples()
    commands_own()
    shown()
    warned()
    print("\n".join(failures) or "all is said")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
