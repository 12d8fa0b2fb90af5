"""The fake provider as a server: what it refuses, its scripts, its records, its life."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.error import HTTPError
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

import anthropic
import openai
import pytest

from clew.testing.fake_server import _disable_nagle  # pyright: ignore[reportPrivateUsage]
from clew.testing.provider import (
    Calls,
    FakeProvider,
    Hang,
    ProviderRequest,
    Reply,
    ScriptedCall,
    Text,
    count_user_texts,
    echo,
    read_log,
    reply_by_user_text,
    reply_in_sequence,
    reply_once_each,
)
from clew.testing.provider.scripts import load_script
from tests.integration.provider_clients import ask, openai_client
from tests.waiting import block_until

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator


@pytest.fixture(params=["chat", "responses", "messages"])
def wire(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture(params=[False, True], ids=["plain", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return cast("bool", request.param)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


# Histories that a provider refuses.

Item = dict[str, Any]
CALL: Item = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
USE: Item = {"type": "tool_use", "id": "c1", "name": "add", "input": {}}
RESULT: Item = {"type": "tool_result", "tool_use_id": "c1", "content": "3"}
USER: Item = {"role": "user", "content": "go"}


@pytest.mark.parametrize(
    ("path", "history", "words"),
    [
        ("chat/completions", [], "empty array"),
        (
            "chat/completions",
            [USER, {"role": "assistant", "tool_calls": [CALL]}, USER],
            "did not have response messages: c1",
        ),
        (
            "chat/completions",
            [USER, {"role": "assistant", "tool_calls": [CALL]}],
            "did not have response messages: c1",
        ),
        (
            "chat/completions",
            [USER, {"role": "tool", "tool_call_id": "c1", "content": "3"}],
            "must be a response to",
        ),
        (
            "responses",
            [USER, {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}],
            "No tool output found for function call c1",
        ),
        (
            "responses",
            [USER, {"type": "function_call_output", "call_id": "c1", "output": "3"}],
            "No tool call found",
        ),
        ("messages", [], "at least one message"),
        (
            "messages",
            [
                USER,
                {"role": "assistant", "content": [USE]},
                {"role": "user", "content": [RESULT]},
                {"role": "assistant", "content": [USE]},
                {"role": "user", "content": [RESULT]},
            ],
            "ids must be unique",
        ),
        ("messages", [{"role": "user", "content": " "}], "non-whitespace"),
        (
            "messages",
            [USER, {"role": "assistant", "content": [USE]}, USER],
            "`tool_use` ids were found without `tool_result`",
        ),
        (
            "messages",
            [USER, {"role": "assistant", "content": [USE]}],
            "`tool_use` ids were found without `tool_result`",
        ),
        (
            "messages",
            [USER, {"role": "assistant", "content": "x"}, {"role": "user", "content": [RESULT]}],
            "unexpected `tool_use_id`",
        ),
    ],
)
def test_a_history_that_a_provider_refuses_never_reaches_the_script(
    provider: FakeProvider, path: str, history: list[Item], words: str
) -> None:
    key = "input" if path == "responses" else "messages"
    body = {"model": "m", "max_tokens": 10, key: history}
    with openai_client(provider) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post(f"/{path}", body=body, cast_to=object)
    assert words in caught.value.message
    assert [r.outcome for r in provider.wait_until_settled()] == ["refused"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("chat/completions", "provide a model"),
        ("responses", "Missing required parameter: 'model'"),
        ("messages", "model: Field required"),
    ],
)
def test_a_request_without_a_model_is_refused(
    provider: FakeProvider, path: str, words: str
) -> None:
    body = {"max_tokens": 10, "messages": [USER], "input": [USER]}
    with openai_client(provider) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post(f"/{path}", body=body, cast_to=object)
    assert words in caught.value.message


def test_a_whole_tool_exchange_is_accepted_and_its_results_are_seen(
    provider: FakeProvider,
) -> None:
    seen = list[ProviderRequest]()

    def script(request: ProviderRequest) -> Reply:
        seen.append(request)
        return Text("ok")

    provider.script = script
    answered: Item = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    item = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "3"}
    chat: list[Item] = [USER, {"role": "assistant", "tool_calls": [CALL]}, answered]
    messages: list[Item] = [
        USER,
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [RESULT]},
    ]
    with openai_client(provider) as client:
        for path, key, history in (
            ("chat/completions", "messages", chat),
            ("responses", "input", [USER, item, output]),
            ("messages", "messages", messages),
        ):
            body = {"model": "m", "max_tokens": 10, key: history}
            client.post(f"/{path}", body=body, cast_to=object)
    assert [[r.text for r in request.new_results] for request in seen] == [["3"]] * 3
    assert {request.last_user_text for request in seen} == {"go"}
    assert [request.earlier_requests for request in seen] == [0, 1, 2]


# Scripts.


def test_the_counter_shows_the_size_of_the_context(provider: FakeProvider) -> None:
    provider.script = count_user_texts
    history: Any = [USER, {"role": "assistant", "content": "yes"}, USER]
    with openai_client(provider) as client:
        answer = client.chat.completions.create(model="m", messages=history)
    assert answer.choices[0].message.content == "turn 2: I have seen: go | go"


def test_answers_can_depend_on_the_last_user_text(provider: FakeProvider) -> None:
    provider.script = reply_by_user_text({"a": [Text("1"), Text("2")], "b": Text("always")})
    said = [ask(provider, "chat", stream=False, say=say).text for say in "aaabbc"]
    assert said == ["1", "2", "echo: a", "always", "always", "echo: c"]


def test_once_each_shows_every_reply_to_every_text(provider: FakeProvider) -> None:
    provider.script = reply_once_each([Text("x"), Text("y")])
    said = [ask(provider, "chat", stream=False, say=say).text for say in "aababb"]
    assert said == ["x", "y", "x", "echo: a", "y", "echo: b"]


def test_a_script_that_fails_fails_the_test() -> None:
    def broken(request: ProviderRequest) -> Reply:
        raise LookupError(request.last_user_text)

    with pytest.raises(LookupError, match="go"), FakeProvider(broken) as provider:  # noqa: PT012
        with pytest.raises(openai.InternalServerError, match="the script failed"):
            ask(provider, "chat", stream=False)
        assert [r.outcome for r in provider.wait_until_settled()] == ["script_failed"]


def test_a_script_is_found_by_its_name() -> None:
    assert load_script("echo") is echo
    assert load_script("counter") is count_user_texts
    assert load_script("clew.testing.provider.scripts:echo") is echo
    with pytest.raises(ValueError, match="neither 'echo' nor 'counter' nor"):
        load_script("nonsense")


# Captures and life cycle.


def test_a_capture_holds_everything_but_the_secrets(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    before, begun = time.time(), time.monotonic()
    ask(provider, wire, stream=stream, say="wörd")
    (captured,) = provider.wait_until_settled()
    assert (captured.format, captured.stream, captured.status) == (wire, stream, 200)
    assert captured.json == json.loads(captured.body)
    assert "sk-secret" not in repr(captured)
    assert captured.headers["content-type"] == "application/json"
    assert (captured.outcome, captured.reply, captured.text) == ("answered", "Text", "echo: wörd")
    assert captured.ended is not None
    assert captured.ended_wall is not None
    assert begun <= captured.started <= captured.ended <= time.monotonic()
    assert before <= captured.ended_wall <= time.time()


def test_the_log_holds_what_was_captured(tmp_path: Path, wire: str) -> None:
    log = tmp_path / "provider.jsonl"
    assert read_log(log) == []
    with FakeProvider(
        reply_in_sequence([Calls([ScriptedCall("add")]), Text("ünd")]), log=log
    ) as provider:
        for stream in (True, False):
            ask(provider, wire, stream=stream, say="wörd")
        captured = provider.wait_until_settled()
    assert read_log(log) == captured
    assert len(captured[0].call_ids) == 1


def test_a_body_that_is_no_json_is_refused(provider: FakeProvider) -> None:
    request = UrlRequest(f"{provider.openai_url}/chat/completions", data=b"\xff{")
    with pytest.raises(HTTPError) as caught:
        urlopen(request, timeout=120)
    with caught.value as answer:
        assert b"could not parse the JSON body" in answer.read()
    (captured,) = provider.wait_until_settled()
    assert (captured.body, captured.outcome) == (b"\xff{", "refused")


def test_an_unknown_path_is_not_found_and_not_captured(provider: FakeProvider) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(f"{provider.url}/v2/models", timeout=120)
    with caught.value as answer:
        assert answer.code == 404
    assert provider.wait_until_settled() == []


def test_without_strictness_any_history_reaches_the_script() -> None:
    body = {"model": "m", "messages": [USER, {"role": "assistant", "tool_calls": [CALL]}]}
    with FakeProvider(strict=False) as provider, openai_client(provider) as client:
        client.post("/chat/completions", body=body, cast_to=object)
        assert [r.outcome for r in provider.wait_until_settled()] == ["answered"]


def test_to_settle_has_a_time_limit(provider: FakeProvider) -> None:
    provider.script = reply_in_sequence([Hang()])
    waiting = threading.Thread(target=hang_up, args=(provider,))
    waiting.start()
    until(lambda: len(provider.requests))
    with pytest.raises(TimeoutError, match="still being answered"):
        provider.wait_until_settled(timeout=0.02)
    waiting.join(40)
    assert [r.outcome for r in provider.wait_until_settled()] == ["client_gone"]


def hang_up(provider: FakeProvider) -> None:
    """Ask, and give up after half a second."""
    with pytest.raises(openai.APITimeoutError):
        ask(provider, "chat", stream=False, timeout=0.5)


def test_closing_breaks_off_what_hangs(wire: str, stream: bool) -> None:
    with FakeProvider(reply_in_sequence([Hang()])) as provider:
        failures = list[Exception]()

        def wait() -> None:
            try:
                ask(provider, wire, stream=stream, timeout=120)
            except (openai.APIConnectionError, anthropic.APIConnectionError) as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        block_until(lambda: provider.requests, pause=0.001)
    waiting.join(40)
    (failure,) = failures
    # Broken off, and not given up by the client.
    assert not isinstance(failure, (openai.APITimeoutError, anthropic.APITimeoutError))
    assert [r.outcome for r in provider.requests] == ["server_closed"]


def test_a_streamed_answer_is_not_held_back(
    provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece is sent at once, and does not wait for the client to confirm the one before."""
    history: Any = [USER]
    at_once: list[int] = []

    def note(writer: asyncio.StreamWriter) -> None:
        _disable_nagle(writer)
        accepted = writer.get_extra_info("socket")
        at_once.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr("clew.testing.fake_server._disable_nagle", note)
    with (
        openai_client(provider) as client,
        client.chat.completions.create(model="m", messages=history, stream=True) as chunks,
    ):
        list(chunks)
    assert at_once
    assert all(at_once)


def test_its_port_can_be_taken_again_after_it_closed() -> None:
    with FakeProvider() as first:
        ask(first, "chat", stream=False)
        port = int(first.url.rpartition(":")[2])
    with FakeProvider(port=port) as second:
        assert ask(second, "chat", stream=False).text == "echo: go"


def test_many_clients_at_once_get_their_own_answers(provider: FakeProvider) -> None:
    heard = dict[str, str]()

    def one(name: str) -> None:
        heard[name] = ask(provider, "chat", stream=True, say=name, timeout=120).text

    threads = [threading.Thread(target=one, args=(f"client {n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert heard == {f"client {n}": f"echo: client {n}" for n in range(12)}


class Process:
    """The provider as a process, with the little that the clients ask of a provider."""

    def __init__(self, log: Path, script: str) -> None:
        source = Path(__file__).parents[2] / "src"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "clew.testing.provider", "--script", script, "--log", str(log)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(log.parent)])},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.openai_url = f"{self.url}/v1"

    def under_way(self) -> int:
        """Return the number of requests that it received."""
        with urlopen(f"{self.url}/_fake/requests", timeout=120) as answer:
            return len(json.loads(answer.read()))


def test_as_a_process_it_logs_every_request_and_outlives_its_clients(tmp_path: Path) -> None:
    log = tmp_path / "provider.jsonl"
    running = Process(log, "counter")
    provider = cast("FakeProvider", running)
    with running.process as process:
        try:
            assert ask(provider, "chat", stream=True).text == "turn 1: I have seen: go"
            assert ask(provider, "responses", stream=False).text == "turn 1: I have seen: go"
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 0
    first, second = read_log(log)
    assert (first.number, first.format, first.outcome) == (1, "chat", "answered")
    assert (second.number, second.format, second.stream) == (2, "responses", False)
    assert first.ended is not None
    assert first.started < first.ended < second.started < time.monotonic()
    assert first.json is not None
    assert first.json["messages"] == [USER]


def test_a_killed_client_is_seen_and_logged(tmp_path: Path) -> None:
    log = tmp_path / "provider.jsonl"
    (tmp_path / "own.py").write_text(
        "from clew.testing.provider import Hang\nhang = lambda _: Hang()"
    )
    running = Process(log, "own:hang")
    code = (
        "import sys, urllib.request as u;"
        'u.urlopen(u.Request(sys.argv[1], data=b\'{"model":"m","messages":[{}]}\'))'
    )
    with running.process as process:
        try:
            url = f"{running.openai_url}/chat/completions"
            with subprocess.Popen([sys.executable, "-c", code, url]) as client:
                until(running.under_way)
                client.kill()
            until(lambda: len(read_log(log)))
        finally:
            process.terminate()
    assert [r.outcome for r in read_log(log)] == ["client_gone"]


def until(condition: Callable[[], int]) -> None:
    """Wait for something that another process does."""
    block_until(condition)
