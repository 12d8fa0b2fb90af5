"""Browsers that want notices, in the store."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final, LiteralString
from urllib.parse import urlsplit

from clew.core.scope import Scope
from clew.errors import UsageError
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from collections.abc import Collection

    from clew.store.contract import Tx

#: Hosts of the push services of Chrome, Edge, Firefox and Safari.
SERVICES: Final = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "notify.windows.com",
    "push.apple.com",
)
#: Subscriptions of one scope: the oldest goes.
_MAX_SUBSCRIPTIONS: Final = 50
#: How long it is known what was told.
_TOLD_FOR: Final = timedelta(days=7)


class PushSubscription(Record):
    """A browser that wants notices."""

    id: str
    login: str | None
    scope: Scope
    endpoint: str
    p256dh: str
    auth: str


_COLUMNS: LiteralString = "id, login, scope, endpoint, p256dh, auth"
_SUBSCRIPTIONS: Final = RecordQuery(
    PushSubscription, f"SELECT {_COLUMNS} FROM dashboard_push", {"scope": Scope}
)


def check_endpoint(endpoint: str, also: Collection[str]) -> None:
    """
    Check that an address is one of a push service: the gateway sends requests there.

    :raises UsageError: naming the host
    """
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    is_known = parts.scheme == "https" and any(
        host == one or host.endswith(f".{one}") for one in SERVICES
    )
    if not is_known and f"{parts.scheme}://{parts.netloc}".lower() not in also:
        raise UsageError(
            f"{host or endpoint!r} is no push service that is known: list its origin in "
            "dashboard.push_services"
        )


def add_subscription(
    t: Tx, endpoint: str, keys: tuple[str, str], *, scope: Scope, login: str | None
) -> str:
    """Store a browser that wants notices, anew if its address is known; return its id."""
    t.execute("DELETE FROM dashboard_push WHERE endpoint = $1", endpoint)
    made = f"psh_{secrets.token_hex(8)}"
    t.execute(
        "INSERT INTO dashboard_push (id, login, scope, endpoint, p256dh, auth, created_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        made, login, scope, endpoint, *keys, t.now,
    )  # fmt: skip
    t.execute(
        """
        DELETE FROM dashboard_push WHERE scope = $1 AND id NOT IN (
            SELECT id FROM dashboard_push WHERE scope = $1 ORDER BY created_at DESC, id LIMIT $2
        )
        """,
        scope,
        _MAX_SUBSCRIPTIONS,
    )
    return made


def list_subscriptions(t: Tx, scope: Scope | None = None) -> list[PushSubscription]:
    """Return the browsers that want notices, of one scope or all, whose login holds."""
    return _SUBSCRIPTIONS.fetch_all(
        t,
        """
        WHERE (CAST($1 AS TEXT) IS NULL OR scope = $1) AND (login IS NULL OR EXISTS (
            SELECT 1 FROM dashboard_login l WHERE l.id = login AND l.expires_at > $2
        )) ORDER BY created_at, id
        """,
        scope,
        t.now,
    )


def remove_subscription(t: Tx, endpoint: str, *, scope: Scope) -> bool:
    """Remove a browser by its address; return whether it was there."""
    gone = "DELETE FROM dashboard_push WHERE endpoint = $1 AND scope = $2"
    return t.execute(gone, endpoint, scope) > 0


def remove_dead(t: Tx, ids: Collection[str]) -> None:
    """Remove browsers whose push service does not know them any more."""
    for id in ids:
        t.execute("DELETE FROM dashboard_push WHERE id = $1", id)


def claim(t: Tx, subject: str) -> bool:
    """Return whether something is told now, for the first time."""
    made = """
        INSERT INTO dashboard_push_told (subject, told_at) VALUES ($1, $2)
        ON CONFLICT (subject) DO NOTHING
    """
    return t.execute(made, subject, t.now) == 1


def remove_old(t: Tx) -> None:
    """Remove browsers whose login is gone, and what was told long ago."""
    t.execute(
        "DELETE FROM dashboard_push WHERE login IS NOT NULL"
        " AND login NOT IN (SELECT id FROM dashboard_login)"
    )
    before = t.now - _TOLD_FOR // timedelta(milliseconds=1)
    t.execute("DELETE FROM dashboard_push_told WHERE told_at < $1", before)


def get_private_key(t: Tx) -> str | None:
    """Return the key of this gateway, if it has one."""
    row = t.fetch_one("SELECT private_key FROM dashboard_push_key WHERE id = 1")
    return None if row is None else str(row[0])


def store_private_key(t: Tx, made: str) -> str:
    """Store a key, unless another gateway was first; return the one that holds."""
    t.execute(
        "INSERT INTO dashboard_push_key (id, private_key) VALUES (1, $1)"
        " ON CONFLICT (id) DO NOTHING",
        made,
    )
    return get_private_key(t) or made
