"""Pairings: users who asked for access, were approved, or were blocked."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clew.clock import from_millis
from clew.core.access import (
    CODE_LIFETIME,
    MAX_ATTEMPTS,
    MAX_PENDING_CODES,
    UNSHOWN_CODE_LIFETIME,
    AccessStatus,
    ChannelAccount,
    Person,
)
from clew.core.channel_events import DM
from clew.core.inbox import InboxOutcome
from clew.core.route import Route
from clew.core.system_note import SystemNote
from clew.core.turn import StopRequest
from clew.store.records import RecordQuery
from clew.store.transactions import grants
from clew.store.transactions.approvals import deny_open_approvals
from clew.store.transactions.turn_queries import list_unfinished_turns, request_stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId, InboxId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx

    #: Tells whether a user no longer has access on a route.
    IsExcluded = Callable[[str, Route], bool]


def _to_person(*, channel: str, account: str, **rest: Any) -> Person:
    return Person(account=ChannelAccount(channel=channel, account=account), **rest)


_PERSON = RecordQuery(
    _to_person,
    """
    SELECT channel, account, user_id AS user, name, route, state AS standing, changed_at,
           expires_at AS code_until, approved_by
    FROM pairing
    """,
    {"standing": AccessStatus, "changed_at": from_millis, "code_until": from_millis},
)


def hash_code(code: str) -> bytes:
    """Return the stored hash of a code, ignoring case and separators."""
    typed = "".join(filter(str.isalnum, code)).upper()
    return hashlib.sha256(f"pairing:{typed}".encode()).digest()


def get_access_status(t: Tx, account: ChannelAccount, user: str) -> AccessStatus | None:
    """Return the stored access status of a user, without a lock."""
    state = t.fetch_value(
        "SELECT state FROM pairing WHERE channel = $1 AND account = $2 AND user_id = $3",
        account.channel,
        account.account,
        user,
    )
    return None if state is None else AccessStatus(state)


def lock_access_status(t: Tx, account: ChannelAccount, user: str) -> AccessStatus | None:
    """Return the stored access status of a user, locked until the commit."""
    state = t.fetch_value(
        """
        SELECT state FROM pairing WHERE channel = $1 AND account = $2 AND user_id = $3 @SHARE
        """,
        account.channel,
        account.account,
        user,
    )
    return None if state is None else AccessStatus(state)


def list_people(t: Tx) -> list[Person]:
    """Return all stored users, ordered by channel, account, status and last change."""
    return _PERSON.fetch_all(t, "ORDER BY channel, account, state, changed_at, user_id")


def issue_code(
    t: Tx, account: ChannelAccount, user: str, *, name: str, route: RouteKey, code: bytes
) -> bool:
    """
    Store a code for an unknown user; ``False`` if no code is to be shown.

    That is the case while an earlier code is valid, or too many others are open.
    """
    if _has_open_code(t, account, user) or _count_open_codes(t, account) >= MAX_PENDING_CODES:
        return False
    t.execute(
        """
        INSERT INTO pairing (channel, account, user_id, name, route, state, code_hash, tries,
                             expires_at, changed_at)
        VALUES ($1, $2, $3, $4, $5, 'asked', $6, 0, $7, $8)
        ON CONFLICT (channel, account, user_id) DO UPDATE
        SET name = excluded.name, route = excluded.route, code_hash = excluded.code_hash,
            tries = 0, expires_at = excluded.expires_at
        """,
        account.channel,
        account.account,
        user,
        name,
        route,
        code,
        t.now + UNSHOWN_CODE_LIFETIME // timedelta(milliseconds=1),
        t.now,
    )
    return True


def mark_code_shown(t: Tx, account: ChannelAccount, user: str) -> None:
    """Record that the open code was shown: it is valid for its full time from now."""
    _set_code_expiry(t, account, user, t.now + CODE_LIFETIME // timedelta(milliseconds=1))


def withdraw_code(t: Tx, account: ChannelAccount, user: str) -> None:
    """Expire an open code that was not shown, so that it blocks no other code."""
    _set_code_expiry(t, account, user, t.now)


def _set_code_expiry(t: Tx, account: ChannelAccount, user: str, until: int) -> None:
    t.execute(
        """
        UPDATE pairing SET expires_at = $4
        WHERE channel = $1 AND account = $2 AND user_id = $3 AND code_hash IS NOT NULL
        """,
        account.channel,
        account.account,
        user,
        until,
    )


def _has_open_code(t: Tx, account: ChannelAccount, user: str) -> bool:
    return t.exists(
        """
        SELECT 1 FROM pairing
        WHERE channel = $1 AND account = $2 AND user_id = $3 AND expires_at > $4
        """,
        account.channel,
        account.account,
        user,
        t.now,
    )


def _count_open_codes(t: Tx, account: ChannelAccount) -> int:
    return t.fetch_value(
        "SELECT count(*) FROM pairing WHERE channel = $1 AND account = $2 AND expires_at > $3",
        account.channel,
        account.account,
        t.now,
    )


def approve_code(t: Tx, code: bytes, *, by: str) -> Person | None:
    """
    Give access to the user with this code, once; ``None`` if the code is not valid now.

    A wrong code counts against every open code. After too many of them no open code is
    valid, not even the right one, and each user has to request a new one when theirs
    expires.
    """
    row = t.fetch_one(
        """
        UPDATE pairing SET state = 'paired', code_hash = NULL, expires_at = NULL, tries = 0,
                           changed_at = $2, approved_by = $3
        WHERE code_hash = $1 AND expires_at > $2 AND tries < $4 AND state <> 'blocked'
        RETURNING channel, account, user_id
        """,
        code,
        t.now,
        by,
        MAX_ATTEMPTS,
    )
    if row is None:
        t.execute(
            "UPDATE pairing SET tries = tries + 1 WHERE code_hash IS NOT NULL AND expires_at > $1",
            t.now,
        )
        return None
    return _PERSON.fetch_one(t, "WHERE channel = $1 AND account = $2 AND user_id = $3", *row)


def grant_access(t: Tx, account: ChannelAccount, user: str, *, name: str, by: str) -> bool:
    """Give access to a user without a code, unless they had and lost it; return whether it did."""
    return bool(
        t.execute(
            """
            INSERT INTO pairing (channel, account, user_id, name, state, changed_at, approved_by)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (channel, account, user_id) DO UPDATE
            SET state = excluded.state, code_hash = NULL, expires_at = NULL, tries = 0,
                changed_at = excluded.changed_at, approved_by = excluded.approved_by
            WHERE pairing.state = 'asked'
            """,
            account.channel,
            account.account,
            user,
            name,
            AccessStatus.PAIRED.value,
            t.now,
            by,
        )
    )


def revoke_access(
    t: Tx, account: ChannelAccount, user: str, *, to: AccessStatus, by: str
) -> list[ConversationId]:
    """
    Revoke a user's access at once, and return the conversations where work of theirs ended.

    Their open inputs are cancelled, turns that answer only them are stopped, approvals they
    were asked for are denied, what they have granted is revoked, and their unsent deliveries
    are dropped.
    """
    t.execute(
        """
        INSERT INTO pairing (channel, account, user_id, state, changed_at, approved_by)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (channel, account, user_id) DO UPDATE
        SET state = excluded.state, code_hash = NULL, expires_at = NULL, tries = 0,
            changed_at = excluded.changed_at, approved_by = excluded.approved_by
        """,
        account.channel,
        account.account,
        user,
        to.value,
        t.now,
        by,
    )
    grants.revoke_grants_of(t, f"{account.channel}:{user}")
    return cancel_excluded_work(t, account, lambda one, _: one == user)


def cancel_excluded_work(t: Tx, account: ChannelAccount, out: IsExcluded) -> list[ConversationId]:
    """Cancel the open work of excluded users, and return the affected conversations."""
    touched: dict[ConversationId, None] = {}
    found = t.fetch_all(
        "SELECT id, conversation_id, route, payload FROM inbox WHERE outcome IS NULL"
    )
    for inbox_id, conversation, route, payload in found:
        if _is_from_excluded(route, payload, account, out):
            _cancel_input(t, inbox_id)
            touched[conversation] = None
    for turn in list_unfinished_turns(t):
        inputs = t.fetch_all("SELECT route, payload FROM inbox WHERE turn_id = $1", turn.id)
        if inputs and all(
            _is_from_excluded(route, payload, account, out) for route, payload in inputs
        ):
            deny_open_approvals(t, turn.id, note=SystemNote.PERSON_EXCLUDED)
            # Not as a user's stop, which would send the partial answer to the excluded user.
            request_stop(t, turn.id, StopRequest.CANCEL)
            touched[turn.conversation_id] = None
    _drop_deliveries(t, account, out)
    for conversation in touched:
        t.notify(conversation)
    return list(touched)


def find_sender(payload: str, account: ChannelAccount) -> str | None:
    """Return the sender of an input that came over this account, or ``None``."""
    told = json.loads(payload)
    if told.get("account") != [account.channel, account.account]:
        return None
    sender: str = told["sender"]["id"]
    return sender


def _is_from_excluded(
    route: RouteKey | None, payload: str, account: ChannelAccount, out: IsExcluded
) -> bool:
    sender = find_sender(payload, account)
    return sender is not None and route is not None and out(sender, Route.parse(route))


def _cancel_input(t: Tx, inbox_id: InboxId) -> None:
    t.execute(
        """
        UPDATE inbox SET outcome = $2, note = $3, resolved_at = $4
        WHERE id = $1 AND outcome IS NULL
        """,
        inbox_id,
        InboxOutcome.CANCELLED.value,
        SystemNote.PERSON_EXCLUDED.value,
        t.now,
    )


def _drop_deliveries(t: Tx, account: ChannelAccount, out: IsExcluded) -> None:
    """Drop the unsent deliveries to the direct messages of excluded users."""
    found = t.fetch_all(
        """
        SELECT DISTINCT d.route, i.payload FROM delivery d JOIN inbox i ON i.turn_id = d.turn_id
        WHERE d.state IN ('pending', 'unknown') AND i.route = d.route
        """
    )
    routes = {
        route
        for route, payload in found
        if Route.parse(route).kind == DM and _is_from_excluded(route, payload, account, out)
    }
    for route in routes:
        t.execute(
            """
            UPDATE delivery SET state = 'failed', error = $2, updated_at = $3
            WHERE route = $1 AND state IN ('pending', 'unknown')
            """,
            route,
            SystemNote.PERSON_EXCLUDED.value,
            t.now,
        )
