"""Prefixes of sessions in the store: kept lists of tools go with the last session that has them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString, cast

from clew.core.ids import ConversationId
from clew.core.session_prefix import InstructionPart, SessionPrefix, join_instructions
from clew.store.migrate import load_migrations
from clew.store.opening import open_store
from clew.store.transactions import session_prefixes, sessions
from clew.store.transactions.deletion import delete_slice, mark_deleted
from tests.contract import acting

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

TALK = ConversationId("cnv_1")
PARTS = (
    InstructionPart(name="agent", text="One.\n\nTwo."),
    InstructionPart(name="feature:x", text="“Three” \\ \u202e", dynamic=True),
)


async def test_a_prefix_is_stored_once_and_its_tools_go_with_the_last_session(
    store_url: str, tmp_path: Path
) -> None:
    async with await open_store(store_url, home=tmp_path) as store:
        await store.write(acting.accept, acting.message("inb_1"))
        lease = (await store.write(acting.begin)).lease
        session = (await store.read(sessions.get_head, TALK)).id
        for tools in ('[{"name":"a"}]', '[{"name":"b"}]'):
            prefix = SessionPrefix(instructions=PARTS, tools=tools)
            await store.write(session_prefixes.store_prefix, lease, session, prefix)
        head = await store.read(sessions.get_head, TALK)
        assert head.instructions == PARTS
        assert join_instructions(head.instructions) == "One.\n\nTwo.\n\n“Three” \\ \u202e"
        assert head.tools is not None
        assert await store.read(session_prefixes.read_tools, head.tools) == '[{"name":"a"}]'
        assert await store.write(session_prefixes.delete_unused_tools) is False
        await store.write(_age_tools)
        assert await store.write(session_prefixes.delete_unused_tools) is True
        assert await store.read(_count_tools) == 1
        await store.write(mark_deleted, TALK)
        while await store.write(delete_slice, TALK):
            pass
        assert await store.write(session_prefixes.delete_unused_tools) is True
        assert await store.read(_count_tools) == 0


async def test_the_text_of_an_older_store_becomes_one_part(store_url: str, tmp_path: Path) -> None:
    old = 'You "keep"\n\n\\ a garden: “Ä” \t 🧵'
    async with await open_store(store_url, home=tmp_path) as store:
        await store.write(acting.accept, acting.message("inb_1"))
        await store.write(lambda t: t.execute("UPDATE session SET instructions = $1", old))
        await store.write(_migrate_instructions)
        head = await store.read(sessions.get_head, TALK)
        assert head.instructions == (InstructionPart(name="agent", text=old),)
        assert head.tools is None


def _migrate_instructions(t: Tx) -> None:
    (sql,) = [each.sql for each in load_migrations(t.dialect) if each.number == 7]
    t.execute(cast("LiteralString", sql[sql.index("UPDATE session SET") :]))


def _age_tools(t: Tx) -> None:
    long_ago = t.now - timedelta(days=2) // timedelta(milliseconds=1)
    t.execute("UPDATE toolset SET used_at = $1", long_ago)


def _count_tools(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM toolset")
