"""A request that was sent is there again, and can be sent once more without a trace in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.entry_point import run_command
from clew.errors import NotFound
from clew.store.transactions.usage import sum_usage
from clew.testing import Calls, Fail, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.failing.desk import FORMATS, PREFIX, always, open_desk
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from tests.failing.desk import Format

    Clew = Callable[..., tuple[int, str, str]]


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


@pytest.fixture
def clew(tmp_path: Path, provider: FakeProvider, capsysbinary: Any) -> Clew:
    def clew(*args: object, form: Format = "chat") -> tuple[int, str, str]:
        url = provider.anthropic_url if form == "messages" else provider.openai_url
        given = {"name": f"{PREFIX[form]}:fake", "base_url": url, "api_key": "sk-not-shown"}
        flags = [part for key, text in given.items() for part in ("--set", f"model.{key}={text}")]
        code = run_command(["--home", str(tmp_path), *flags, *map(str, args)])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return clew


@pytest.mark.parametrize("form", FORMATS)
def test_the_request_of_a_step_is_printed_byte_for_byte(
    clew: Clew, provider: FakeProvider, form: Format
) -> None:
    provider.script = reply_in_sequence([Text("one answer"), Text("two answers")])
    for text in ("once upon", 'a "time"\nünd'):
        assert clew("chat", text, form=form)[0] == 0
    bodies = [request.body.decode() for request in provider.wait_until_settled()]
    for turn, body in enumerate(bodies, 1):
        assert clew("sessions", "replay", "main", turn, 1, form=form) == (0, body, "")
    told = json.loads(clew("sessions", "replay", "main", 2, 1, "--json", form=form)[1])
    assert told["request"] == json.loads(bodies[1])
    assert (told["step"], told["model"]) == (1, f"{PREFIX[form]}:fake")
    assert clew("sessions", "replay", "main", told["turn"], 1, form=form)[1] == bodies[1]
    assert len(provider.wait_until_settled()) == 2, "nothing was sent"


def test_a_request_is_sent_again_and_the_answers_are_compared(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([Text("roses\nare red")])
    assert clew("chat", "of what colour?")[0] == 0
    sent = provider.wait_until_settled()[0].body
    provider.script = always(Text("roses\nare blue"))
    code, out, _ = clew("sessions", "replay", "main", 1, 1, "--diff")
    assert code == 0
    assert out.splitlines()[:2] == ["--- stored, openai-chat:fake", "+++ now, fake"]
    assert out.splitlines()[3:] == [" roses", "-are red", "+are blue"]
    assert provider.wait_until_settled()[-1].body == sent
    provider.script = always(Text("roses\nare red"))
    assert clew("sessions", "replay", "main", 1, 1, "--diff")[1] == "the same answer\n"
    # Another model, which is not reached over the network.
    code, out, _ = clew("sessions", "replay", "main", 1, 1, "--model", "offline")
    assert (code, out) == (0, "You said: of what colour?\n")
    told = json.loads(clew("sessions", "replay", "main", 1, 1, "--diff", "--json")[1])
    assert told["now"] == {"model": "fake", "text": "roses\nare red", "same": True}
    shown = json.loads(clew("sessions", "show", "main", "--json")[1])
    assert shown["conversation"]["entries"] == 2


def test_a_request_that_cannot_be_replayed_is_reported(clew: Clew, provider: FakeProvider) -> None:
    provider.script = reply_in_sequence([Text("yes")])
    assert clew("chat", "hello")[0] == 0
    for turn, step in ((2, 1), (1, 2), ("trn_none", 1), ("none", 1)):
        code, _, err = clew("sessions", "replay", "main", turn, step)
        assert (code, "clew sessions show main --json" in err) == (2, True)
    assert clew("sessions", "replay", "main", 1, 0)[0] == 2
    provider.script = always(Fail("authentication"))
    code, out, err = clew("sessions", "replay", "main", 1, 1, "--diff")
    assert (code, out, "the model did not answer" in err) == (1, "", True)
    assert "sk-not-shown" not in err
    assert clew("sessions", "replay", "main", 1, 1, "--model", "nobody:x")[0] == 2


async def test_no_tool_runs_and_nothing_is_appended(tmp_path: Path) -> None:
    """Also where the answer to the request is another step, or a failure was stored."""
    async with open_desk(tmp_path, "chat") as desk:
        calls = Calls((ScriptedCall("unheard", {"at": "a"}),), text="I look.")
        desk.play(reply_in_sequence([Fail("overloaded"), calls, Text("done")]))
        said = await desk.say("talk", "look")
        assert said.ended.turn is not None
        conversation, turn = desk.ids["talk"], said.ended.turn.id
        desk.play(always(calls))
        sent = await desk.engine.replays.find_request(conversation, turn, 1)
        again = await desk.engine.replays.resend_request(sent)
        assert again.now == again.stored
        assert again.now.splitlines() == ["I look.", 'unheard({"at":"a"})']
        log = await desk.engine.read_entries(conversation)
        assert [entry.seq for entry in log] == [entry.seq for entry in said.entries]
        other = await desk.begin()
        with pytest.raises(NotFound, match=turn):
            await desk.engine.replays.find_request(desk.ids[other], turn, 1)
        assert await desk.check() == []


async def test_a_turn_is_found_by_its_number_on_both_databases(
    store_url: str, tmp_path: Path
) -> None:
    async with open_world(store_url, tmp_path) as world:
        said = [await world.say(text) for text in ("a:look", "b:")]
        for one in said:
            await world.end(one)
        conversation, ran = said[0].conversation_id, world.tools.ran.total()
        used = await world.store.inner.read(sum_usage, conversation)
        sent = await world.engine.replays.find_request(conversation, "1", 1)
        assert sent.entry.seq == 2
        assert (await world.engine.replays.find_request(conversation, "2", 1)).entry.seq == 6
        again = await world.engine.replays.resend_request(sent)
        assert again.now == again.stored == 'look({"what":"a00"})'
        assert world.tools.ran.total() == ran
        assert len(await world.log(conversation)) == 6
        more = await world.store.inner.read(sum_usage, conversation)
        assert more.output_tokens > used.output_tokens, "it is counted"
        for name in ("3", "0", "trn_none"):
            with pytest.raises(NotFound):
                await world.engine.replays.find_request(conversation, name, 1)
        assert await world.check() == []
