"""Logins of browsers in the store: only digests of cookies and codes are there."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.scope import LOCAL, Scope
from clew.core.text import sanitize_text
from clew.errors import NotFound
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions.runtime_state import read_restore_time

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: How long a login lasts after it was used last, and a code after it was made.
LOGIN_FOR: Final = timedelta(days=30)
CODE_FOR: Final = timedelta(minutes=5)
#: A use within this time of the last one that was stored is not stored.
_USE_INTERVAL: Final = timedelta(hours=1)
_MAX_LABEL: Final = 120


class BrowserLogin(Record):
    """A browser that has logged in."""

    id: str
    scope: Scope
    label: str
    created_at: int
    used_at: int
    expires_at: int


_COLUMNS: LiteralString = "id, scope, label, created_at, used_at, expires_at"
_LOGINS: Final = RecordQuery(
    BrowserLogin, f"SELECT {_COLUMNS} FROM dashboard_login", {"scope": Scope}
)


def make_secret() -> str:
    """Return a new cookie or code that nobody can guess."""
    return secrets.token_urlsafe(32)


def add_code(t: Tx, code: str, *, scope: Scope = LOCAL) -> int:
    """Store a code that lets one browser log in; return until when, in milliseconds."""
    expires_at = t.now + _millis(CODE_FOR)
    t.execute(
        "INSERT INTO dashboard_code (digest, scope, expires_at) VALUES ($1, $2, $3)",
        _digest(code),
        scope,
        expires_at,
    )
    return expires_at


def use_code(t: Tx, code: str, cookie: str, *, label: str) -> BrowserLogin | None:
    """Log in with a code, which is used up; ``None`` if it is unknown, used or expired."""
    digest = _digest(code)
    row = t.fetch_one("SELECT scope, expires_at FROM dashboard_code WHERE digest = $1", digest)
    # Of two browsers with the same code, the one that removes it logs in.
    is_mine = t.execute("DELETE FROM dashboard_code WHERE digest = $1", digest) == 1
    if row is None or not is_mine or row[1] <= t.now:
        return None
    if row[1] - _millis(CODE_FOR) <= read_restore_time(t):
        return None
    return add_login(t, cookie, scope=Scope(str(row[0])), label=label)


def add_login(t: Tx, cookie: str, *, label: str, scope: Scope = LOCAL) -> BrowserLogin:
    """Store a login under the digest of its cookie."""
    made = BrowserLogin(
        id=f"lgn_{secrets.token_hex(8)}",
        scope=scope,
        label=sanitize_text(label)[:_MAX_LABEL],
        created_at=t.now,
        used_at=t.now,
        expires_at=t.now + _millis(LOGIN_FOR),
    )
    t.execute(
        "INSERT INTO dashboard_login (id, digest, scope, label, created_at, used_at, expires_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        made.id,
        _digest(cookie),
        made.scope,
        made.label,
        made.created_at,
        made.used_at,
        made.expires_at,
    )
    return made


def find_login(t: Tx, cookie: str) -> BrowserLogin | None:
    """
    Return the login of a cookie; ``None`` if it is revoked, expired or none of ours.

    One from before a restore may have been revoked since the backup was taken.
    """
    found = _LOGINS.fetch_one(t, "WHERE digest = $1 AND expires_at > $2", _digest(cookie), t.now)
    return found if found and found.created_at > read_restore_time(t) else None


def is_use_due(login: BrowserLogin, now: int) -> bool:
    """Return whether the use of a login is to be stored."""
    return now - login.used_at > _millis(_USE_INTERVAL)


def store_use(t: Tx, login: str) -> None:
    """Store that a login was used, which extends it."""
    t.execute(
        "UPDATE dashboard_login SET used_at = $2, expires_at = $3 WHERE id = $1",
        login,
        t.now,
        t.now + _millis(LOGIN_FOR),
    )


def list_logins(t: Tx) -> list[BrowserLogin]:
    """Return the logins that have not expired, the one used last first."""
    sql = "WHERE expires_at > $1 AND created_at > $2 ORDER BY used_at DESC, id"
    return _LOGINS.fetch_all(t, sql, t.now, read_restore_time(t))


def revoke_login(t: Tx, login: str) -> BrowserLogin:
    """
    Remove a login, so that its cookie is worth nothing.

    :raises NotFound: if there is none
    """
    found = _LOGINS.fetch_one(t, "WHERE id = $1", login)
    if found is None:
        raise NotFound("login", login)
    t.execute("DELETE FROM dashboard_login WHERE id = $1", login)
    return found


def remove_expired(t: Tx) -> None:
    """Remove logins and codes that have expired, and logins from before a restore."""
    t.execute(
        "DELETE FROM dashboard_login WHERE expires_at <= $1 OR created_at <= $2",
        t.now,
        read_restore_time(t),
    )
    t.execute("DELETE FROM dashboard_code WHERE expires_at <= $1", t.now)


def _digest(secret: str) -> str:
    # No salt: what is digested has 256 random bits.
    return hashlib.sha256(secret.encode()).hexdigest()


def _millis(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)
