"""
S1.11 to S1.18: what the maintenance of the running product closes, and what it leaves alone.

A product is started on a store in which everything is old. Beside what a test looks at there is an
orphan, which tells when maintenance has come by.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from clew.core.delivery import DeliveryState
from clew.core.double_text import DoubleText
from clew.core.ids import ClientId, ConversationId, InboxId, OwnerId, SessionId
from clew.core.inbox import NewInput
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.core.session import COMPRESSION, ORPHANED_COMPRESSION, USER_EXIT
from clew.store.transactions import clients, conversations, inbox, sessions
from clew.testing import Hang, echo
from tests.contract.lifecycle.house import Proposals
from tests.contract.lifecycle.later import Later
from tests.contract.lifecycle.product import (
    NEW,
    OLD,
    SOON,
    Plan,
    continue_talk,
    open_talk,
    plan,
    running,
    stored,
)
from tests.failing.compacting import Plays
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from structlog.typing import EventDict

    from clew.store.contract import Store, Tx
    from tests.contract.lifecycle.product import Product

TALK, ORPHAN = ConversationId("cnv_talk"), ConversationId("cnv_orphan")
LONG_AGO = timedelta(seconds=800_000)
CLOSED = ("20260101_000000_cccccc", COMPRESSION), ("20260101_000000_dddddd", ORPHANED_COMPRESSION)


def _orphan(t: Tx) -> None:
    (first, _), (second, _) = CLOSED
    open_talk(t, ORPHAN, scope=LOCAL, session=first)
    continue_talk(t, ORPHAN, session=second, reason=COMPRESSION)


def _talk(t: Tx, *, reason: str | None = COMPRESSION, messages: int = 2) -> None:
    open_talk(t, TALK, scope=LOCAL, session=OLD)
    if reason is not None:
        continue_talk(t, TALK, session=NEW, reason=reason, messages=messages)


def _plan(url: str, folder: Path) -> Plan:
    return plan(url, folder, clock=Later())


async def _left(
    given: Plan,
    prepare: Callable[[Tx], None],
    *,
    age: timedelta = LONG_AGO,
    orphan_age: timedelta | None = None,
) -> tuple[int, list[tuple[str, str | None]]]:
    """
    Return the number of orphans that maintenance closed after that time, and the sessions then.

    The orphan that tells of it is one of them.
    """
    clock = given.clock
    assert isinstance(clock, Later)
    clock.ahead = timedelta(0) if orphan_age is None else age - orphan_age
    async with stored(given) as store:
        await store.write(_orphan)
    clock.ahead = timedelta(0)
    async with stored(given) as store:
        await store.write(prepare)
    clock.ahead = age
    with capture_logs() as logs:
        async with running(given) as product:
            await product.becomes(list(CLOSED), ORPHAN)
            await _nothing_is_lost(product)
            closed = await wait_until(lambda: _closed(logs), "maintenance", seconds=SOON)
            # An orphan that was closed, or left alone, is not found again.
            assert (await product.engine.run_maintenance(dry_run=True)).orphans == 0
            return sum(closed), await product.lineage(TALK)


def _closed(logs: list[EventDict]) -> list[int]:
    """Return the number of orphans that each run of maintenance closed."""
    return [log["orphans"] for log in logs if log["event"] == "maintained" and log["orphans"]]


async def _nothing_is_lost(product: Product) -> None:
    """Every message stays, and is found."""
    said = [entry.text for entry in await product.log(ORPHAN)]
    assert [text[:2] for text in said] == ["1:", "2:"] * 2


async def test_s1_11_old_unfinished_continuation_is_closed(store_url: str, tmp_path: Path) -> None:
    given = _plan(store_url, tmp_path)
    async with stored(given) as store:
        await store.write(_talk)
    assert isinstance(given.clock, Later)
    given.clock.ahead = LONG_AGO
    with capture_logs() as logs:
        async with running(given) as product:
            await product.becomes([(OLD, COMPRESSION), (NEW, "orphaned_compression")], TALK)
            assert len(await product.log(TALK)) == 4
            assert await wait_until(lambda: _closed(logs), seconds=SOON) == [1]
            assert (await product.engine.run_maintenance(dry_run=True)).orphans == 0


def _route(t: Tx) -> None:
    _talk(t)
    conversations.claim_route(t, local_route("talk").key, TALK)


def _input(t: Tx) -> None:
    _talk(t)
    inbox.accept_input(
        t,
        NewInput(id=InboxId("inb_waits"), text="wait", double_text=DoubleText.QUEUE),
        target=TALK,
        new_conversation=TALK,
        session_ids=Proposals(),
    )


def _delivery(t: Tx) -> None:
    _talk(t)
    t.execute(
        """
        INSERT INTO delivery (id, conversation_id, route, kind, body, state, due_at, created_at,
                              updated_at)
        VALUES ('dlv_1', $1, 'agent:main:telegram:dm:1', 'notice', 'hi', $2, 0, 0, 0)
        """,
        TALK,
        DeliveryState.PENDING.value,
    )


@pytest.mark.parametrize("used_by", [_route, _input, _delivery])
async def test_s1_11_whatever_would_come_back_to_a_continuation_keeps_it(
    used_by: Callable[[Tx], None], store_url: str, tmp_path: Path
) -> None:
    given = replace(_plan(store_url, tmp_path), model=Plays(turn=lambda _: Hang()))
    assert await _left(given, used_by) == (1, [(OLD, COMPRESSION), (NEW, None)])


async def test_s1_11_a_live_client_keeps_a_continuation_and_a_dead_one_does_not(
    store_url: str, tmp_path: Path
) -> None:
    given = _plan(store_url, tmp_path)
    assert isinstance(given.clock, Later)

    def _gone(t: Tx) -> None:
        _talk(t)
        clients.attach_client(t, ClientId("cli_1"), TALK, owner=OwnerId("own_gone"), front="tui")

    async with stored(given) as store:
        await store.write(_orphan)
        await store.write(_gone)
    # Another process reads the orphan.
    async with running(given) as other, other.client() as client:
        await other.open(client, ORPHAN)
        given.clock.ahead = LONG_AGO
        async with running(given) as product:
            await product.becomes([(OLD, COMPRESSION), (NEW, ORPHANED_COMPRESSION)], TALK)
            assert [reason for _, reason in await product.lineage(ORPHAN)] == [COMPRESSION, None]


async def test_s1_12_a_session_without_predecessor_is_left_alone(
    store_url: str, tmp_path: Path
) -> None:
    def prepare(t: Tx) -> None:
        _talk(t, reason=None)

    assert await _left(_plan(store_url, tmp_path), prepare) == (1, [(OLD, None)])


async def test_s1_13_a_continuation_younger_than_seven_days_is_left_alone(
    store_url: str, tmp_path: Path
) -> None:
    given = _plan(store_url, tmp_path)
    age = timedelta(days=7) - timedelta(minutes=5)
    kept = await _left(given, _talk, age=age, orphan_age=age + timedelta(minutes=10))
    assert kept == (1, [(OLD, COMPRESSION), (NEW, None)])


async def test_s1_14_a_continuation_that_has_ended_is_left_alone(
    store_url: str, tmp_path: Path
) -> None:
    def prepare(t: Tx) -> None:
        _talk(t)
        sessions.end_session(t, SessionId(NEW), USER_EXIT)

    left = await _left(_plan(store_url, tmp_path), prepare)
    assert left == (1, [(OLD, COMPRESSION), (NEW, "user_exit")])


async def test_s1_15_a_continuation_of_a_session_that_ended_otherwise_is_left_alone(
    store_url: str, tmp_path: Path
) -> None:
    def prepare(t: Tx) -> None:
        _talk(t, reason=USER_EXIT)

    left = await _left(_plan(store_url, tmp_path), prepare)
    assert left == (1, [(OLD, "user_exit"), (NEW, None)])


async def test_s1_16_a_continuation_without_messages_is_left_alone(
    store_url: str, tmp_path: Path
) -> None:
    def prepare(t: Tx) -> None:
        _talk(t, messages=0)

    left = await _left(_plan(store_url, tmp_path), prepare)
    assert left == (1, [(OLD, COMPRESSION), (NEW, None)])


async def test_s1_16_empty_ghosts_have_their_own_pruning(store_url: str, tmp_path: Path) -> None:
    ghost = ConversationId("cnv_ghost")
    given = _plan(store_url, tmp_path)
    async with stored(given) as store:
        await store.write(_talk, reason=None)
        await store.write(
            conversations.open_conversation, ghost, scope=LOCAL, session_ids=Proposals("sess-g")
        )
    assert isinstance(given.clock, Later)
    given.clock.ahead = LONG_AGO
    async with running(given) as product:
        await wait_until(lambda: _pruned(product.store, ghost), "the ghost to go", seconds=SOON)
        assert await product.lineage(TALK) == [(OLD, None)]


async def _pruned(store: Store, ghost: ConversationId) -> bool:
    def there(t: Tx) -> bool:
        row = t.fetch_one("SELECT 1 FROM conversation WHERE id = $1 AND deleting_at IS NULL", ghost)
        return row is not None

    return not await store.read(there)


async def test_s1_17_a_title_does_not_protect_an_orphan(store_url: str, tmp_path: Path) -> None:
    def prepare(t: Tx) -> None:
        _talk(t)
        conversations.rename_conversation(t, TALK, "Chat (2)")

    left = await _left(_plan(store_url, tmp_path), prepare)
    assert left == (2, [(OLD, COMPRESSION), (NEW, ORPHANED_COMPRESSION)])


async def test_s1_18_a_head_in_daily_use_is_left_alone_however_long_ago_it_was_compacted(
    store_url: str, tmp_path: Path
) -> None:
    given = replace(_plan(store_url, tmp_path), model=Plays(turn=echo))
    left = await _left(given, _route, age=timedelta(days=8))
    assert left == (1, [(OLD, COMPRESSION), (NEW, None)])
    async with running(given) as product, product.client() as client:
        await product.say(client, "as every day")
        assert [reason for _, reason in await product.lineage()] == [COMPRESSION, None]
