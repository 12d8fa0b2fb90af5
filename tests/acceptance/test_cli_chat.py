"""``clew chat`` with a text: answers, failures, and processes that die."""

from __future__ import annotations

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from clew.testing import (
    CutStream,
    Endless,
    Fail,
    FakeProvider,
    Hang,
    Text,
    count_user_texts,
    reply_by_user_text,
    reply_in_sequence,
)
from tests.acceptance.program import CLEW, until

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.testing import ProviderRequest
    from tests.acceptance.program import Clew

# Each of these starts several processes, on machines that do other things as well.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with FakeProvider() as provider:
        yield provider


def slowly(request: ProviderRequest) -> Text:
    return Text(f"to {request.last_user_text}", chunks=9, delay=0.05)


def test_messages_are_remembered_by_the_next_process(clew: Clew) -> None:
    clew.ok("chat", "my", "name", "is", "Ariadne")
    clew.ok("chat", "-c", "other", "something else")
    assert clew.ok("chat", "what did I say?") == "You told me: my name is Ariadne\n"


def test_the_default_tools_and_instructions_take_at_most_10_kb_of_a_request(
    clew: Clew, provider: FakeProvider
) -> None:
    clew.asking(provider).ok("chat", "hi")
    sent = provider.requests[0].json
    assert sent is not None
    told = [one for one in sent["messages"] if one["role"] != "user"]
    names = [tool["function"]["name"] for tool in sent["tools"]]
    assert {"shell", "read_file", "web_fetch", "recall", "schedule"} <= {*names}
    assert len(json.dumps([told, sent["tools"]], separators=(",", ":"))) <= 10_000


def test_piped_input_is_a_message_and_only_the_answer_is_printed(clew: Clew) -> None:
    ran = clew.run("chat", text="one\ntwo\n")
    assert (ran.code, ran.out, ran.err) == (0, "You said: one\ntwo\n", "")
    assert clew.ok("chat", "-", text="three") == "You said: three\n"


def test_the_offline_model_says_why_it_answers(clew: Clew) -> None:
    unset = clew.with_env({"CLEW_MODEL__NAME": ""})
    del unset.env["CLEW_MODEL__NAME"]
    ran = unset.run("chat", "hello there")
    assert (ran.code, ran.out) == (0, "You said: hello there\n")
    assert "no model is configured" in ran.err


def test_json_has_the_place_and_the_cost_of_the_answer(clew: Clew) -> None:
    told = clew.data("chat", "-c", "work", "hello there")
    assert told.keys() == {"conversation", "session", "turn", "text", "usage"}
    assert told["text"] == "You said: hello there"
    assert told["usage"]["output_tokens"] > 0
    shown = clew.data("sessions", "show", told["conversation"])
    assert shown["conversation"]["head_session"] == told["session"]
    assert {entry["turn"] for entry in shown["items"]} == {told["turn"]}
    assert (
        clew.data("chat", "-c", told["session"], "again")["conversation"] == (told["conversation"])
    )


LOUD = """
import os, subprocess
def shout() -> str:
    print("a tool prints")
    os.system("echo a program prints")
    return repr(subprocess.run(["cat"], capture_output=True).stdout)
tools = [shout]
"""
ORDERS = (
    {"method": "prompt.submit", "params": {"session_id": "main", "text": "call shout"}},
    {"method": "events.subscribe", "params": {"conversation": "main", "after": 0}},
)


def test_output_of_a_tool_is_in_no_answer_and_it_reads_no_input(clew: Clew) -> None:
    clew.home.joinpath("plugins").mkdir(parents=True)
    clew.home.joinpath("plugins", "loud.py").write_text(LOUD)
    loud = clew.with_env({"CLEW_TOOLS__MODULES": '["loud"]'})
    assert loud.data("chat", "-c", "other", "call shout")["text"] == "The tool answered: b''"
    with loud.started("rpc", piped=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders = [{"jsonrpc": "2.0", "id": n, **order} for n, order in enumerate(ORDERS)]
        process.stdin.write("".join(f"{json.dumps(order)}\n" for order in orders))
        process.stdin.flush()
        # Every line is a frame, until the answer.
        frames = (json.loads(line) for line in process.stdout)
        assert any("The tool answered: b''" in json.dumps(frame) for frame in frames)
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_without_standard_streams_it_works_all_the_same(clew: Clew) -> None:
    shell = ["sh", "-c", '"$0" chat one >&- 2>&- <&-', CLEW]
    assert subprocess.run(shell, env=clew.environ, check=False, timeout=60).returncode == 0
    assert clew.said() == [("user", "one"), ("assistant", "You said: one")]


def test_a_failed_turn_is_reported_on_standard_error_and_exits_1(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([Fail("authentication")])
    ran = clew.asking(provider).run("chat", "hello")
    assert (ran.code, ran.out) == (1, "")
    assert "401" in ran.err
    assert clew.asking(provider).run("chat", "hello", "--json").code == 0


def test_an_answer_that_was_cut_is_void_and_the_next_one_is_printed_whole(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([CutStream(after=2), Text("the whole answer")])
    ran = clew.asking(provider).run("chat", "hello")
    assert ran.code == 0
    assert ran.out == "one two t\nthe whole answer\n"
    assert "ignore the text" in ran.err
    provider.script = reply_in_sequence([CutStream(after=2), Text("the second answer")])
    assert clew.asking(provider).data("chat", "again")["text"] == "the second answer"


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["chat", "-c", "cnv_nothing", "hello"], "clew sessions list"),
        (["chat", "-c", "agent:main", "hello"], "session key"),
        (["chat", "  "], "empty"),
        (["chat", "--nonsense"], "No such option"),
        (["--set", "model.nam=x", "chat", "hello"], "model.name"),
    ],
)
def test_an_impossible_request_exits_2_and_says_what_to_do(
    clew: Clew, args: list[str], hint: str
) -> None:
    ran = clew.run(*args)
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert "Traceback" not in ran.err


def test_ctrl_c_stops_the_answer_and_keeps_what_was_said(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"go on": Endless()}, default=count_user_texts)
    asking = clew.asking(provider)
    with asking.started("chat", "go on") as process:
        assert process.stdout is not None
        process.stdout.read(10)  # it streams
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert process.returncode == 130
        assert "stopped" in err
    (_, asked), (_, partial), _ = clew.said()
    assert asked == "go on"
    assert partial
    assert asking.ok("chat", "and now?") == "turn 2: I have seen: go on | and now?\n"


def test_a_reader_that_goes_away_does_not_cost_the_answer(
    clew: Clew, provider: FakeProvider
) -> None:
    story = " ".join(f"word{n}" for n in range(2000))
    provider.script = reply_in_sequence([Text(story, chunks=200, delay=0.005)])
    with clew.asking(provider).started("chat", "a story") as process:
        assert process.stdout is not None
        process.stdout.read(5)
        process.stdout.close()
        assert process.wait() == 1
    assert clew.said() == [("user", "a story"), ("assistant", story)]


def test_a_turn_whose_process_was_killed_is_answered_before_the_next_one(
    durable: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"first": [Hang()]}, default=count_user_texts)
    asking = durable.asking(provider)
    with asking.started("chat", "first") as process:
        until(lambda: provider.requests or process.poll() is not None)
        process.kill()
    ran = asking.run("chat", "second")
    assert (ran.code, ran.out) == (0, "turn 2: I have seen: first | second\n")
    assert "not answered yet: “first”" in ran.err
    assert "turn 1: I have seen: first" in ran.err
    assert durable.said() == [
        ("user", "first"),
        ("assistant", "turn 1: I have seen: first"),
        ("user", "second"),
        ("assistant", "turn 2: I have seen: first | second"),
    ]


def test_two_chats_at_once_in_one_conversation_are_both_answered(
    durable: Clew, provider: FakeProvider
) -> None:
    provider.script = slowly
    asking = durable.asking(provider)
    with ThreadPoolExecutor() as people:
        answers = list(people.map(partial(asking.ok, "chat"), ["one", "two"]))
    assert answers == ["to one\n", "to two\n"]
    said = durable.said()
    assert sorted(said[:2] + said[2:]) == sorted(
        [("user", "one"), ("assistant", "to one"), ("user", "two"), ("assistant", "to two")]
    )
    assert [text.removeprefix("to ") for _, text in said[1::2]] == [text for _, text in said[::2]]


def test_an_answer_that_another_process_makes_is_printed_once(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = slowly
    asking = clew.asking(provider)
    with asking.serving(), ThreadPoolExecutor() as people:
        texts = [f"question {n}" for n in range(3)]
        answers = list(people.map(partial(asking.ok, "chat"), texts))
    assert answers == [f"to {text}\n" for text in texts]
    assert len(clew.said()) == 6


def test_a_person_who_stops_waiting_for_her_turn_takes_her_message_back(
    clew: Clew, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"first": Hang()}, default=count_user_texts)
    asking = clew.asking(provider)
    with asking.started("chat", "first") as first:
        until(lambda: provider.requests or first.poll() is not None)
        with asking.started("chat", "second") as second:
            assert second.stderr is not None
            assert "not answered yet" in second.stderr.readline()
            second.send_signal(signal.SIGINT)
            out, err = second.communicate()
            assert (second.returncode, out) == (130, "")
            assert "taken back" in err
        first.send_signal(signal.SIGINT)
        first.communicate()
        assert first.returncode == 130
    assert [text for who, text in clew.said() if who == "user"] == ["first"]


def test_a_command_is_carried_out_and_its_reply_printed(clew: Clew) -> None:
    clew.ok("chat", "hello there")
    assert clew.ok("chat", "/title", "Plans").strip()
    told = clew.data("chat", "/title")
    assert (told["turn"], "Plans" in told["text"]) == (None, True)
    assert clew.ok("chat", "/retry") == "You said: hello there\n"
    clew.ok("chat", "/new")
    assert clew.ok("chat", "what did I say?") == "You have not told me anything yet.\n"


def test_a_session_key_in_the_place_of_a_text_is_refused_with_the_option(clew: Clew) -> None:
    ran = clew.run("chat", "agent:coach:local:training", "What is on?")
    assert ran.code == 2
    assert "clew chat -c agent:coach:local:training" in ran.err


def test_what_is_to_be_forgotten_is_not_shown_before_the_next_answer(clew: Clew) -> None:
    clew.ok("chat", "/remember I like figs")
    clew.ok("chat", "hello")
    clew.ok("memory", "forget", "1")
    ran = clew.run("chat", "Good morning")
    assert (ran.code, ran.err) == (0, "")
