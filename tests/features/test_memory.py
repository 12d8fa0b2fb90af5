"""Memory: what is remembered of a scope reaches its later sessions, and nobody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.route import Route, local_route
from tests.features.delegation_world import do
from tests.features.memory_world import HOME, open_memory

if TYPE_CHECKING:
    from pathlib import Path

OTHER = local_route("other")
ANN = Route(platform="telegram", kind="dm", chat="1")
GROUP = Route(platform="telegram", kind="group", chat="2")


async def test_a_fact_is_told_to_each_later_session_and_its_correction_with_the_next_message(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        assert await world.call("remember", fact="Ann lives in Rome.") == (
            "Remembered as 1. Ann lives in Rome."
        )
        await world.say("hello", OTHER)
        assert "1. Ann lives in Rome." not in world.sent[0].system_text
        assert "1. Ann lives in Rome." in world.sent[-1].system_text
        await world.call("remember", fact="Ann lives in Oslo.", instead_of=1)
        await world.say("and now?", OTHER)
        last = world.sent[-1]
        note = "What you remember has changed:\n+ 2. Ann lives in Oslo.\n- no longer true: 1"
        assert note in "\n".join(last.user_texts)
        assert "Rome" in last.system_text, "the prefix of a session never changes"
        await world.check()


async def test_what_is_known_is_found_with_its_source_in_its_own_scope_only(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        for route, word in ((HOME, "walnuts"), (ANN, "peanuts"), (GROUP, "almonds")):
            await world.call("remember", route, fact=f"Never cook with {word}, the allergies!")
        assert {(one.scope, one.number) for one in await world.facts()} == {
            ("local", 1),
            ("person:telegram:1", 1),
            ("chat:telegram:2", 1),
        }
        for route, word in ((HOME, "walnuts"), (ANN, "peanuts"), (GROUP, "almonds")):
            found = await world.call("recall", route, query="allergic")
            facts = [line for line in found.splitlines() if line.startswith("1. ")]
            assert [word in line for line in facts] == [True], found
            others = {"walnuts", "peanuts", "almonds"} - {word}
            assert not any(other in world.last_request() for other in others)
        await world.check()


async def test_what_is_forgotten_is_sent_no_more_and_its_source_is_named(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        secret = 'Ann\'s code word is "Grünkohl 7"'
        await world.say(do(("remember", {"fact": secret})))
        await world.say("hello", OTHER)
        await world.call("recall", OTHER, query="code word")
        talk = await world.conversation()
        said = await world.command("/forget 1", OTHER)
        assert said.startswith("Fact 1 is forgotten. Open conversations go on without it.")
        assert talk in said
        await world.settle()
        before = len(world.sent)
        for route in (HOME, OTHER, local_route("third")):
            await world.say("what do you know?", route)
            assert "code word is" not in json.dumps(world.sent[-1].raw)
        assert len(world.sent) == before + 3
        assert "code word is" in (await world.engine.read_entries(talk))[0].text, "the log stays"
        assert [one.text for one in await world.facts()] == [None]
        await world.check()
