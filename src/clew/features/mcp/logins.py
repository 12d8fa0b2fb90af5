"""Logins at servers, in the store: tokens are sealed with a key that lies in the home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.record import Record, replace
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

#: Milliseconds for which one gateway may renew tokens before another one tries.
_RENEWAL_LIMIT: Final = 60_000
#: The file with the key.
KEY_FILE: Final = "mcp.key"


class Login(Record):
    """A login at a server; tokens and client are JSON, sealed in the store."""

    server: str
    url: str
    client: str | None = None
    tokens: str | None = None
    renew_at: int | None = None
    metadata: str | None = None
    authorization_server: str | None = None
    version: int = 0


_LOGINS: Final = RecordQuery(
    Login,
    "SELECT server, url, client, tokens, renew_at, metadata, authorization_server, version"
    " FROM mcp_login",
    {},
)


class LoginNeeded(UsageError):
    """Server at which a person has to log in."""

    def __init__(self, server: str, version: int) -> None:
        super().__init__(f"clew mcp login {server}, or /mcp login {server}")
        #: Of the login that does not do.
        self.version = version


class Seal:
    """Seals texts for the store, which backups and other machines have as well."""

    def __init__(self, home: Path) -> None:
        self._path = home / KEY_FILE

    def close(self, text: str | None) -> str | None:
        """Return a text that only this home can read."""
        from cryptography.fernet import Fernet  # noqa: PLC0415  (only where there are logins)

        return None if text is None else Fernet(self._read_key()).encrypt(text.encode()).decode()

    def open(self, sealed: str | None) -> str | None:
        """Return the text; ``None`` if it was sealed with a key that is not here."""
        from cryptography.fernet import Fernet, InvalidToken  # noqa: PLC0415  (as above)

        if sealed is None:
            return None
        try:
            return Fernet(self._read_key()).decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def _read_key(self) -> bytes:
        from cryptography.fernet import Fernet  # noqa: PLC0415  (as above)

        if not self._path.exists():
            made = self._path.with_suffix(f".{os.getpid()}")
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(Fernet.generate_key())
            try:
                # Of two processes one makes the key.
                os.link(made, self._path)
            except FileExistsError:
                pass
            finally:
                made.unlink()
        return self._path.read_bytes()


def find_login(t: Tx, server: str, url: str, seal: Seal) -> Login:
    """Return the login at a server; an empty one if there is none for this address."""
    found = _LOGINS.fetch_one(t, "WHERE server = $1 AND url = $2", server, url)
    if found is None:
        return Login(server=server, url=url)
    return replace(found, client=seal.open(found.client), tokens=seal.open(found.tokens))


def store_login(t: Tx, login: Login, seal: Seal) -> int:
    """Store a login, and return its version; whoever renews its tokens is done."""
    version: int = t.fetch_value(
        """
        INSERT INTO mcp_login
            (server, url, client, tokens, renew_at, metadata, authorization_server, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 1)
        ON CONFLICT (server) DO UPDATE SET url = excluded.url, client = excluded.client,
            tokens = excluded.tokens, renew_at = excluded.renew_at, metadata = excluded.metadata,
            authorization_server = excluded.authorization_server,
            version = mcp_login.version + 1, renewed_by = NULL, renewed_until = 0
        RETURNING version
        """,
        login.server,
        login.url,
        seal.close(login.client),
        seal.close(login.tokens),
        login.renew_at,
        login.metadata,
        login.authorization_server,
    )
    return version


def claim_renewal(t: Tx, server: str, version: int, by: str) -> bool:
    """Return whether ``by`` is the one to renew the tokens of this version."""
    return bool(
        t.execute(
            """
            UPDATE mcp_login SET renewed_by = $3, renewed_until = $4
            WHERE server = $1 AND version = $2
                AND (renewed_by IS NULL OR renewed_by = $3 OR renewed_until < $5)
            """,
            server,
            version,
            by,
            t.now + _RENEWAL_LIMIT,
            t.now,
        )
    )


def release_renewal(t: Tx, server: str, by: str) -> None:
    """Let others renew the tokens: it has not succeeded."""
    t.execute(
        "UPDATE mcp_login SET renewed_by = NULL, renewed_until = 0"
        " WHERE server = $1 AND renewed_by = $2",
        server,
        by,
    )


def forget_tokens(t: Tx, server: str, version: int) -> bool:
    """Forget tokens that are refused, unless there are newer ones."""
    return bool(
        t.execute(
            "UPDATE mcp_login SET tokens = NULL, renew_at = NULL, version = version + 1,"
            " renewed_by = NULL, renewed_until = 0 WHERE server = $1 AND version = $2",
            server,
            version,
        )
    )


def remove_login(t: Tx, server: str) -> bool:
    """Remove a login; ``False`` if there is none."""
    return bool(t.execute("DELETE FROM mcp_login WHERE server = $1", server))


def has_other_tokens(t: Tx, server: str, url: str, version: int) -> bool:
    """Return whether somebody has logged in at a server since a version of its login."""
    return t.exists(
        "SELECT 1 FROM mcp_login"
        " WHERE server = $1 AND url = $2 AND version <> $3 AND tokens IS NOT NULL",
        server,
        url,
        version,
    )
