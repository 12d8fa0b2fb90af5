"""A PostgreSQL server with a synchronous stand-by, which may take its place."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg

from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Generator

#: The database of the store.
NAME = "clew"


class Pair:
    """
    Two servers; each commit waits until both have it.

    Clients know the addresses of both, and work with the one that takes writes.
    """

    def __init__(self, first: postgres.Home, second: postgres.Home) -> None:
        self._primary, self._standby = first, second
        self._ports = {
            first.folder: urlsplit(first.url()).port or 0,
            second.folder: postgres.free_port(),
        }
        with self._admin(first) as admin:
            admin.execute(f"CREATE DATABASE {NAME}")
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("ALTER SYSTEM SET wal_sender_timeout = '5s'")
        self._attach(second)
        with self._admin(first) as admin:
            admin.execute("SELECT pg_reload_conf()")

    @property
    def url(self) -> str:
        """The URL of the store, whoever is the primary."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        return f"postgresql://postgres@{hosts}/{NAME}?target_session_attrs=read-write"

    def restart(self) -> None:
        """``pg_ctl restart -m immediate`` of the primary: as a crash, and recovery."""
        self._primary.control("restart", "--mode", "immediate", "--log", self._log(self._primary))

    def promote(self) -> None:
        """
        The primary dies and the stand-by takes its place; then a new stand-by is made.

        Until that one is there nothing can be committed.
        """
        old, new = self._primary, self._standby
        old.control("stop", "--mode", "immediate")
        new.control("promote")
        self._primary, self._standby = new, old
        shutil.rmtree(old.data)
        self._attach(old)

    def _attach(self, home: postgres.Home) -> None:
        """Copy the primary, and follow it from there."""
        primary = self._ports[self._primary.folder]
        source = f"host=127.0.0.1 port={primary} user=postgres"
        copy = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
        home.call("pg_basebackup", "--pgdata", str(home.data), "--dbname", source, *copy)
        with (home.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"port = {self._ports[home.folder]}\n")
            settings.write(f"unix_socket_directories = '{home.folder}'\n")
        home.control("start", "--log", self._log(home))

    def _log(self, home: postgres.Home) -> str:
        return str(home.folder / "server.log")

    @contextmanager
    def _admin(self, home: postgres.Home) -> Generator[psycopg.Connection]:
        url = f"postgresql://postgres@127.0.0.1:{self._ports[home.folder]}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection


@contextmanager
def pair() -> Generator[Pair]:
    """A primary and its stand-by for the length of the block."""
    with ExitStack() as stack:
        yield Pair(stack.enter_context(postgres.home()), stack.enter_context(postgres.home()))
