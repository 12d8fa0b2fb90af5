"""Address of the server, and how connections to it are made."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import AdaptersMap, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrDumper

from clew.errors import StoreUnusable
from clew.store.postgres.pipeline import PipelinedConnection

if TYPE_CHECKING:
    from psycopg.abc import Buffer

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

#: A vanished peer is noticed within about 20 s, by us and by the server.
_DEFAULTS: dict[str, str] = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "clew",
    "client_encoding": "utf8",
}
# One round trip in each new connection. A process that is paused in a transaction must not hold
# its locks for long: the server ends its connection before others give up waiting for them. An
# acknowledged commit is durable, whatever the server's default is.
_SETUP = b"""
SELECT set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('lock_timeout', '10s', false),
       set_config('tcp_keepalives_idle', '10', false),
       set_config('tcp_keepalives_interval', '3', false),
       set_config('tcp_keepalives_count', '3', false),
       set_config('tcp_user_timeout', '15000', false),
       set_config('synchronous_commit',
                  CASE s WHEN 'off' THEN 'on' ELSE s END, false)
  FROM current_setting('synchronous_commit') AS s
"""
# An administrator may end idle sessions; ours hold a lock or listen.
_DISABLE_IDLE_TIMEOUT = b"SELECT set_config('idle_session_timeout', '0', false)"
_HAS_IDLE_SESSION_TIMEOUT = 140000

_open_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _close_sockets_in_child() -> None:
    # A forked child that outlives us would keep our owner's lock: its copy holds the socket open.
    for connection in _open_connections:
        if not connection.closed:
            os.close(connection.fileno())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_sockets_in_child)


class _BoolAsIntDumper(Int8BinaryDumper):
    """Dumper of booleans as 0 or 1, as on SQLite."""

    def dump(self, obj: int) -> Buffer | None:
        return super().dump(int(obj))


class _NumericLoader(Loader):
    """Loader that makes ``sum`` of integers an integer, as on SQLite."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def _build_adapters() -> AdaptersMap:
    # One type per Python type, whatever the value: a statement is prepared once, not once per size.
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_dumper(bool, _BoolAsIntDumper)
    adapters.register_dumper(str, StrDumper)
    adapters.register_loader("numeric", _NumericLoader)
    return adapters


class _AdaptContext:
    """Adapters for a new connection."""

    adapters = _build_adapters()
    connection = None


class Dsn:
    """Server and database, with the credentials."""

    def __init__(self, url: str) -> None:
        """Parse the URL; ``StoreUnusable`` never repeats it, as it may contain a password."""
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:
            raise _invalid_url_error() from None
        values = {name: str(value) for name, value in given.items() if value is not None}
        # An unescaped @ or / in the password shifts the rest of it into the other parts.
        places = [values.get(name, "") for name in ("host", "port", "dbname")]
        ports = [port for port in places[1].split(",") if port]
        if any("@" in place for place in places) or not all(port.isdigit() for port in ports):
            raise _invalid_url_error()
        self._values = values
        self._conninfo = make_conninfo(**(_DEFAULTS | values))

    def __repr__(self) -> str:
        return f"<Address {self.name}>"

    @property
    def name(self) -> str:
        """Return host, port and database, for error messages."""
        value = self._values.get
        return f"{value('host', 'localhost')}:{value('port', '5432')}/{value('dbname', '')}"

    def connect(self, *, pause: float = 5.0) -> Connection:
        """
        Open a connection in autocommit mode; raises the driver's errors.

        :param pause: seconds after which the server ends an idle transaction
        """
        connection = PipelinedConnection.connect(
            self._conninfo,
            autocommit=True,
            prepare_threshold=1,
            context=_AdaptContext(),
            cursor_factory=psycopg.RawCursor,
        )
        try:
            connection.prepared_max = 500
            connection.execute(_SETUP, (f"{pause:g}s",), prepare=False)
            if connection.info.server_version >= _HAS_IDLE_SESSION_TIMEOUT:
                connection.execute(_DISABLE_IDLE_TIMEOUT, prepare=False)
        except BaseException:
            connection.close()
            raise
        _open_connections.add(connection)
        return connection


def _invalid_url_error() -> StoreUnusable:
    return StoreUnusable(
        "the address of the store is not a PostgreSQL URL:"
        " it must look like postgresql://user:password@host:5432/database,"
        " special characters in the password must be written as %XX,"
        " and only options of libpq may follow the question mark"
    )
