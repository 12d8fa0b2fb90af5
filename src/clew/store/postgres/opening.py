"""Whether a server can hold a store: asked once, when it is opened."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import psycopg

from clew.errors import StoreUnusable
from clew.store.postgres.errors import Fate, fate
from clew.store.postgres.tx import WRITE, Voided

if TYPE_CHECKING:
    from clew.store.postgres.address import Address, Connection
    from clew.store.postgres.link import Link

_OLDEST = 130000
_ENCODING = b"SELECT current_setting('server_encoding')"
_PID = b"SELECT pg_backend_pid()"
_ROUNDS = 8

# The server says these before SQLSTATEs reach us, so the text decides. In another language than
# English it is tried again for a while, and then reported as unavailable with the server's text.
_HOPELESS = {
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
_PASSING = re.compile(r"Temporary failure in name resolution|\[Errno -3\]")


def probe(link: Link, address: Address) -> None:
    """
    Return if this server will do.

    :raises StoreUnusable: it never will, or not with this URL; says what to do
    :raises Voided: not now
    """
    try:
        connection = link.connection
        inspect(connection, address)
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        advice = _advice(text)
        if advice is None and fate(error) is Fate.FINAL:
            advice = "check the options in the URL of the store"
        if advice is None:
            raise Voided(error) from error
        raise StoreUnusable(f"PostgreSQL at {address.name}: {text}. To do: {advice}") from error


def _advice(text: str) -> str | None:
    if _PASSING.search(text):
        return None
    return next((advice for words, advice in _HOPELESS.items() if re.search(words, text)), None)


def inspect(connection: Connection, address: Address) -> None:
    """Raise ``StoreUnusable`` if this server will never do."""
    version = connection.info.server_version
    if version < _OLDEST:
        raise StoreUnusable(
            f"PostgreSQL at {address.name} is version {version // 10000}; Clew needs 13 or newer"
        )
    # First of all, since a pooler in transaction mode falsifies every other answer.
    if _backend(connection) != connection.info.backend_pid and _shared(connection, address):
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
    # Fails on a stand-by: after a fail-over the next try may find the new primary.
    connection.execute(WRITE, prepare=False)
    connection.execute(b"ROLLBACK", prepare=False)


def _shared(first: Connection, address: Address) -> bool:
    """
    Whether a pooler hands one backend to several clients.

    A pooler shows in the number of the backend, which is not the one that the connection was told
    at its start. In session mode each client keeps its backend and no other client gets it.
    """
    with closing(address.connect()) as second:
        rounds = [(_backend(first), _backend(second)) for _ in range(_ROUNDS)]
    ours, theirs = {a for a, _ in rounds}, {b for _, b in rounds}
    return len(ours) > 1 or len(theirs) > 1 or ours == theirs


def _backend(connection: Connection) -> int:
    return int(connection.execute(_PID, prepare=False).fetchall()[0][0])
