#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own: Debian's programs, a temporary folder, a unix socket.

    postgres.py CMD...      runs CMD with PP_TEST_POSTGRESQL set to the address of a new server

As a module: with Server() as server: server.url, server.stop(), server.start(). Exit 77, with the
reason, where no server is installed or no user may run it.
"""
import glob
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import urllib.parse


class Absent(Exception):
    """Why there is no server."""


def programs() -> pathlib.Path:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: float(p.split("/")[4]))
    if not found:
        raise Absent("no PostgreSQL server is installed (Debian: postgresql)")
    return pathlib.Path(found[-1]).parent


def server_user() -> pwd.struct_passwd:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return pwd.getpwuid(os.geteuid())
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Absent("neither user postgres nor nobody is there to run a server")


class Server:
    def __init__(self, settings: str = "", where: str = "") -> None:
        self.bin = programs()
        self.user = server_user()
        self.settings = settings
        self.top = pathlib.Path(where or tempfile.mkdtemp(prefix="peerpath-pg."))
        self.data = self.top / "data"
        self.top.chmod(0o755)
        if not os.geteuid():
            os.chown(self.top, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "-D", self.data, "-U", "peerpath", "-A", "trust", "-N", "-E", "UTF8",
                 "--locale=C.UTF-8")
        host = urllib.parse.quote(str(self.top), safe="")
        self.url = f"postgresql://peerpath@/postgres?host={host}"

    def run(self, program: str, *args: object) -> None:
        extra = {} if os.geteuid() else {"user": self.user.pw_uid, "group": self.user.pw_gid,
                                         "extra_groups": []}
        done = subprocess.run([str(self.bin / program), *map(str, args)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.top,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, check=False, **extra)
        if done.returncode:
            raise Absent(f"{program}: {done.stdout.decode(errors='replace')[-500:]}")

    def start(self) -> None:
        options = f"-k {self.top} -c listen_addresses='' {self.settings}"
        self.run("pg_ctl", "-D", self.data, "-l", self.top / "log", "-w", "-t", "60",
                 "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop")

    def postmaster(self) -> int:
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def create(self, name: str) -> str:
        """A new, empty database; its address."""
        self.run("createdb", "-h", self.top, "-U", "peerpath", name)
        return self.url.replace("/postgres?", f"/{name}?")

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if (self.data / "postmaster.pid").exists():
                self.stop("immediate")
        finally:
            shutil.rmtree(self.top, ignore_errors=True)


def main() -> int:
    try:
        with Server() as server:
            env = dict(os.environ, PP_TEST_POSTGRESQL=server.url)
            return subprocess.run(sys.argv[1:], env=env, check=False).returncode
    except Absent as why:
        print(f"skipped: {why}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
