"""``clew chat`` on a terminal: typed by a person, stopped, pasted into, killed."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from clew.store.opening import open_store
from clew.store.transactions import conversations, inbox
from clew.testing import (
    Calls,
    Endless,
    FakeProvider,
    Hang,
    ScriptedCall,
    Text,
    count_user_texts,
    reply_by_user_text,
    reply_in_sequence,
)
from tests.acceptance.program import until
from tests.acceptance.terminal import CTRL_C, CTRL_D, Terminal

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.acceptance.program import Clew

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals"),
]


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


def test_the_banner_says_which_model_answers_and_why(clew: Clew) -> None:
    with Terminal(clew, "chat", "-c", "work") as terminal:
        terminal.see("offline (from CLEW_MODEL__NAME)")
        terminal.see("conversation work")
        terminal.see("> ")
        terminal.type("hello there\n")
        terminal.see("You said: hello there")
        terminal.see("> ")
        terminal.type("/quit\n")
        assert terminal.ended() == 0


def test_lines_are_remembered_only_for_the_arrow_keys(clew: Clew) -> None:
    with Terminal(clew, "chat") as terminal:
        terminal.see("> ")
        terminal.type("hello there\n")
        terminal.see("You said: hello there")
        terminal.see("> ")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0
    assert stat.S_IMODE((clew.home / "chat_history").stat().st_mode) == 0o600
    with Terminal(clew, "chat") as terminal:
        terminal.see("> ")
        terminal.type("\x1b[A\n")
        terminal.see("You said: hello there")


def test_ctrl_c_at_the_prompt_clears_the_line_and_the_second_leaves(clew: Clew) -> None:
    with Terminal(clew, "chat") as terminal:
        terminal.see("> ")
        terminal.press("not this")
        terminal.press(CTRL_C)
        terminal.see("once more")
        terminal.see("> ")
        terminal.type("but this\n")
        terminal.see("You said: but this")
        terminal.see("> ")
        terminal.press(CTRL_C)
        terminal.see("once more")
        terminal.see("> ")
        terminal.press(CTRL_C)
        assert terminal.ended() == 0
    assert ("user", "not this") not in clew.said()


def test_ctrl_c_stops_the_answer_and_the_chat_continues(clew: Clew, provider: FakeProvider) -> None:
    provider.script = reply_by_user_text({"go on": Endless()}, default=count_user_texts)
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("go on\n")
        terminal.see("again")
        terminal.type(CTRL_C)
        terminal.see("(stopped)")
        terminal.see("> ")
        terminal.type("and now?\n")
        terminal.see("turn 2: I have seen: go on | and now?")
        terminal.see("> ")
        terminal.press(CTRL_D)
        assert terminal.ended() == 0


def test_a_second_ctrl_c_leaves_though_the_answer_does_not_stop(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([], default=Hang())
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("hello\n")
        until(lambda: provider.requests)
        terminal.type(CTRL_C)
        terminal.see("(stopping")
        terminal.type(CTRL_C)
        assert terminal.ended() in (0, 130)


def test_input_typed_during_an_answer_is_answered_in_order(
    clew: Clew, provider: FakeProvider
) -> None:
    slow = Text("the first answer", chunks=8, delay=0.1)
    provider.script = reply_by_user_text({"first": slow}, default=count_user_texts)
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("first\n")
        terminal.see("the")
        terminal.type("second\nthird\n")
        terminal.see("> second")
        terminal.see("turn 2: I have seen: first | second")
        terminal.see("> third")
        terminal.see("turn 3: I have seen: first | second | third")
        terminal.see("> ")
    assert [text for who, text in clew.said() if who == "user"] == ["first", "second", "third"]


def test_input_begun_during_an_answer_is_at_the_next_prompt(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text(
        {"first": Text("the answer", chunks=8, delay=0.1)}, count_user_texts
    )
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("first\n")
        terminal.see("the")
        terminal.type("beg")
        terminal.see("> ")
        terminal.type("un\n")
        terminal.see("turn 2: I have seen: first | begun")


@pytest.mark.parametrize("during", [False, True], ids=["at the prompt", "during an answer"])
def test_a_paste_of_several_lines_is_one_message(
    clew: Clew, provider: FakeProvider, during: bool
) -> None:
    provider.script = reply_by_user_text(
        {"first": Text("the answer", chunks=8, delay=0.1)}, count_user_texts
    )
    paste = "\x1b[200~one\rtwo\r\rthree\x1b[201~\r"
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("first\n")
        terminal.see("the" if during else "> ")
        terminal.type(paste)
        terminal.see("turn 2: I have seen: first | one")
        terminal.see("> ")
    assert ("user", "one\ntwo\n\nthree") in clew.said()


def test_nothing_typed_is_lost_when_the_terminal_dies(
    durable: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"first": [Endless()]}, default=count_user_texts)
    with Terminal(durable.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("first\n")
        terminal.see("again")
        terminal.type("second\n")
        until(lambda: "second" in waiting(durable))
        terminal.kill()
    with Terminal(durable.asking(provider), "chat") as terminal:
        terminal.see("not answered yet: “first”")
        terminal.see("turn 1: I have seen: first")
        terminal.see("not answered yet: “second”")
        terminal.see("turn 2: I have seen: first | second")
        terminal.see("> ")
        terminal.type("third\n")
        terminal.see("turn 3: I have seen: first | second | third")
    assert [text for who, text in durable.said() if who == "user"] == ["first", "second", "third"]


def waiting(clew: Clew) -> list[str]:
    """The inputs that are stored and not begun."""

    async def read() -> list[str]:
        url = clew.env.get("CLEW_STORE__URL", "sqlite:///clew.db")
        async with await open_store(url, home=clew.home) as store:
            conversation = await store.read(conversations.resolve_conversation, "main")
            return [item.text for item in await store.read(inbox.list_open_items, conversation)]

    return asyncio.run(read())


def test_colours_are_left_out_where_they_are_not_wanted(clew: Clew) -> None:
    with Terminal(clew.with_env({"NO_COLOR": "1"}), "chat", "hello there") as terminal:
        terminal.see("You said: hello there")
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.screen


def test_a_terminal_is_not_moved_by_what_a_model_writes(clew: Clew, provider: FakeProvider) -> None:
    provider.script = reply_in_sequence([Text("a\x1b]0;title\x07b\x1b[2Jc")])
    with Terminal(clew.asking(provider), "chat", "hello") as terminal:
        terminal.see("a]0;titleb[2Jc")


def test_a_terminated_chat_restores_the_terminal(clew: Clew, provider: FakeProvider) -> None:
    provider.script = reply_in_sequence([], default=Endless())
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("hello\n")
        terminal.see("again")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.ended() == 143
        assert terminal.screen.rfind("\x1b[?2004l") > terminal.screen.rfind("\x1b[?2004h")


def test_json_wants_a_text_on_a_terminal(clew: Clew) -> None:
    with Terminal(clew, "chat", "--json") as terminal:
        terminal.see("--json needs a TEXT")
        assert terminal.ended() == 2


def test_commands_are_answered_also_while_an_answer_runs(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"go on": Endless()}, default=count_user_texts)
    with Terminal(clew.asking(provider), "chat") as terminal:
        terminal.see("> ")
        terminal.type("/nonsense\n")
        terminal.see("There is no command /nonsense")
        terminal.see("> ")
        terminal.type("go on\n")
        terminal.see("again")
        terminal.type("second\n/queue\n")
        terminal.see("second")
        terminal.type("/stop\n")
        terminal.see("(stopped)")
        terminal.see("> second")
        terminal.see("turn 2: I have seen: go on | second")
        terminal.see("> ")
        terminal.type("/title Plans\n")
        terminal.see("\n")
        terminal.see("> ")
    assert clew.data("sessions", "show", "main")["conversation"]["title"] == "Plans"


AGENT = '''
from pydantic_ai import Agent

agent = Agent()


@agent.tool_plain(requires_approval=True)
def cut_roses(colour: str) -> str:
    """Cut the roses of a colour."""
    return f"cut all {colour} ones"
'''


def gardening(clew: Clew) -> Clew:
    """The same, with an agent whose tool needs to be allowed."""
    plugins = clew.home / "plugins"
    plugins.mkdir(parents=True, mode=0o700)
    (plugins / "my_agents.py").write_text(AGENT, encoding="utf-8")
    return clew.with_env({"CLEW_AGENT__OBJECT": "my_agents:agent"})


@pytest.mark.parametrize("word", ["y", "/approve", "n", "/deny"])
def test_a_tool_that_needs_a_yes_asks_for_it(clew: Clew, word: str) -> None:
    own = gardening(clew)
    with Terminal(own, "chat") as terminal:
        terminal.see("> ")
        terminal.type('call cut_roses {"colour": "red"}\n')
        terminal.see('? cut_roses({"colour":"red"})')
        terminal.see("allows nothing)")
        terminal.type(f"{word}\n")
        terminal.see("The tool answered: ")
        terminal.see("> ")
    cut = "The tool answered: cut all red ones" in dict(own.said()).values()
    assert cut is (word in ("y", "/approve"))


def test_input_begun_before_the_question_is_not_its_answer(
    clew: Clew, provider: FakeProvider
) -> None:
    slow = Calls([ScriptedCall("cut_roses", {"colour": "red"})], text="I look", delay=0.3)
    provider.script = reply_by_user_text({"cut them": [slow]}, default=count_user_texts)
    own = gardening(clew).asking(provider)
    with Terminal(own, "chat") as terminal:
        terminal.see("> ")
        terminal.type("cut them\n")
        terminal.see("I look")
        terminal.press("ye")
        terminal.see("allows nothing)")
        terminal.type("s\n")
        terminal.see("“yes” answers nothing")
        terminal.type("actually, no, do not do that\n")
        terminal.see("still waits")
        terminal.type("no\n")
        terminal.see("is refused and does not run")
        terminal.see("> actually, no, do not do that")
        terminal.see("> ")
    assert ("user", "actually, no, do not do that") in own.said()
    assert "cut all red ones" not in str(own.said())


def test_a_paste_from_another_terminal_keeps_its_lines_and_loses_its_colours(clew: Clew) -> None:
    paste = "\x1b[200~one\x1b[13;1u\x1b[31mtwo\x1b[0m\x1b[13;1uthree\x1b[201~"
    with Terminal(clew, "chat") as terminal:
        terminal.see("> ")
        terminal.type(f"{paste}\n")
        terminal.see("You said: one")
        terminal.see("> ")
    assert ("user", "one\ntwo\nthree") in clew.said()
