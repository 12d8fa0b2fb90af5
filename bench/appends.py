"""Durable appends: many writers, each with a conversation and a lease of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import TYPE_CHECKING

import apsw

from bench.figures import Figure
from bench.places import postgres_database, scratch
from clew.core.entry import NewEntry, Role
from clew.core.ids import ConversationId, IdGenerator, OwnerId, new_session_id
from clew.core.scope import LOCAL
from clew.store.opening import open_store
from clew.store.sqlite.driver import new_cursor
from clew.store.transactions import entries, leases
from clew.store.transactions.conversations import open_conversation

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import SessionId
    from clew.core.lease import Lease
    from clew.store.contract import Store, Tx

WRITERS = 100
IDS = IdGenerator(lambda: time.time_ns() // 1_000_000)
SECONDS = 4.0
TEXT = "The quick brown fox jumps over the lazy dog, and nobody knows why it does so."
MESSAGE = '{"parts":[{"content":"' + TEXT + '","part_kind":"user-prompt"}],"kind":"request"}'
FORMAT = "pydantic-ai/2"

_INSERT = """
    INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, calls,
                       answers, format, message, created_at, prev_hash, hash)
    VALUES (?, ?, ?, ?, NULL, 'message', 'user', ?, '[]', '[]', ?, ?, 0, ?, ?)
"""


async def measure() -> list[Figure]:
    with scratch() as folder:
        url = f"sqlite:///{folder}/clew.db"
        ours = await _rate(url, folder)
        bare = _bare(folder)
    with postgres_database() as url, scratch() as folder:
        theirs = await _rate(url, folder)
    return [
        Figure(
            name=f"durable appends, {WRITERS} writers, SQLite",
            value=ours,
            unit="/s",
            target=30_000,
            at_least=True,
            ratio=ours / bare,
            baseline=f"bare apsw, {WRITERS} rows a commit ({bare:,.0f}/s)",
        ),
        Figure(name=f"durable appends, {WRITERS} writers, PostgreSQL", value=theirs, unit="/s"),
    ]


async def _rate(url: str, home: Path) -> float:
    async with await open_store(url, home=home) as store:
        places = [await store.write(_open, number) for number in range(WRITERS)]
        until = time.monotonic() + SECONDS
        started = time.monotonic()
        counts = await asyncio.gather(
            *(_write(store, lease, session, until) for lease, session in places)
        )
        return sum(counts) / (time.monotonic() - started)


def _open(t: Tx, number: int) -> tuple[Lease, SessionId]:
    conversation = ConversationId(f"cnv_{number}")
    session = open_conversation(t, conversation, scope=LOCAL, session_ids=new_session_id)
    return leases.acquire_lease(t, conversation, owner=OwnerId("own_bench")).lease, session


async def _write(store: Store, lease: Lease, session: SessionId, until: float) -> int:
    count = 0
    while time.monotonic() < until:
        count += 1
        draft = NewEntry(
            id=IDS.new_entry_id(), role=Role.USER, text=TEXT, format=FORMAT, message=MESSAGE
        )
        await store.write(entries.append_entries, lease, session, [draft])
    return count


def _bare(folder: Path) -> float:
    """Insert the same rows into the same file, with nothing around the statements."""
    path, hashed = folder / "clew.db", bytes(32)
    with closing(apsw.Connection(str(path))) as connection:
        execute = new_cursor(connection).execute
        execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")
        heads = execute("SELECT conversation_id, session_id FROM head").fetchall()
        until = time.monotonic() + SECONDS
        started, seq = time.monotonic(), 10_000_000
        while time.monotonic() < until:
            seq += 1
            execute("BEGIN IMMEDIATE")
            for conversation, session in heads:
                row = (conversation, seq, IDS.new_entry_id(), session, TEXT, FORMAT, MESSAGE)
                execute(_INSERT, (*row, hashed, hashed))
            execute("COMMIT")
        return (seq - 10_000_000) * WRITERS / (time.monotonic() - started)
