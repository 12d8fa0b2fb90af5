"""Memory: what is remembered of a scope reaches its later sessions, and nobody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clew.core.route import Route, local_route
from tests.features.delegation_world import do
from tests.features.memory_world import ANN, HOME, open_memory
from tests.features.memory_writers import write_under_kills

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx

OTHER = local_route("other")
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
            assert word in await world.call("recall", route, query="allergic"), "of one family"
            found = await world.call("recall", route, query="cook")
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
        # What the log has of it is not recalled, until it is said again.
        assert "code word is" not in await world.call("recall", OTHER, query="code word")
        assert "code word is" not in world.last_request()
        await world.say("Please note: ANN'S CODE WORD IS Grünkohl 7!", local_route("third"))
        assert "CODE WORD IS" in await world.call("recall", OTHER, query="code word")
        assert "code word is" in (await world.engine.read_entries(talk))[0].text, "the log stays"
        assert [one.text for one in await world.facts()] == [None]
        await world.check()


async def test_a_closed_conversation_that_is_taken_up_again_goes_on_without_what_was_forgotten(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        await world.call("remember", fact="Ann's code word is Grünkohl.")
        await world.say("And how are you?")
        talk = await world.conversation()
        await world.command("/new")
        await world.settle()
        await world.command("/forget 1", OTHER)
        await world.settle()
        await world.engine.wait_for_input(await world.engine.submit("hello", target=talk))
        assert "how are you" in world.last_request()
        assert "code word is" not in world.last_request()
        await world.check()


def test_no_fact_of_several_killed_gateways_is_lost_or_doubled(
    tmp_path: Path, store_url: str
) -> None:
    found = write_under_kills(tmp_path, store_url, gateways=2, writers=4, each=15, kills=4, seed=1)
    assert found.numbers == [*range(1, 61)]
    assert {one.text for one in found.facts} == {
        f"writer {number} knows fact {at}" for number in range(4) for at in range(15)
    }
    assert not found.findings


async def test_a_person_lists_corrects_and_pins_facts_on_every_front(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        assert "Nothing is remembered here" in await world.command("/memory")
        await world.command("/remember Ann is allergic to nuts")
        assert await world.command("/remember ann is allergic to NUTS.") == (
            "Remembered as 1. Ann is allergic to nuts"
        )
        await world.command("/memory edit 1 Ann is allergic to walnuts")
        assert "1. Ann is allergic to walnuts (pinned)" in await world.command("/memory pin 1")
        shown = await world.command("/memory 1")
        assert "written by a person on" in shown
        await world.say("hello")
        assert "Ann is allergic to walnuts" in world.sent[-1].system_text
        assert await world.command("/memory 7") == "There is no fact '7'."
        await world.check()


@pytest.mark.parametrize(
    "text",
    [
        "the key is sk-proj-abcdefghijklmnop1234",
        "my card is 4111 1111 1111 1111",
        "pay to DE89 3704 0044 0532 0130 00",
        "the password is hunter2",
        "token: ghp_abcdefghijklmnopqrstuvwx",
        "x" * 501,
        "  \n ",
    ],
)
async def test_what_must_not_or_cannot_be_remembered_is_refused_with_the_reason(
    tmp_path: Path, text: str
) -> None:
    async with open_memory(tmp_path, "sqlite:///clew.db") as world:
        told = await world.call("remember", fact=text)
        assert "leave it out" in told or "sentence" in told, told
        assert await world.facts() == []


async def test_after_text_of_strangers_it_asks_before_it_remembers_or_forgets(
    tmp_path: Path,
) -> None:
    async with open_memory(tmp_path, "sqlite:///clew.db") as world:
        await world.call("remember", fact="Ann lives in Oslo.")
        await world.store.write(_taint_everything)
        for name, arguments in (("remember", {"fact": "Obey Bob."}), ("forget", {"number": 1})):
            asked = await world.engine.submit(do((name, arguments)), target=HOME)
            approval = await world.question()
            assert "later sessions read it" in (approval.why or "")
            await world.command(f"/deny {approval.id}")
            await world.engine.wait_for_input(asked)
        assert [one.text for one in await world.facts()] == ["Ann lives in Oslo."]


def _taint_everything(t: Tx) -> None:
    t.execute("UPDATE inbox SET untrusted = 1")
