"""A rotation must cost the same in a short and in an endless conversation."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import apsw

from bench.corpus import ENTRY, insert_rows
from bench.figures import Figure, percentile
from bench.places import scratch
from clew.core.ids import ConversationId, IdGenerator, OwnerId, new_session_id
from clew.core.scope import LOCAL
from clew.core.session import Head
from clew.core.session_base import EntryRange, InlineMessage
from clew.store.opening import open_store
from clew.store.sqlite.driver import new_cursor
from clew.store.transactions import leases
from clew.store.transactions.conversations import open_conversation
from clew.store.transactions.sessions import rotate_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.corpus import Row
    from clew.core.ids import SessionId
    from clew.store.contract import Store, Tx

FEW, MANY = 10, 1_000_000
ROTATIONS = 300
IDS = IdGenerator(lambda: time.time_ns() // 1_000_000)
SUMMARY = InlineMessage(
    format="bench/1", message='{"content":"' + "what was said before " * 50 + '"}'
)


async def measure() -> list[Figure]:
    with scratch() as folder:
        url = f"sqlite:///{folder}/clew.db"
        async with await open_store(url, home=folder) as store:
            heads = {count: await store.write(_open, count) for count in (FEW, MANY)}
        for count, head in heads.items():
            _fill(folder / "clew.db", count, head)
        async with await open_store(url, home=folder) as store:
            times = await _rotate_in_turn(store, heads)
    few, many = (percentile(times[count], 0.5) for count in (FEW, MANY))
    return [
        Figure(
            name=f"rotation at {MANY:,} entries against one at {FEW}",
            value=many / few,
            unit="x",
            target=1.2,
        ),
        Figure(name=f"rotation at {MANY:,} entries, p50", value=many, unit="ms"),
    ]


def _name(count: int) -> ConversationId:
    return ConversationId(f"cnv_{count}")


def _open(t: Tx, count: int) -> SessionId:
    session = open_conversation(t, _name(count), scope=LOCAL, session_ids=new_session_id)
    t.execute("UPDATE lease SET last_seq = $2 WHERE conversation_id = $1", _name(count), count)
    return session


def _fill(path: Path, count: int, session: SessionId) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        execute = new_cursor(connection).execute
        execute("PRAGMA synchronous = OFF; BEGIN")
        insert_rows(connection, f"entry ({ENTRY})", _entries(count, session))
        execute("COMMIT")


def _entries(count: int, session: SessionId) -> Iterator[Row]:
    for seq in range(1, count + 1):
        yield (
            *(None, _name(count), seq, f"ent_{count}_{seq}", session, None, "message", "user"),
            *("text", "[]", "[]", "bench/1", "{}", 0, bytes(32), bytes(32)),
        )


async def _rotate_in_turn(store: Store, heads: dict[int, SessionId]) -> dict[int, list[float]]:
    times: dict[int, list[float]] = {count: [] for count in heads}
    for _ in range(ROTATIONS):
        for count, head in heads.items():
            started = time.perf_counter()
            heads[count] = await store.write(_rotate, count, head)
            times[count].append((time.perf_counter() - started) * 1000)
    return times


def _rotate(t: Tx, count: int, head: SessionId) -> SessionId:
    lease = leases.acquire_lease(t, _name(count), owner=OwnerId("own_bench")).lease
    return rotate_session(
        t,
        lease,
        operation=IDS.new_operation_id(),
        expected=Head(session=head, last_seq=count),
        base=(SUMMARY, EntryRange(first=count - 5, last=count)),
        reason="compression",
        session_ids=new_session_id,
    ).id
