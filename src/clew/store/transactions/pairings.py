"""Pairings: who asked, who was let in, who was shut out."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.chat import DM
from clew.core.inbox import InboxOutcome
from clew.core.people import (
    CODE_LIFETIME,
    MAX_ATTEMPTS,
    MAX_PENDING_CODES,
    UNSHOWN_CODE_LIFETIME,
    AccessStatus,
    ChannelAccount,
    Person,
)
from clew.core.route import Route
from clew.core.turn import StopRequest
from clew.store.transactions.approvals import deny_open
from clew.store.transactions.stops import request_stop, unfinished_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId, InboxId
    from clew.core.route import RouteKey
    from clew.store.contract import Row, Tx

    #: Whether somebody may not talk in a place any more.
    Out = Callable[[str, Route], bool]

_PERSON = """
    SELECT channel, account, user_id, name, route, state, changed_at, expires_at, approved_by
    FROM pairing
"""
_TOLD = "the person may not talk here any more"


def _person(row: Row) -> Person:
    return Person(
        account=ChannelAccount(channel=row[0], account=row[1]),
        user=row[2],
        name=row[3],
        route=row[4],
        standing=AccessStatus(row[5]),
        changed_at=from_millis(row[6]),
        code_until=None if row[7] is None else from_millis(row[7]),
        approved_by=row[8],
    )


def code_hash(code: str) -> bytes:
    """What is stored of a code, however its letters and dashes are typed."""
    typed = "".join(filter(str.isalnum, code)).upper()
    return hashlib.sha256(f"pairing:{typed}".encode()).digest()


def standing_now(t: Tx, account: ChannelAccount, user: str) -> AccessStatus | None:
    """What is stored about a person, for those who only look."""
    row = t.one(
        "SELECT state FROM pairing WHERE channel = $1 AND account = $2 AND user_id = $3",
        account.channel,
        account.account,
        user,
    )
    return None if row is None else AccessStatus(row[0])


def standing(t: Tx, account: ChannelAccount, user: str) -> AccessStatus | None:
    """What is stored about a person, kept from changing until the commit."""
    row = t.one(
        """
        SELECT state FROM pairing WHERE channel = $1 AND account = $2 AND user_id = $3 @SHARE
        """,
        account.channel,
        account.account,
        user,
    )
    return None if row is None else AccessStatus(row[0])


def people(t: Tx) -> list[Person]:
    """Everyone who is stored, in the order of channel, standing and last change."""
    found = t.all(f"{_PERSON} ORDER BY channel, account, state, changed_at, user_id")
    return [_person(row) for row in found]


def ask(
    t: Tx, account: ChannelAccount, user: str, *, name: str, route: RouteKey, code: bytes
) -> bool:
    """
    Give a stranger a code; ``False`` if nothing is to be shown.

    That is where the code before is still good, and where too many others wait.
    """
    if _open_code(t, account, user) or _waiting(t, account) >= MAX_PENDING_CODES:
        return False
    t.run(
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


def code_shown(t: Tx, account: ChannelAccount, user: str) -> None:
    """A person was shown the code that waits: it is good for its whole time."""
    _code_until(t, account, user, t.now + CODE_LIFETIME // timedelta(milliseconds=1))


def withdraw_code(t: Tx, account: ChannelAccount, user: str) -> None:
    """A code that waits was not shown: it is good no longer, and no other is kept back."""
    _code_until(t, account, user, t.now)


def _code_until(t: Tx, account: ChannelAccount, user: str, until: int) -> None:
    t.run(
        """
        UPDATE pairing SET expires_at = $4
        WHERE channel = $1 AND account = $2 AND user_id = $3 AND code_hash IS NOT NULL
        """,
        account.channel,
        account.account,
        user,
        until,
    )


def _open_code(t: Tx, account: ChannelAccount, user: str) -> bool:
    row = t.one(
        """
        SELECT 1 FROM pairing
        WHERE channel = $1 AND account = $2 AND user_id = $3 AND expires_at > $4
        """,
        account.channel,
        account.account,
        user,
        t.now,
    )
    return row is not None


def _waiting(t: Tx, account: ChannelAccount) -> int:
    row = t.one(
        "SELECT count(*) FROM pairing WHERE channel = $1 AND account = $2 AND expires_at > $3",
        account.channel,
        account.account,
        t.now,
    )
    assert row is not None
    return row[0]


def approve(t: Tx, code: bytes, *, by: str) -> Person | None:
    """
    Let in whoever was shown this code, once; ``None`` if it is no code that is good now.

    A wrong one counts against every code that is open: after some of them none is good any more,
    also the right one, and each person has to ask for a new code when theirs is over.
    """
    row = t.one(
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
        t.run(
            "UPDATE pairing SET tries = tries + 1 WHERE code_hash IS NOT NULL AND expires_at > $1",
            t.now,
        )
        return None
    found = t.one(f"{_PERSON} WHERE channel = $1 AND account = $2 AND user_id = $3", *row)
    assert found is not None
    return _person(found)


def shut_out(
    t: Tx, account: ChannelAccount, user: str, *, to: AccessStatus, by: str
) -> list[ConversationId]:
    """
    Take away that a person may talk, at once; the conversations where something of theirs ended.

    What they said and nobody answered is cancelled, the turns that answer only them are stopped,
    what waits for their word is denied, and what was still to be told them is dropped.
    """
    t.run(
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
    return end_what_is_open(t, account, lambda one, _: one == user)


def end_what_is_open(t: Tx, account: ChannelAccount, out: Out) -> list[ConversationId]:
    """End what is open of those who are ``out``; the conversations that were touched."""
    touched: dict[ConversationId, None] = {}
    found = t.all("SELECT id, conversation_id, route, payload FROM inbox WHERE outcome IS NULL")
    for inbox_id, conversation, route, payload in found:
        if _is_out(route, payload, account, out):
            _cancel(t, inbox_id)
            touched[conversation] = None
    for turn in unfinished_turns(t):
        inputs = t.all("SELECT route, payload FROM inbox WHERE turn_id = $1", turn.id)
        if inputs and all(_is_out(row[0], row[1], account, out) for row in inputs):
            deny_open(t, turn.id, note=_TOLD)
            # Not as a person's word: what was said so far is not told to whoever is out.
            request_stop(t, turn.id, StopRequest.CANCEL)
            touched[turn.conversation_id] = None
    _drop_deliveries(t, account, out)
    for conversation in touched:
        t.wake(conversation)
    return list(touched)


def sender_in(payload: str, account: ChannelAccount) -> str | None:
    """Who said it, if it came over this account."""
    told = json.loads(payload)
    if told.get("account") != [account.channel, account.account]:
        return None
    sender: str = told["sender"]["id"]
    return sender


def _is_out(route: RouteKey | None, payload: str, account: ChannelAccount, out: Out) -> bool:
    sender = sender_in(payload, account)
    return sender is not None and route is not None and out(sender, Route.parse(route))


def _cancel(t: Tx, inbox_id: InboxId) -> None:
    t.run(
        """
        UPDATE inbox SET outcome = $2, note = $3, resolved_at = $4
        WHERE id = $1 AND outcome IS NULL
        """,
        inbox_id,
        InboxOutcome.CANCELLED.value,
        _TOLD,
        t.now,
    )


def _drop_deliveries(t: Tx, account: ChannelAccount, out: Out) -> None:
    """Whoever is out is told nothing more where they talk to the agent alone."""
    found = t.all(
        """
        SELECT DISTINCT d.route, i.payload FROM delivery d JOIN inbox i ON i.turn_id = d.turn_id
        WHERE d.state IN ('pending', 'unknown') AND i.route = d.route
        """
    )
    routes = {
        route
        for route, payload in found
        if Route.parse(route).kind == DM and _is_out(route, payload, account, out)
    }
    for route in routes:
        t.run(
            """
            UPDATE delivery SET state = 'failed', error = $2, updated_at = $3
            WHERE route = $1 AND state IN ('pending', 'unknown')
            """,
            route,
            _TOLD,
            t.now,
        )
