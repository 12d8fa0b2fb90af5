"""``clew acp`` as an editor starts it: the official client, real processes, past kills."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import acp
import pytest

from clew.wire.meta import KEY_FIELD
from tests.acceptance.blind import TOOLS
from tests.editors import EditorAtWork, LineTransport
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.acceptance.program import Clew, Process

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def handy(durable: Clew) -> Clew:
    """``clew`` with a tool that asks, and one that takes very long."""
    plugins = durable.home / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "handy.py").write_text(TOOLS, encoding="utf-8")
    return durable.with_env({"CLEW_TOOLS__MODULES": '["handy"]'})


@asynccontextmanager
async def started(clew: Clew) -> AsyncGenerator[tuple[EditorAtWork, Process]]:
    """An editor with ``clew acp``, which must end with it and leave no traceback."""
    with clew.started("acp", piped=True) as process:
        source, sink = process.stdout, process.stdin
        assert source is not None
        assert sink is not None

        async def write(line: str) -> None:
            print(line, file=sink, flush=True)

        editor = EditorAtWork(
            LineTransport(lambda: asyncio.to_thread(source.readline), write), clew.home
        )
        await editor.agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        try:
            yield editor, process
        finally:
            if process.poll() is None:
                sink.close()
            await asyncio.to_thread(process.wait)
            await editor.agent.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


async def test_an_editor_can_do_everything_and_its_session_is_a_conversation(handy: Clew) -> None:
    answers = iter(["once", "deny"])
    async with started(handy) as (editor, process):
        editor.seen.choose = lambda _: next(answers)
        session = await editor.open()
        assert await editor.say(session, "hello there") == "end_turn"
        assert len(editor.seen.of(session, "agent_message_chunk")) > 1
        assert editor.seen.text(session) == "You said: hello there"
        for amount in (5, 7):
            assert await editor.say(session, f'call pay {{"amount": {amount}}}') == "end_turn"
        assert [call.raw_input for call, _ in editor.seen.asked] == [{"amount": 5}, {"amount": 7}]
        assert "paid 5" in editor.seen.text(session)
        assert "paid 7" not in editor.seen.text(session)
        lingering = asyncio.create_task(editor.say(session, "call linger"))
        await until_lingering(editor, session)
        await editor.agent.cancel(session_id=session)
        assert await lingering == "cancelled"
        await editor.transport.send_line("garbage")
        await wait_until(lambda: editor.transport.others)
        fork = (await editor.agent.fork_session(cwd=editor.folder, session_id=session)).session_id
        await editor.load(fork)
        assert editor.seen.talk(fork)[0] == ("user", "hello there")
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.to_thread(process.wait) == 0
    said = [text for who, text in handy.said(session) if who == "user"]
    assert said[:2] == ["hello there", 'call pay {"amount": 5}']
    assert handy.run("fsck").code == 0


async def until_lingering(editor: EditorAtWork, session: str) -> None:
    """Wait until the tool that takes very long runs."""

    def runs() -> bool:
        told = editor.seen.of(session, "tool_call_update")
        return any(one.get("status") == "in_progress" for one in told[-1:])

    await wait_until(runs)


async def test_beside_a_gateway_an_editor_shows_what_is_said_elsewhere(clew: Clew) -> None:
    with clew.serving():
        async with started(clew) as (editor, _):
            session = await editor.open()
            await asyncio.to_thread(clew.ok, "chat", "-c", session, "hello there")
            await wait_until(lambda: editor.seen.talk(session)[1:])
            assert editor.seen.talk(session)[0] == ("user", "hello there")
            assert await editor.say(session, "what did I say?") == "end_turn"
            assert editor.seen.text(session).endswith("You told me: hello there")


@pytest.mark.parametrize("durable", ["sqlite"], indirect=True)
async def test_after_a_kill_a_session_is_loaded_whole_and_its_turn_goes_on(handy: Clew) -> None:
    async with started(handy) as (editor, process):
        session = await editor.open()
        await editor.say(session, "hello there")
        asking = asyncio.create_task(editor.say(session, "call linger", **{KEY_FIELD: "k"}))
        await until_lingering(editor, session)
        process.kill()
        with pytest.raises(ConnectionError):
            await asking
    async with started(handy) as (editor, _):
        await editor.load(session)
        talk = editor.seen.talk(session)
        assert talk[:2] == [("user", "hello there"), ("agent", "You said: hello there")]
        assert [text for who, text in talk if who == "user"][1:] == ["call linger"]
        # Sent again, it is the same message: its turn goes on, and says what is not known.
        assert await editor.say(session, "call linger", **{KEY_FIELD: "k"}) == "end_turn"
        assert [told["title"] for told in editor.seen.of(session, "tool_call")] == ["linger"]
        assert "outcome unknown" in editor.seen.of(session, "tool_call_update")[-1]["rawOutput"]
    assert [text for who, text in handy.said(session) if who == "user"] == [
        "hello there", "call linger",
    ]  # fmt: skip
