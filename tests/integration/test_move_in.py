"""What another system holds goes on here: whole, once, and in the same conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.entry import Role
from clew.core.ids import ConversationId, IdGenerator
from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.core.turn import TurnOutcome
from clew.engine.imports import ConversationImporter, ExportSection, ImportOutcome, ImportResult
from clew.foreign.conversations import ForeignCompaction, ForeignMessage
from clew.foreign.encoding import encode_conversation
from clew.record import replace
from clew.store.transactions.grants import is_tainted
from tests.foreign.stories import tell
from tests.line.world import World, open_world

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.conversations import ForeignConversation

ids = IdGenerator(lambda: 1)
CHAT = Route(platform="telegram", kind="dm", chat="42")


async def taken(world: World, *found: ForeignConversation) -> list[ImportResult]:
    results: list[ImportResult] = []
    async with ConversationImporter(world.store.inner, ids, version="0").register_owner() as one:
        for conversation in found:
            encoded = encode_conversation("test", conversation, scope=LOCAL)
            section = ExportSection(
                lambda encoded=encoded: iter(encoded.records),
                conversation=encoded.records[0][1]["id"],
                entries=encoded.entries,
            )
            results.append(await one.import_conversation(section))
            await one.claim_routes(section, results[-1])
    return results


@pytest.mark.both_databases
async def test_what_is_taken_over_is_sound_and_is_taken_over_once(
    store_url: str, tmp_path: Path
) -> None:
    """With tools, summaries, files, gaps and what is no message; again it adds nothing."""
    stories = [tell(f"place {number}", steps=25) for number in range(6)]
    async with open_world(store_url, tmp_path) as world:
        results = await taken(world, *stories)
        assert {one.outcome for one in results} == {ImportOutcome.IMPORTED}
        again = await taken(world, *stories)
        assert {one.outcome for one in again} == {ImportOutcome.UNCHANGED}
        assert sum(one.entries for one in again) == 0
        for story, result in zip(stories, results, strict=True):
            log = await world.log(ConversationId(result.local_id))
            said = [item for item in story.items if isinstance(item, ForeignMessage)]
            for role in (Role.USER, Role.ASSISTANT):
                texts = [item.text for item in said if item.role is role]
                stored = [entry.text for entry in log if entry.role is role]
                assert [one.partition("\n[file")[0] for one in stored] == texts
        assert await world.check() == []


async def test_a_conversation_goes_on_where_it_was(store_url: str, tmp_path: Path) -> None:
    """The next message of its chat is answered with all of its context: its last summary first."""
    story = tell("roses", steps=40, routes=[CHAT], seed=3)
    *_, last = (item for item in story.items if isinstance(item, ForeignCompaction))
    async with open_world(store_url, tmp_path) as world:
        (result,) = await taken(world, story)
        name = ConversationId(result.local_id)
        ended = await world.end(await world.say("x:look", to=CHAT))
        assert ended.turn is not None
        assert ended.turn.outcome is TurnOutcome.ANSWERED
        assert ended.turn.conversation_id == name
        sent = str(world.model.sent[-1])
        assert last.summary in sent
        assert "Answer 39 about roses." in sent
        assert "Answer 0 about roses." not in sent
        found = await world.engine.search_messages("roses 0")
        assert [hit.conversation_id for hit in found.items][:1] == [name]
        assert await world.store.inner.read(is_tainted, name), "nobody knows what it has read"
        assert await world.check() == []


async def test_what_was_said_there_since_is_added_unless_it_went_on_here(
    store_url: str, tmp_path: Path
) -> None:
    """Also while a step runs there: it comes with the next import."""
    whole = tell("tulips", steps=30, growing=True)
    async with open_world(store_url, tmp_path) as world:
        names = set[str]()
        for end in range(10, len(whole.items) + 1, 7):
            (part,) = await taken(world, replace(whole, items=whole.items[:end]))
            assert part.outcome in (
                ImportOutcome.IMPORTED,
                ImportOutcome.EXTENDED,
                ImportOutcome.UNCHANGED,
            )
            names.add(part.local_id)
        (rest,) = await taken(world, whole)
        (name,) = {*names, rest.local_id}
        await world.end(await world.say("x:look", to=ConversationId(name)))
        assert (await taken(world, whole))[0].outcome is ImportOutcome.UNCHANGED
        more = tell("tulips", steps=32)
        assert (await taken(world, more))[0].outcome is ImportOutcome.COPIED
        assert (await taken(world, more))[0].outcome is ImportOutcome.UNCHANGED
        assert await world.check() == []
