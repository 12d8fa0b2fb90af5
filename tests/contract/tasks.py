"""Tasks of racing processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import ConversationId, EntryId, OwnerId, TurnId, new_session_id
from clew.errors import LeaseHeld, LeaseLost, RotationConflict
from clew.store.transactions import entries, leases, sessions, turns
from tests.contract import acting

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.inbox import AcceptResult
    from clew.core.lease import Lease
    from clew.core.session import Head
    from clew.store.contract import Store, Tx


def conversation(number: int) -> ConversationId:
    return ConversationId(f"cnv_{number}")


def prepare(t: Tx, count: int) -> None:
    """Conversations with a message each, that nobody holds."""
    for number in range(count):
        route = acting.local_route(f"room {number}")
        acting.accept(t, acting.message(f"inb_{number}"), route, conversation(number))


async def claim(store: Store, owner: OwnerId, count: int) -> list[int]:
    """Begin a turn in each conversation; the numbers of those where that was granted."""
    won: list[int] = []
    for number in range(count):
        turn = TurnId(f"trn_{number}_{owner}")
        try:
            await store.write(acting.begin, owner, turn, conversation(number))
        except LeaseHeld:
            continue
        won.append(number)
    return won


async def take(store: Store, owner: OwnerId, duration: timedelta) -> Lease:
    """The lease of the first conversation."""
    begun = await store.write(
        turns.begin_work, conversation(0), owner=owner, turn=TurnId(f"trn_{owner}"),
        compose=acting.compose, session_ids=new_session_id, duration=duration,
    )  # fmt: skip
    assert begun is not None
    return begun.lease


async def say(store: Store, _owner: OwnerId, lease: Lease, name: str) -> int | str:
    """Append under a lease; the number, or that the lease was lost."""
    try:
        (entry,) = await store.write(acting.append, lease, name)
    except LeaseLost:
        return "lease lost"
    return entry.seq


async def accept(store: Store, owner: OwnerId, events: int) -> list[AcceptResult]:
    """Accept the same events as everybody else, on one new route."""
    return [
        await store.write(
            acting.accept,
            acting.message(f"inb_{owner}_{n}", event=("telegram", "bot", str(n))),
            acting.MAIN,
            f"cnv_{owner}",
        )
        for n in range(events)
    ]


async def rotate(store: Store, owner: OwnerId, lease: Lease, expected: Head) -> str:
    """Rotate under a lease that is shared; the new session, or that there was a race."""
    try:
        session = await store.write(acting.rotate, lease, expected, f"op_{owner}")
    except RotationConflict:
        return "conflict"
    return session.id


async def take_over_and_say(store: Store, owner: OwnerId, rounds: int) -> int:
    """Take the first conversation over, time and again, and append; how often that was granted."""
    granted = 0
    for n in range(rounds):
        try:
            taken = await store.write(leases.acquire_lease, conversation(0), owner=owner)
            session = await store.read(sessions.get_head, conversation(0))
            drafts = [acting.draft(EntryId(f"ent_{owner}_{n}"))]
            await store.write(entries.append_entries, taken.lease, session.id, drafts)
        except (LeaseHeld, LeaseLost):
            continue
        granted += 1
        await store.write(leases.release_lease, taken.lease)
    return granted
