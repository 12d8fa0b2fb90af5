"""Checks that a server can hold a store, made once when it is opened."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg

from clew.errors import StoreUnusable
from clew.store.postgres.errors import Disposition, classify_error
from clew.store.postgres.tx import BEGIN_WRITE, TransactionFailed

if TYPE_CHECKING:
    from clew.store.postgres.dsn import Connection, Dsn
    from clew.store.postgres.worker_connection import WorkerConnection

_MIN_VERSION = 130000
_ENCODING = b"SELECT current_setting('server_encoding')"
_PID = b"SELECT pg_backend_pid()"
_POOLER_ROUNDS = 8

# The server reports these before SQLSTATEs are available, so the text decides. If it is not in
# English, the job is retried for a while and then reported as unavailable with that text.
_PERMANENT_ERRORS = {
    r"password authentication failed|no password supplied|authentication failed": (
        "check user and password in the URL of the store"
    ),
    r"failed to resolve host|could not translate host name": (
        "check the host in the URL of the store"
    ),
    r'role ".*" does not exist|not permitted to log in': "create the user (createuser)",
    r'database ".*" does not exist': "create the database (createdb -E UTF8 -T template0)",
    r"permission denied for database|no pg_hba.conf entry": (
        "allow this user to connect (GRANT CONNECT, pg_hba.conf)"
    ),
    r"unsupported startup parameter|certificate|SSL|invalid connection option|invalid .* value": (
        "check the options in the URL of the store"
    ),
}
_TEMPORARY_ERROR = re.compile(r"Temporary failure in name resolution|\[Errno -3\]")


def probe_server(link: WorkerConnection, address: Dsn) -> None:
    """
    Return if this server is suitable.

    :raises StoreUnusable: permanently unsuitable, or with this URL; the message says what
        to do
    :raises TransactionFailed: unavailable now
    """
    try:
        connection = link.connection
        inspect_server(connection, address)
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        advice = _find_advice(text)
        if advice is None and classify_error(error) is Disposition.FINAL:
            advice = "check the options in the URL of the store"
        if advice is None:
            raise TransactionFailed(error) from error
        raise StoreUnusable(f"PostgreSQL at {address.name}: {text}. To do: {advice}") from error


def _find_advice(text: str) -> str | None:
    if _TEMPORARY_ERROR.search(text):
        return None
    return next(
        (advice for words, advice in _PERMANENT_ERRORS.items() if re.search(words, text)), None
    )


def inspect_server(connection: Connection, address: Dsn) -> None:
    """Raise ``StoreUnusable`` if this server is permanently unsuitable."""
    version = connection.info.server_version
    if version < _MIN_VERSION:
        raise StoreUnusable(
            f"PostgreSQL at {address.name} is version {version // 10000}; Clew needs 13 or newer"
        )
    # First of all, since a pooler in transaction mode falsifies every other result.
    if _fetch_backend_pid(connection) != connection.info.backend_pid and _is_transaction_pooler(
        connection, address
    ):
        raise StoreUnusable(
            f"{address.name} is a connection pooler in transaction mode, which loses locks and"
            " notifications: use the address of the server itself, or session mode"
        )
    encoding = connection.execute(_ENCODING, prepare=False).fetchall()[0][0]
    if encoding != "UTF8":
        raise StoreUnusable(
            f"database {address.name} has the encoding {encoding}; Clew needs UTF8:"
            " create the database with createdb -E UTF8 -T template0"
        )
    # Fails on a stand-by: after a fail-over a retry may find the new primary.
    connection.execute(BEGIN_WRITE, prepare=False)
    connection.execute(b"ROLLBACK", prepare=False)


def _is_transaction_pooler(first: Connection, address: Dsn) -> bool:
    """
    Return true if a pooler shares one backend among several clients.

    Behind a pooler the backend's pid is not the one that the connection received at its
    start. In session mode each client keeps its backend, and no other client gets it.
    """
    with closing(address.connect()) as second:
        rounds = [
            (_fetch_backend_pid(first), _fetch_backend_pid(second)) for _ in range(_POOLER_ROUNDS)
        ]
    ours, theirs = {a for a, _ in rounds}, {b for _, b in rounds}
    return len(ours) > 1 or len(theirs) > 1 or ours == theirs


def _fetch_backend_pid(connection: Connection) -> int:
    return int(connection.execute(_PID, prepare=False).fetchall()[0][0])
