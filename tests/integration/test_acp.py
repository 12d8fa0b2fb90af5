"""Editors: the official client of their protocol at a server, beside other clients."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import acp
import pytest
from acp.schema import AudioContentBlock, McpServerStdio
from pydantic_ai.messages import ModelResponse, TextPart

from clew.commands.runner import CommandRunner
from clew.core.ids import ApprovalId, ConversationId
from clew.core.route import Route
from clew.core.scope import LOCAL, scope_of
from clew.tui.transports import in_process
from clew.wire.meta import KEY_FIELD
from tests.editors import EditorAtWork, editing
from tests.integration.rpc_clients import serve_over
from tests.integration.test_operation_scopes import context_for
from tests.line.plans import respond
from tests.line.world import World, open_world
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.scope import Scope

CHAT = Route.parse("agent:main:telegram:dm:42")


@asynccontextmanager
async def at_work(
    home: Path, *, viewer: Scope = LOCAL, url: str = "sqlite:///clew.db"
) -> AsyncGenerator[tuple[World, EditorAtWork]]:
    """An engine, and an editor at it."""
    async with open_world(url, home) as world:
        context = context_for(world.engine, home, viewer)
        async with editing(in_process(serve_over(context)), home) as editor:
            yield world, editor


async def refusal(call: Any) -> acp.RequestError:
    with pytest.raises(acp.RequestError) as refused:
        await call
    return refused.value


async def test_a_prompt_is_answered_in_pieces_and_loaded_as_it_was_told(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        assert await editor.say(session, "a: look read; send") == "end_turn"
        seen = editor.seen
        assert pieces(editor, session) == ["answer ", "to ", "a "]
        # Its own message is on the screen of the editor.
        assert not seen.of(session, "user_message_chunk")
        calls = [(one["title"], one["rawInput"]) for one in seen.of(session, "tool_call")]
        assert calls == [
            ("look", {"what": "a00"}), ("read", {"what": "a01"}), ("send", {"what": "a10"}),
        ]  # fmt: skip
        assert results(editor, session) == ["look a00 done", "read a01 done", "send a10 done"]

        await editor.load(session)
        assert seen.talk(session) == [("user", "a: look read; send"), ("agent", "answer to a ")]
        assert len(seen.of(session, "tool_call")) == 3
        assert results(editor, session) == ["look a00 done", "read a01 done", "send a10 done"]
        assert await world.check() == []


def pieces(editor: EditorAtWork, session: str) -> list[str]:
    """The pieces of the answers."""
    return [told["content"]["text"] for told in editor.seen.of(session, "agent_message_chunk")]


def results(editor: EditorAtWork, session: str) -> list[str]:
    """The results of the calls, in the order of the calls."""
    ended = {
        told["toolCallId"]: told["rawOutput"]
        for told in editor.seen.of(session, "tool_call_update")
        if "rawOutput" in told
    }
    return [ended[one["toolCallId"]] for one in editor.seen.of(session, "tool_call")]


async def test_a_question_is_asked_with_its_whole_arguments_and_what_was_chosen_counts(
    tmp_path: Path,
) -> None:
    answers = iter(["once", "deny", "hour"])
    async with at_work(tmp_path) as (world, editor):
        editor.seen.choose = lambda _: next(answers)
        session = await editor.open()
        for text in ("a: pay", "b: pay", "c: pay", "d: pay"):
            assert await editor.say(session, text) == "end_turn"
        call, options = editor.seen.asked[0]
        assert call.raw_input == {"what": "a00"}
        assert call.content is not None
        assert 'pay({"what":"a00"})' in call.content[0].model_dump_json().replace("\\", "")
        assert [(option.option_id, option.kind) for option in options] == [
            ("once", "allow_once"),
            ("hour", "allow_always"),
            ("always", "allow_always"),
            ("deny", "reject_once"),
        ]
        assert [call.tool_call_id for call, _ in editor.seen.asked] == [
            one["toolCallId"] for one in editor.seen.of(session, "tool_call")[:3]
        ]
        # What was allowed for an hour is not asked about.
        assert world.tools.ran == {"pay a00": 1, "pay c00": 1, "pay d00": 1}
        assert results(editor, session)[1].startswith("not approved")


async def test_a_question_is_asked_again_when_what_comes_back_is_no_answer(tmp_path: Path) -> None:
    answers = iter(["error", "none of them", "once"])

    def choose(_: object) -> str:
        if (chosen := next(answers)) == "error":
            raise acp.RequestError(-32603, "the window is gone")
        return chosen

    async with at_work(tmp_path) as (world, editor):
        editor.seen.choose = choose
        session = await editor.open()
        assert await editor.say(session, "a: pay") == "end_turn"
        assert world.tools.ran == {"pay a00": 1}
        assert (len(editor.seen.asked), editor.transport.others) == (3, [])


async def test_a_question_that_the_editor_never_answers_is_told_and_answered_by_a_command(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        asking = asyncio.create_task(editor.say(session, "a: pay"))
        await editor.seen.until_asked()
        # The first request of this program; neither a result nor an error.
        await editor.transport.send_line('{"jsonrpc": "2.0", "id": 0}')
        await editor.seen.until_asked(2)
        editor.seen.choose = lambda _: "none of them"
        await wait_until(lambda: "/approve apr_" in editor.seen.text(session))
        assert len(editor.seen.asked) == 3
        question = await world.question(ConversationId(session))
        assert f"`/approve {question.id}`" in editor.seen.text(session)
        assert await editor.say(session, f"/approve {question.id}") == "end_turn"
        assert await asking == "end_turn"
        assert world.tools.ran == {"pay a00": 1}


async def test_a_question_that_is_answered_elsewhere_disappears(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        asking = asyncio.create_task(editor.say(session, "a: pay"))
        await editor.seen.until_asked()
        question = await world.question(ConversationId(session))
        await world.engine.answer_approval(ApprovalId(question.id), yes=True)
        assert await asking == "end_turn"
        await wait_until(lambda: editor.transport.others)
        assert [told["method"] for told in editor.transport.others] == ["$/cancel_request"]
        assert world.tools.ran == {"pay a00": 1}


async def test_cancelling_stops_the_turn_and_withdraws_its_question(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        asking = asyncio.create_task(editor.say(session, "a: pay"))
        await editor.seen.until_asked()
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        assert world.tools.ran == {}
        await wait_until(lambda: editor.transport.others)
        assert [told["method"] for told in editor.transport.others] == ["$/cancel_request"]
        assert await editor.say(session, "b:") == "end_turn"


async def test_cancelling_a_prompt_that_waits_leaves_the_turn_of_another_front(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        conversation = ConversationId(session)
        other = await world.say("a: pay", to=conversation)
        await editor.seen.until_asked()
        asking = asyncio.create_task(editor.say(session, "b:"))

        async def queued() -> bool:
            return bool(await world.engine.list_queue(conversation))

        await world.until(queued)
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        question = await world.question(conversation)
        await world.engine.answer_approval(ApprovalId(question.id), yes=True)
        assert (await world.end(other)).text == "answer to a "


async def test_a_session_can_be_taken_to_a_chat_and_what_is_said_there_is_told(
    tmp_path: Path,
) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        await CommandRunner(world.engine).run_command(
            f"/resume {session}", target=CHAT, viewer=LOCAL
        )
        await world.end(await world.say("a:", to=CHAT))
        await wait_until(lambda: editor.seen.talk(session)[1:])
        assert editor.seen.talk(session) == [("user", "a:"), ("agent", "answer to a ")]
        await editor.load(CHAT.key)
        assert editor.seen.talk(CHAT.key) == [("user", "a:"), ("agent", "answer to a ")]


async def test_a_fork_is_a_branch_that_shows_what_it_was_made_from(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (_, editor):
        session = await editor.open()
        await editor.say(session, "a:")
        fork = (await editor.agent.fork_session(cwd=editor.folder, session_id=session)).session_id
        await editor.say(fork, "b:")
        again = (await editor.agent.fork_session(cwd=editor.folder, session_id=fork)).session_id
        for id_, said in ((session, ["a:"]), (again, ["a:", "b:"])):
            await editor.load(id_)
            assert [text for who, text in editor.seen.talk(id_) if who == "user"] == said


async def test_what_is_sent_again_with_its_key_is_done_once(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (world, editor):
        key: dict[str, Any] = {KEY_FIELD: "k1"}
        session = await editor.open(**key)
        assert await editor.open(**key) == session
        both = await asyncio.gather(*(editor.say(session, "a:", **key) for _ in range(2)))
        assert both == ["end_turn", "end_turn"]
        assert await world.shape(ConversationId(session)) == ["a", '"answer to a"']
        forks = [
            (
                await editor.agent.fork_session(cwd=editor.folder, session_id=session, **key)
            ).session_id
            for _ in range(2)
        ]
        assert forks[0] == forks[1] != session
        other = await refusal(editor.say(forks[0], "a:", **key))
        assert (other.code, "another" in str(other)) == (-32602, True)


async def test_a_command_with_a_key_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    key: dict[str, Any] = {KEY_FIELD: "k1"}
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        for text in ("a:", "b:"):
            await editor.say(session, text)
        for _ in range(2):
            refused = await refusal(editor.say(session, "/undo", **key))
            assert (refused.code, "without a key" in str(refused)) == (-32602, True)
        view = await world.engine.get_view(ConversationId(session))
        assert len(view.sessions) == 1
        assert await editor.say(session, "/undo") == "end_turn"
        assert await editor.say(session, "c:", **key) == "end_turn"


async def test_garbage_is_answered_with_a_sentence_and_changes_nothing(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (_, editor):
        for line in ("{", "[]", "1", '{"jsonrpc": "2.0", "method": 1}', '{"method": "x"}'):
            await editor.transport.send_line(line)
        await editor.transport.send({"jsonrpc": "2.0", "method": "none", "params": {}})
        await editor.transport.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {}})
        await wait_until(lambda: len(editor.transport.others) == 5)
        codes = [told["error"]["code"] for told in editor.transport.others]
        assert codes == [-32700, -32600, -32600, -32600, -32600]
        missing = await refusal(editor.agent.ext_method("none", {}))
        assert missing.code == -32601
        session = await editor.open()
        assert await editor.say(session, "a:") == "end_turn"


async def test_what_cannot_be_done_is_named(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (_, editor):
        agent = editor.agent
        server = McpServerStdio(name="tracker", command="/bin/tracker", args=[], env=[])
        opened = await agent.new_session(cwd="/elsewhere", mcp_servers=[server])
        session = opened.session_id
        await wait_until(lambda: editor.seen.text(session))
        assert "not used: tracker" in editor.seen.text(session)
        assert "not in /elsewhere" in editor.seen.text(session)
        sound = AudioContentBlock(type="audio", data="", mime_type="audio/wav")
        refused = await refusal(agent.prompt(session_id=session, prompt=[sound]))
        assert "'audio'" in str(refused)
        assert "empty" in str(await refusal(editor.say(session, " ")))
        assert "absolute" in str(await refusal(agent.new_session(cwd="here", mcp_servers=[])))
        assert "not open" in str(await refusal(editor.say("cnv_1", "hello")))
        unknown = await refusal(agent.load_session(cwd="/", session_id="none", mcp_servers=[]))
        assert (unknown.code, str(unknown)) == (-32002, "there is no conversation 'none'")
        assert "sign in" in str(await refusal(agent.authenticate(method_id="token")))


async def test_files_of_a_prompt_become_attachments(tmp_path: Path) -> None:
    linked = tmp_path / "notes.txt"
    linked.write_text("linked text", encoding="utf-8")
    async with at_work(tmp_path) as (world, editor):

        def see(_: object) -> ModelResponse:
            return ModelResponse(parts=[TextPart("seen")])

        world.model.script = see
        session = await editor.open()
        picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()
        embedded = acp.embedded_text_resource("file:///src/main.py", "embedded text")
        stopped = await editor.agent.prompt(
            session_id=session,
            prompt=[
                acp.text_block("Compare "),
                acp.resource_link_block("notes.txt", linked.as_uri()),
                acp.text_block(" with "),
                acp.resource_block(embedded),
                acp.image_block(picture, "image/png"),
            ],
        )
        assert stopped.stop_reason == "end_turn"
        sent = str(world.model.sent[0])
        assert f"Compare @{linked} with @/src/main.py" in sent
        assert "linked text" in sent
        assert "embedded text" in sent
        assert "image/png" in sent
        assert not editor.seen.of(session, "user_message_chunk")


async def test_a_command_is_run_where_all_commands_are_run(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (_, editor):
        session = await editor.open()
        await wait_until(lambda: editor.seen.of(session, "available_commands_update"))
        (told,) = editor.seen.of(session, "available_commands_update")
        names = {command["name"] for command in told["availableCommands"]}
        assert {"undo", "title"} <= names
        assert not {"new", "resume"} & names
        await editor.say(session, "a:")
        assert await editor.say(session, "/title Rome") == "end_turn"
        assert await editor.say(session, "/retry") == "end_turn"
        assert editor.seen.talk(session)[-1][1].endswith("answer to a ")
        listed = await editor.agent.list_sessions()
        assert [(one.session_id, one.title) for one in listed.sessions] == [(session, "Rome")]


async def test_a_turn_that_fails_is_an_error_with_its_sentence(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (world, editor):
        session = await editor.open()
        await editor.say(session, "a:")

        def fail(_: object) -> ModelResponse:
            raise RuntimeError("no such star")

        world.model.script = fail
        failed = await refusal(editor.say(session, "b:"))
        assert failed.code == -32603
        assert failed.data is not None
        assert failed.data["code"]
        world.model.script = respond
        assert await editor.say(session, "c:") == "end_turn"


async def test_an_editor_of_another_scope_reaches_nothing(tmp_path: Path) -> None:
    async with at_work(tmp_path, viewer=scope_of(CHAT)) as (world, editor):
        mine = (await world.say("a:")).conversation_id
        agent = editor.agent
        for call in (
            agent.load_session(cwd="/", session_id=mine, mcp_servers=[]),
            agent.resume_session(cwd="/", session_id=mine),
            agent.fork_session(cwd=editor.folder, session_id=mine),
            agent.load_session(cwd="/", session_id="talk", mcp_servers=[]),
            agent.new_session(cwd="/", mcp_servers=[]),
            agent.close_session(session_id=mine),
            agent.set_config_option(session_id=mine, config_id="model", value="x"),
            editor.say(mine, "b:"),
        ):
            assert (await refusal(call)).code == -32002
        await agent.cancel(session_id=mine)
        assert (await agent.list_sessions()).sessions == []
        assert editor.seen.told == []
