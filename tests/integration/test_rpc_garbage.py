"""Whatever a client sends, each request has one answer that the protocol knows."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import MAX_OPEN_REQUESTS, serve_client
from clew.wire.errors import ErrorCode
from tests.contract import invariants
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from tests.integration.api_server import Server

CODES = {code.value for code in ErrorCode}
#: Valid values of some arguments, so that more calls pass the checks.
LIKELY = st.sampled_from(["talk", "main", "inb_0", "apr_0", "cnv_0", "/status", "/new", "api.port"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | LIKELY,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """A request with arguments that the method takes, and sometimes others."""
    method = draw(st.sampled_from(BUILTIN_OPERATIONS.methods))
    names = list(method.params.model_fields)
    params = {name: draw(LIKELY | VALUES) for name in names if draw(st.booleans())}
    if draw(st.integers(0, 9)) == 0:
        params[draw(st.text(max_size=5))] = draw(VALUES)
    return {"jsonrpc": "2.0", "method": method.name, "params": params}


class Bench:
    """A dispatcher in a loop of its own."""

    def __init__(self, runner: asyncio.Runner, server: Server) -> None:
        self._runner = runner
        self._office = OperationContext(
            operations=BUILTIN_OPERATIONS, engine=server.engine, settings=server.settings
        )

    def answers(self, frames: Sequence[str | bytes]) -> list[Any]:
        """Return the answers to a client that sends this."""
        heard: list[str] = []

        async def sent() -> AsyncIterator[str | bytes]:
            for frame in frames:
                yield frame

        async def hear(frame: str) -> None:
            heard.append(frame)

        self._runner.run(serve_client(self._office, sent(), hear, patience=10))
        return [message for frame in heard if "method" not in (message := json.loads(frame))]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with asyncio.Runner() as runner:
        serving = running(settings_for(tmp_path))
        server = runner.run(serving.__aenter__())
        yield Bench(runner, server)
        runner.run(server.engine.wait_until_idle())
        assert runner.run(server.store.read(invariants.check)) == []
        runner.run(serving.__aexit__(None, None, None))


def _fits(answer: Any) -> None:
    assert answer["jsonrpc"] == "2.0"
    assert ("result" in answer) != ("error" in answer)
    if error := answer.get("error"):
        assert error["code"] in CODES
        assert error["code"] != ErrorCode.INTERNAL, error
        assert error["data"]["next"]
        assert "Traceback" not in error["message"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(given_calls=st.lists(calls(), min_size=1, max_size=6))
def test_every_call_has_one_answer(bench: Bench, given_calls: list[dict[str, Any]]) -> None:
    frames = [json.dumps({**call, "id": place}) for place, call in enumerate(given_calls)]
    answers = bench.answers(frames)
    for answer in answers:
        _fits(answer)
    assert sorted(answer["id"] for answer in answers) == list(range(len(given_calls)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(frames=st.lists(st.binary(max_size=40) | VALUES.map(json.dumps), max_size=5))
def test_a_message_that_is_not_a_call_is_answered_each_time(
    bench: Bench, frames: list[str | bytes]
) -> None:
    answers = bench.answers(frames)
    assert len(answers) == len(frames)
    for answer in answers:
        _fits(answer)


def test_notifications_are_carried_out_and_never_answered(bench: Bench) -> None:
    told = {"jsonrpc": "2.0", "method": "conversation.open", "params": {"conversation": "quiet"}}
    wrong = {"jsonrpc": "2.0", "method": "no.such"}
    assert bench.answers([json.dumps(told), json.dumps(wrong)]) == []
    asked = {"jsonrpc": "2.0", "id": 1, "method": "conversation.list"}
    (listed,) = bench.answers([json.dumps(asked)])
    assert listed["result"]["items"][0]["routes"] == ["agent:main:local:quiet"]


def test_too_many_requests_are_refused_and_nothing_is_lost(bench: Bench) -> None:
    asked = [
        json.dumps({"jsonrpc": "2.0", "id": place, "method": "conversation.open"})
        for place in range(MAX_OPEN_REQUESTS + 20)
    ]
    answers = bench.answers(asked)
    assert sorted(answer["id"] for answer in answers) == list(range(MAX_OPEN_REQUESTS + 20))
    busy = [answer for answer in answers if "error" in answer]
    assert {answer["error"]["code"] for answer in busy} == {ErrorCode.BUSY.value}


@pytest.mark.parametrize(
    ("method", "params", "message", "param"),
    [
        ("conversation.opne", {}, "did you mean conversation.open", None),
        ("conversation.open", {"conversaton": "x"}, "did you mean conversation", "conversaton"),
        ("conversation.rename", {"conversation": "x"}, "'title' is missing", "title"),
        ("conversation.list", {"limit": "5"}, "limit: ", "limit"),
        (
            "prompt.submit",
            {"session_id": "x", "text": "y", "attachments": [{"name": "a", "data": "%"}]},
            "no base64",
            "attachments[0].data",
        ),
        ("conversation.new", {"name": "cnv_0"}, "give a name", "name"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(
    bench: Bench, method: str, params: dict[str, Any], message: str, param: str | None
) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (answer,) = bench.answers([json.dumps(call)])
    assert message in answer["error"]["message"]
    assert answer["error"]["data"].get("param") == param
