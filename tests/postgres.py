"""
A private PostgreSQL server for one test run.

The process that starts the run makes a ``Home``: an empty folder and a *keeper*, a process that
waits for the end of its standard input. Whoever needs the server first starts it there, under a
file lock; with several test workers the others find it running. When the run ends, in whatever way
(also by Ctrl-C or ``kill -9``), the pipe to the keeper closes, and the keeper stops the server and
removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from filelock import FileLock
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Generator

#: Debian's and Homebrew's folders; what is on the path comes first.
PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
INITDB = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
#: Durability is off: the tests kill our processes, never the server or the machine.
SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{sockets}'
max_connections = 200
shared_buffers = '64MB'
fsync = off
synchronous_commit = off
full_page_writes = off
timezone = 'UTC'
"""


class NoPostgres(Exception):
    """There are no server programs, or the server does not start; the text says what to do."""


def programs() -> Path:
    """The folder of ``initdb`` and ``pg_ctl``, of the newest version that is installed."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = [path for place in PLACES for path in Path("/").glob(place[1:])]
    usable = [path for path in folders if (path / "initdb").exists()]
    if not usable:
        raise NoPostgres(
            "the tests need the programs of a PostgreSQL server (initdb, pg_ctl): "
            "install the package 'postgresql', or leave these tests out with -m 'not postgres'"
        )
    return max(usable, key=_version)


def _version(folder: Path) -> int:
    digits = "".join(c for c in folder.parent.name if c.isdigit())
    return int(digits or "0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """The account that the server runs as: PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    @classmethod
    def choose(cls) -> Account | None:
        """``None`` where we are not root: the server then runs as ourselves."""
        if os.geteuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
        raise NoPostgres("PostgreSQL refuses to run as root, and there is no other account for it")


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """The folder of one run; the server in it starts when first asked for."""

    folder: Path

    def url(self) -> str:
        """The server's URL without a database, ``postgresql://postgres@127.0.0.1:PORT``."""
        address = self.folder / "url"
        with FileLock(self.folder / "lock"):
            if not address.exists():
                address.write_text(self._start())
            return address.read_text()

    def _start(self) -> str:
        # Files left by another worker's failed start would hide the reason.
        shutil.rmtree(self.data, ignore_errors=True)
        self.call("initdb", *INITDB, "--pgdata", str(self.data))
        settings = self.data / "postgresql.conf"
        defaults = settings.read_text()
        for attempts_left in (2, 1, 0):
            # Another process may take the port between our look and the server's: look again.
            port = free_port()
            settings.write_text(defaults + SETTINGS.format(port=port, sockets=self.folder))
            try:
                self.control("start", "--log", str(self.folder / "server.log"))
            except NoPostgres:
                if not attempts_left:
                    raise
            else:
                break
        return f"postgresql://postgres@127.0.0.1:{port}"

    def stop(self) -> None:
        """Stop the server, if it was started, and remove the folder."""
        if (self.data / "postmaster.pid").exists():
            with contextlib.suppress(NoPostgres):
                self.control("stop", "--mode", "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> Path:
        """The server's own folder."""
        return self.folder / "data"

    def control(self, action: str, *args: str) -> None:
        """Have ``pg_ctl`` do something with the server, and wait for it."""
        self.call("pg_ctl", action, "--wait", "--pgdata", str(self.data), *args)

    def call(self, program: str, *args: str) -> None:
        """
        Run one of the server's programs.

        :raises NoPostgres: if it fails; with what it printed
        """
        account = Account.choose()
        output = self.folder / f"{program}.out"
        with output.open("wb") as file:
            done = subprocess.run(
                [programs() / program, *args],
                cwd=self.folder,
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                # A file: the server would hold a pipe of ours open for as long as it lives.
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                check=False,
            )
        if done.returncode != 0:
            logs = [log for log in (output, self.folder / "server.log") if log.exists()]
            texts = [log.read_text(errors="replace") for log in logs]
            raise NoPostgres(f"{program} failed:\n" + "\n".join(texts))


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def home() -> Generator[Home]:
    """A home for the length of the block, with its keeper."""
    # A socket's path may have 107 bytes, and the platform's own temporary folder can be long.
    folder = Path(tempfile.mkdtemp(prefix="clew-pg-", dir="/tmp" if os.name == "posix" else None))
    if account := Account.choose():
        os.chown(folder, account.uid, account.gid)
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", str(folder)],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the run; the keeper outlives it
    )
    try:
        yield Home(folder=folder)
    finally:
        keeper.communicate()


@contextlib.contextmanager
def database(server: str) -> Generator[str]:
    """A fresh empty database on the server, dropped with all its connections at the end."""
    name = f"clew_{uuid.uuid4().hex[:12]}"
    admin = f"{server}/postgres"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield f"{server}/{name}"
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def keep(folder: Path) -> None:
    """Wait until the run is over, then clean up after it."""
    sys.stdin.buffer.read()
    Home(folder=folder).stop()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
