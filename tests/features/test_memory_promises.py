"""What holds of memory over time: restarts, compactions, deletions, and thousands of facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from structlog.testing import capture_logs

from clew.core.scope import LOCAL
from clew.features.memory import forgetting, session_notes, writing
from clew.features.memory.facts import FactWriter
from clew.features.memory.settings import MemorySettings
from clew.features.memory.wording import MAX_CORE
from clew.plugin.registry import Features
from clew.store.opening import open_store
from clew.testing import Text
from tests.contract.lifecycle.doubles import SUMMARY
from tests.features.delegation_world import obey
from tests.features.memory_prefix import insert_facts, tell_long_story
from tests.features.memory_world import ANN, HOME, open_memory
from tests.killing.plans import SUMMARISE

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply


async def test_facts_that_change_leave_the_beginning_of_every_request_as_it_was(
    tmp_path: Path,
) -> None:
    found = await tell_long_story(tmp_path, "sqlite:///clew.db", turns=8, writes=6)
    assert (found.requests, found.broken, found.untold) == (9, 0, 0)
    assert found.reported > 40, "of all tokens, with those of the first request"


async def test_a_fact_outlives_a_restart_a_new_conversation_and_the_one_it_was_taken_from(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        await world.call("remember", ANN, fact="Ann lives in Rome.")
        first = await world.conversation(ANN)
    async with open_memory(tmp_path, store_url, _summarise) as world:
        for _ in range(4):
            await world.say("a long story " * 4_000, ANN)
        await world.command("/compress", ANN)
        await world.say("hello", ANN)
        assert "1. Ann lives in Rome." in world.sent[-1].system_text
        assert "conversation_summary" in world.last_request()
        await world.command("/new", ANN)
        await world.say("hello again", ANN)
        assert "1. Ann lives in Rome." in world.sent[-1].system_text
        await world.engine.delete_conversation(first, at_once=True)
        await world.engine.run_maintenance()
        assert "its conversation was deleted" in await world.command("/memory 1", ANN)
        await world.store.write(forgetting.forget_with_conversations)
        await world.settle()
        assert [one.text for one in await world.facts()] == [None]
        await world.say("and now?", ANN)
        assert "Rome" not in json.dumps(world.sent[-1].raw), "with_conversation"
        await world.check()


async def test_facts_beside_the_core_that_a_first_message_is_about_join_it(tmp_path: Path) -> None:
    settings = MemorySettings(recall="auto")
    async with open_memory(tmp_path, "sqlite:///clew.db", settings=settings) as world:
        await world.store.write(_remember_many, 40, "Something long " + "about it " * 40)
        await world.command("/remember Ann is allergic to walnuts.", HOME)
        await world.store.write(_remember_many, 20, "Pinned thing " + "of weight " * 30, pin=True)
        await world.say("May I cook with walnuts?", HOME)
        note = world.sent[-1].user_texts[-1]
        assert note.count("walnuts") == 1
        assert "this may matter here:\n41. Ann is allergic to walnuts." in note
        assert "walnuts" not in world.sent[-1].system_text
        await world.say("And walnuts tomorrow?", HOME)
        assert "this may matter here" not in world.sent[-1].user_texts[-1], "only the first"
        await world.check()


async def test_the_core_of_five_thousand_facts_has_a_limit_and_is_always_the_same(
    tmp_path: Path,
) -> None:
    async with open_memory(tmp_path, "sqlite:///clew.db") as world:
        await world.store.write(insert_facts, 5_000)
        cores = {await world.store.read(session_notes.render, LOCAL) for _ in range(3)}
        [core] = cores
        assert core is not None
        assert MAX_CORE * 0.9 < len(core) < MAX_CORE + 300
        assert "more are found by `recall`." in core


async def test_memory_is_off_in_a_store_that_was_opened_without_its_tables(tmp_path: Path) -> None:
    async with await open_store("sqlite:///clew.db", home=tmp_path, features=Features().schemas):
        pass
    with capture_logs() as logs:
        async with open_memory(tmp_path, "sqlite:///clew.db", with_tables=False) as world:
            assert await world.say("hello") == "done: hello"
            assert await world.say("again") == "done: again"
    told = [one["event"] for one in logs if one["log_level"] != "debug"]
    assert told.count("feature_without_tables") == 1
    assert not {"note_failed", "instructions_failed", "after_turn_failed"} & set(told)


def _summarise(request: ProviderRequest) -> Reply:
    return Text(SUMMARY) if request.user_texts[0].startswith(SUMMARISE) else obey(request)


def _remember_many(t: Tx, count: int, text: str, *, pin: bool = False) -> None:
    for number in range(count):
        given = writing.NewFact(
            id=f"mem_{pin}{number}",
            scope=LOCAL,
            text=f"{text}{number}",
            written_by=FactWriter.PERSON,
            pinned=pin,
        )
        writing.remember(t, given)
