"""Short words for what tests of the store do again and again."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from clew.core.double_text import DoubleText
from clew.core.entry import NewEntry, Role
from clew.core.ids import (
    ConversationId,
    EntryId,
    IdGenerator,
    InboxId,
    OwnerId,
    TurnId,
    new_session_id,
)
from clew.core.inbox import NewInput
from clew.core.route import Route, local_route
from clew.core.session import Head
from clew.store.transactions import inbox, leases, sessions, turns
from tests.contract.desk import BEGINNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.entry import Entry
    from clew.core.inbox import AcceptResult, InboxItem
    from clew.core.lease import Lease
    from clew.core.session import Session
    from clew.core.turn import Turn
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

T = TypeVar("T")

ids = IdGenerator(lambda: BEGINNING)
MAIN = local_route("main")
ME, OTHER = OwnerId("own_me"), OwnerId("own_other")
LEASE_MS = leases.LEASE_DURATION // timedelta(milliseconds=1)


def draft(name: str, role: Role = Role.ASSISTANT, *, calls: tuple[str, ...] = ()) -> NewEntry:
    return NewEntry(
        id=EntryId(name), role=role, text=name, calls=calls, format="t/1", message=json.dumps(name)
    )


def compose(item: InboxItem) -> NewEntry:
    return NewEntry(
        id=EntryId(f"ent_{item.id}"),
        role=Role.USER,
        text=item.text,
        format="t/1",
        message=json.dumps(item.text),
    )


def message(
    name: str, rule: DoubleText = DoubleText.QUEUE, event: tuple[str, str, str] | None = None
) -> NewInput:
    return NewInput(id=InboxId(name), text=name, double_text=rule, event=event)


def accept(
    t: Tx, item: NewInput, target: Route | ConversationId = MAIN, new: str = "cnv_1"
) -> AcceptResult:
    return inbox.accept_input(
        t, item, target=target, new_conversation=ConversationId(new), session_ids=new_session_id
    )


def begin(t: Tx, owner: OwnerId = ME, turn: str = "trn_1", of: str = "cnv_1") -> turns.StartedWork:
    begun = turns.begin_work(
        t,
        ConversationId(of),
        owner=owner,
        turn=TurnId(turn),
        compose=compose,
        session_ids=new_session_id,
    )
    assert begun is not None
    return begun


def the_turn(begun: turns.StartedWork) -> Turn:
    """The turn that was begun, where one was."""
    assert begun.turn is not None
    return begun.turn


def started(desk: Desk) -> turns.StartedWork:
    """A turn of ``own_me`` on ``cnv_1``, begun by the message ``inb_1``; both owners live."""
    desk.world.alive |= {ME, OTHER}
    desk.do(accept, message("inb_1"))
    return desk.do(begin)


def head(t: Tx, of: str = "cnv_1") -> Session:
    return sessions.get_head(t, ConversationId(of))


def append(t: Tx, lease: Lease, *names: str) -> list[Entry]:
    """Append to the head."""
    from_head = head(t, lease.conversation_id).id
    return turns.append_entries(t, lease, from_head, [draft(name) for name in names])


def expected(t: Tx, of: str = "cnv_1") -> Head:
    row = t.fetch_one("SELECT last_seq FROM lease WHERE conversation_id = $1", of)
    assert row is not None
    return Head(session=head(t, of).id, last_seq=row[0])


def rotate(t: Tx, lease: Lease, found: Head, operation: str = "op_1") -> Session:
    return sessions.rotate_session(
        t,
        lease,
        operation=operation,
        expected=found,
        base=(),
        reason="compression",
        session_ids=new_session_id,
    )


def outcome(job: Callable[[], T]) -> T | Exception:
    """Result or exception of a call."""
    try:
        return job()
    except Exception as error:  # noqa: BLE001 - it is the result
        return error


class Overlap:
    """
    Two transactions at once, each on a connection of its own: the first has run when the second
    begins, and commits after it.
    """

    #: Seconds that the second has to run into whatever it will wait for.
    _HEAD_START = 0.15

    def __init__(self, desk: Desk, rival: Desk) -> None:
        self._desk, self._rival = desk, rival

    def __call__(self, first: Callable[[Tx], Any], second: Callable[[Tx], Any]) -> tuple[Any, Any]:
        """Return the results and exceptions."""
        seconds: list[Any] = []
        thread = threading.Thread(
            target=lambda: seconds.append(outcome(lambda: self._rival.do(second)))
        )

        def job(t: Tx) -> object:
            result = first(t)
            thread.start()
            thread.join(self._HEAD_START)
            return result

        one = outcome(lambda: self._desk.do(job))
        thread.join()
        return one, seconds[0]
