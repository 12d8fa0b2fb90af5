"""Chat commands, as every front hands them in."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clew.agent.failover import ModelChain, RetryPolicy
from clew.commands.builtin import BUILTIN_COMMANDS
from clew.commands.runner import CommandRunner
from clew.core.command_text import is_command
from clew.core.reset_policy import ResetPolicy
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.core.session import IDLE, REOPEN, RESTORE, REWIND
from clew.engine.engine import Engine
from clew.engine.model_overrides import ModelOverrides
from clew.errors import NotFound, SettingsError
from clew.hooks.specs import hookimpl
from tests.contract.lifecycle.doubles import Provider, answered, calling, is_new_turn, shape
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import House, open_house
from tests.contract.test_s4_boundaries import Later
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from clew.commands.registry import ChatCommand, ChatCommandReply

CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")
OTHER = Route(platform="telegram", kind="dm", chat="c2", user="u2")
LOCALLY = local_route("talk")


@pytest.fixture
async def house(store_url: str, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(store_url, tmp_path) as opened:
        yield opened


async def _do(
    house: House, text: str, *, at: Route = CHAT, from_program: bool = False
) -> ChatCommandReply:
    runner = CommandRunner(house.engine, from_program=from_program)
    return await runner.run_command(text, target=at, viewer=scope_of(at))


async def test_an_unknown_command_gets_a_hint_and_never_silence(house: House) -> None:
    assert "Did you mean /stop?" in (await _do(house, "/stpo")).text
    assert "/help lists all" in (await _do(house, "/xyzzy")).text
    assert "/help lists all" in (await _do(house, "/")).text
    assert "/help lists all" in (await _do(house, "/etc/hosts")).text


def test_a_path_is_no_command() -> None:
    assert is_command("/new")
    assert is_command(" /NEW@my_bot  my title\nin two lines ")
    assert not is_command("/etc/hosts is broken")
    assert not is_command("//")
    assert not is_command("what does /new do?")


async def test_help_lists_every_command_and_describes_one(house: House) -> None:
    text = (await _do(house, "/help")).text
    assert all(f"/{command.name}" in text for command in BUILTIN_COMMANDS)
    assert "also /reset" in (await _do(house, "/help new")).text
    assert "Did you mean" in (await _do(house, "/help nwe")).text


@pytest.mark.parametrize("command", BUILTIN_COMMANDS, ids=lambda command: command.name)
async def test_every_command_says_something_where_nothing_was_said_yet(
    command: ChatCommand, house: House
) -> None:
    for name in (command.name, *command.aliases):
        assert (await _do(house, f"/{name}")).text.strip()


async def test_new_and_its_alias_start_afresh_with_a_title(house: House) -> None:
    old = (await house.say("hello", to=CHAT)).conversation
    reply = await _do(house, "/new My plans")
    assert reply.text.startswith(
        "New conversation: My plans\nModel: offline; its context size is unknown."
    )
    assert reply.conversation is not None
    assert reply.conversation != old
    view = await house.engine.get_view(reply.conversation)
    assert (view.conversation.title, view.routes) == ("My plans", (CHAT.key,))
    again = await _do(house, "/reset@clew_bot my plans")
    assert "New conversation" in again.text
    taken = await _do(house, "/new My plans")
    assert "New conversation, without the title" in taken.text
    assert "must" not in (await _do(house, f"/new {'x' * 300}")).text


async def test_new_stops_the_running_turn_and_stop_says_so(house: House) -> None:
    running = await house.hold(to=CHAT)
    assert (await _do(house, "/stop")).text == "Stopped."
    ended = await house.end(running)
    assert (ended.turn is not None, ended.text) == (True, "")
    assert (await _do(house, "/stop")).text == "Nothing is running here."


async def test_undo_takes_whole_exchanges_out_and_says_which(house: House) -> None:
    for text in ("one", "two", "three", "four"):
        await house.say(text, to=CHAT)
    assert "four" in (await _do(house, "/undo")).text
    assert "two" in (await _do(house, "/undo 2")).text
    await house.say("five", to=CHAT)
    assert shape(house.provider.sent[-1]) == ["one", "You said: one", "five"]
    assert (await house.head(CHAT.key)).opened_by == REWIND
    assert "too far back" in (await _do(house, "/undo 9")).text
    assert "not a number" in (await _do(house, "/undo all")).text


async def test_undo_counts_messages_that_were_answered_together_as_one(house: House) -> None:
    await house.say("before", to=CHAT)
    conversation = await house.engine.resolve_name(CHAT.key)
    await house.store.write(fill, conversation, 2, size=10)
    reply = await _do(house, "/undo")
    assert "1: xxx" in reply.text
    await house.say("after", to=CHAT)
    assert shape(house.provider.sent[-1]) == ["before", "You said: before", "after"]


async def test_retry_asks_the_last_message_again_in_its_place(house: House) -> None:
    await house.say("one", to=CHAT)
    await house.say("two", to=CHAT)
    reply = await _do(house, "/retry")
    assert "two" in reply.text
    assert reply.accepted is not None
    ended = await house.end(reply.accepted)
    assert ended.text == "You said: two"
    assert shape(house.provider.sent[-1]) == ["one", "You said: one", "two"]
    item = [e.text for e in await house.engine.read_entries(ended.conversation)]
    assert item.count("two") == 2


async def test_a_second_retry_does_not_bring_back_the_first_one(
    house: House,
) -> None:
    await house.say("one", to=CHAT)
    await house.say("two", to=CHAT)
    for _ in range(2):
        reply = await _do(house, "/retry")
        assert reply.accepted is not None
        await house.end(reply.accepted)
    assert shape(house.provider.sent[-1]) == ["one", "You said: one", "two"]


async def test_branch_continues_in_a_copy_and_leaves_the_original(house: House) -> None:
    old = (await house.say("hello", to=CHAT)).conversation
    reply = await _do(house, "/branch Another way")
    assert reply.conversation not in (None, old)
    ended = await house.say("and now?", to=CHAT)
    assert ended.conversation == reply.conversation
    assert shape(house.provider.sent[-1]) == ["hello", "You said: hello", "and now?"]
    view = await house.engine.get_view(ended.conversation)
    assert (view.conversation.title, view.conversation.origin) == ("Another way", old)
    assert (await house.engine.get_view(old)).conversation.last_seq == 2


async def test_rewind_goes_back_to_an_entry(house: House) -> None:
    await house.say("one", to=CHAT)
    await house.say("two", to=CHAT)
    assert "entry 2" in (await _do(house, "/rewind 2")).text
    await house.say("three", to=CHAT)
    assert shape(house.provider.sent[-1]) == ["one", "You said: one", "three"]
    assert "no entry 99" in (await _do(house, "/rewind 99")).text


async def test_compress_makes_the_context_smaller_and_restore_undoes_it(house: House) -> None:
    conversation = await house.open(CHAT)
    await house.store.write(fill, conversation, 20)
    assert (await _do(house, "/compact the weather")).text.startswith("Compacted: 20 messages")
    assert house.summariser.calls == 1
    await house.end(await house.engine.sessions.queue_restore(conversation))
    assert (await house.head(CHAT.key)).opened_by == RESTORE
    await house.say("and now?", to=CHAT)
    assert len(house.provider.sent[-1]) == 21
    nothing = await house.engine.sessions.queue_restore(conversation)
    assert "no compaction to undo" in str((await house.end(nothing)).note)


async def test_compress_says_why_nothing_was_done(house: House) -> None:
    await house.say("hello", to=CHAT)
    assert "nothing to compact" in (await _do(house, "/compress")).text


async def test_a_command_that_changes_a_conversation_waits_and_says_so(house: House) -> None:
    await house.say("one", to=CHAT)
    running = await house.hold(to=CHAT)
    for command in ("/undo", "/compress", "/retry", "/rewind 1"):
        assert "when the running turn has ended" in (await _do(house, command)).text
    assert len((await _do(house, "/queue")).text.splitlines()) == 4
    assert "answering" in (await _do(house, "/status")).text
    house.let_go()
    await house.end(running)
    await house.quiet(running.conversation_id)


async def test_title_shows_and_gives_the_name(house: House) -> None:
    assert "no conversation here yet" in (await _do(house, "/title")).text
    await _do(house, "/title Early bird")
    conversation = (await house.say("hello", to=CHAT)).conversation
    await house.quiet(conversation)
    assert (await _do(house, "/title")).text == "Early bird"
    await _do(house, "/title  Late   bird ")
    assert (await _do(house, "/title")).text == "Late bird"
    await _do(house, "/new")
    await house.say("hello again", to=CHAT)
    assert "already has the title" in (await _do(house, "/title Late bird")).text


async def test_sessions_and_resume_find_by_number_title_part_and_id(house: House) -> None:
    first = (await house.say("hello", to=CHAT)).conversation
    await _do(house, "/title Garden plans")
    await _do(house, "/new Kitchen plans")
    second = (await house.say("hello", to=CHAT)).conversation
    await house.quiet(second)
    listed = (await _do(house, "/sessions")).text.splitlines()
    assert listed[0].startswith("1. Kitchen plans (here)")
    assert listed[1].startswith("2. Garden plans")
    for meant in ("2", "garden PLANS", "garden", first):
        await _do(house, "/resume 1")
        reply = await _do(house, f"/resume {meant}")
        assert reply.conversation == first, meant
    assert "2 titles fit" in (await _do(house, "/resume plans")).text
    assert "no number 9" in (await _do(house, "/resume 9")).text
    assert "no conversation" in (await _do(house, "/resume nothing")).text
    assert "Garden" in (await _do(house, "/sessions gard")).text


async def test_a_conversation_that_was_left_by_new_is_continued_after_resume(
    house: House,
) -> None:
    first = (await house.say("remember me", to=CHAT)).conversation
    await _do(house, "/new")
    await house.quiet(first)
    await _do(house, f"/resume {first}")
    ended = await house.say("do you?", to=CHAT)
    assert ended.conversation == first
    assert (await house.head(first)).opened_by == REOPEN
    assert shape(house.provider.sent[-1])[0] == "remember me"


async def test_a_conversation_that_ended_by_a_pause_is_continued_after_resume(
    store_url: str, tmp_path: Path
) -> None:
    clock, policy = Later(), ResetPolicy(idle=timedelta(hours=1))
    async with open_house(store_url, tmp_path, clock=clock, reset=policy) as house:
        first = (await house.say("remember me", to=CHAT)).conversation
        clock.ahead = timedelta(hours=2)
        await house.engine.run_maintenance()
        await house.quiet(first)
        assert (await house.head(first)).end_reason == IDLE
        # The route leads there still; a message would start afresh.
        await _do(house, "/resume 1")
        assert (await house.engine.run_maintenance(dry_run=True)).overdue == 0
        ended = await house.say("do you?", to=CHAT)
        assert ended.conversation == first


async def test_a_conversation_that_has_paused_long_is_not_left_right_after_resume(
    store_url: str, tmp_path: Path
) -> None:
    clock, policy = Later(), ResetPolicy(idle=timedelta(hours=1))
    async with open_house(store_url, tmp_path, clock=clock, reset=policy) as house:
        first = (await house.say("remember me", to=local_route("elsewhere"))).conversation
        clock.ahead = timedelta(hours=2)
        reply = await _do(house, f"/resume {first}", at=LOCALLY)
        assert reply.conversation == first
        assert (await house.engine.run_maintenance(dry_run=True)).overdue == 0
        assert (await house.say("do you?", to=LOCALLY)).conversation == first


async def test_a_conversation_of_another_scope_cannot_be_seen_or_resumed(house: House) -> None:
    theirs = (await house.say("a secret", to=OTHER)).conversation
    await _do(house, "/title Secret plans", at=OTHER)
    await house.say("hello", to=CHAT)
    assert "Secret" not in (await _do(house, "/sessions")).text
    for command in (f"/resume {theirs}", "/resume Secret plans", "/resume 2"):
        assert "Continuing" not in (await _do(house, command)).text
    # The same title is free in another scope.
    assert "Secret plans" in (await _do(house, "/title Secret plans")).text
    stranger = scope_of(CHAT)
    for target in (OTHER, theirs):
        reply = await CommandRunner(house.engine).run_command(
            "/status", target=target, viewer=stranger
        )
        assert "there is no conversation" in reply.text.lower()
    for command in ("/new", "/resume 1", "/stop", "/title Mine now"):
        reply = await CommandRunner(house.engine).run_command(
            command, target=OTHER, viewer=stranger
        )
        assert "there is no conversation" in reply.text.lower()
    assert await house.engine.resolve_name(OTHER.key) == theirs
    # A person at the machine itself sees everything.
    assert "Secret" in (await _do(house, "/sessions", at=LOCALLY)).text
    reply = await CommandRunner(house.engine).run_command("/status", target=theirs, viewer=LOCAL)
    assert "Secret plans" in reply.text


async def test_an_id_has_no_route_to_move(house: House) -> None:
    conversation = (await house.say("hello", to=LOCALLY)).conversation
    for command in ("/new", f"/resume {conversation}"):
        reply = await CommandRunner(house.engine).run_command(
            command, target=conversation, viewer=LOCAL
        )
        assert "needs a name or a chat" in reply.text
    reply = await CommandRunner(house.engine).run_command(
        "/branch", target=conversation, viewer=LOCAL
    )
    assert str(reply.conversation) in reply.text


async def test_usage_and_status_tell_what_is_there(house: House) -> None:
    house.provider.answer = lambda _: answered("fine", tokens=1_234)
    await house.say("hello", to=CHAT)
    assert "Tokens in: 1,234" in (await _do(house, "/usage")).text
    status = (await _do(house, "/status")).text
    assert "doing: nothing" in status
    assert "entries: 2" in status


def pay(what: str) -> str:
    """Pay for it."""
    return f"paid for {what}"


def _buys(messages: list[ModelMessage]) -> ModelResponse:
    if is_new_turn(messages):
        return calling("pay", what="bread")
    return answered(f"done: {shape(messages)[-1]}")


class Careful:
    """A plugin that has a person asked."""

    @hookimpl
    def pre_tool_call(self) -> dict[str, str]:
        return {"action": "approve"}


@pytest.mark.parametrize(
    ("command", "said", "outcome"),
    [("/approve", "Allowed: pay.", "paid for bread"), ("/deny all", "Refused: pay.", "no")],
)
async def test_approve_and_deny_answer_what_waits_here_and_only_here(
    command: str, said: str, outcome: str, store_url: str, tmp_path: Path
) -> None:
    async with open_house(
        store_url, tmp_path, tools=[pay], plugins=[Careful()], provider=Provider(_buys)
    ) as house:
        accepted = await house.engine.submit("buy bread", target=CHAT)
        await wait_until(
            lambda: house.engine.list_approvals(accepted.conversation_id), "a question"
        )
        elsewhere = replace(CHAT, thread="t1")
        await house.engine.sessions.resume_conversation(elsewhere, accepted.conversation_id)
        assert "Nothing is waiting" in (await _do(house, command, at=elsewhere)).text
        assert "no question 2" in (await _do(house, "/approve 2")).text
        unnamed = (await _do(house, command, from_program=True)).text
        assert "name the question by its id, /" in unnamed
        assert (await _do(house, command)).text == said
        assert outcome in (await house.end(accepted)).text
        assert "Nothing is waiting" in (await _do(house, command)).text


async def test_a_conversation_asks_the_model_that_was_chosen_for_it(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, own_only=True) as house:
        other = Provider(lambda _: answered("from the other"))

        def make(name: str) -> ModelChain:
            if name not in ("main", "other"):
                raise SettingsError(f"there is no model {name!r}")
            return ModelChain([other.model], RetryPolicy(attempts=1), lambda: 0.0)

        choice = ModelOverrides(house.store, offered=("main", "other"), make=make)
        means = replace(house.means, model_overrides=choice)
        async with Engine(means, role="second", version="0") as engine:
            chosen = replace(house, engine=engine)
            assert "no conversation here" in (await _do(chosen, "/model")).text
            await chosen.say("hello", to=CHAT)
            assert "main. Available: main, other" in (await _do(chosen, "/model")).text
            assert "other answers here" in (await _do(chosen, "/model other")).text
            assert "The model is other" in (await _do(chosen, "/model")).text
            assert (await chosen.say("hello", to=CHAT)).text == "from the other"
            # Strangers choose from what is offered; whoever sits at the machine may try others.
            assert "not available here" in (await _do(chosen, "/model gpt-9")).text
            await chosen.say("hello", to=LOCALLY)
            assert "no model 'gpt-9'" in (await _do(chosen, "/model gpt-9", at=LOCALLY)).text
            assert (await chosen.say("hello", to=LOCALLY)).text == "You said: hello"


async def test_a_deleted_conversation_leaves_no_choice_behind(house: House) -> None:
    conversation = (await house.say("hello", to=LOCALLY)).conversation
    await house.engine.model_overrides.choose_model(conversation, "offline")
    await house.engine.delete_conversation(conversation)
    with pytest.raises(NotFound):
        await house.engine.get_view(conversation)
    assert await house.store.read(lambda t: t.fetch_all("SELECT * FROM setting")) == []
