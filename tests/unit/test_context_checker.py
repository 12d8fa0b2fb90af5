"""The strict checker of what is sent: it takes what is right, and complains of all else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing import CapturedRequest
from tests.context.checker import complaints

if TYPE_CHECKING:
    from clew.testing.provider.request import WireFormat


def captured(form: WireFormat, body: dict[str, Any]) -> CapturedRequest:
    return CapturedRequest(
        number=1,
        format=form,
        path="/",
        headers={},
        body=json.dumps(body).encode(),
        json=body,
        stream=False,
        started=0,
    )


def asked(*names: str, text: str | None = None) -> dict[str, Any]:
    """A chat message that calls a tool with each id."""
    function = {"name": "look", "arguments": "{}"}
    calls: list[dict[str, Any]] = [
        {"id": name, "type": "function", "function": function} for name in names
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(name: str, text: str = "seen") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


def says(role: str, text: str | None = "hello") -> dict[str, Any]:
    return {"role": role, "content": text}


def used(*names: str) -> dict[str, Any]:
    """A message of the third format that calls a tool with each id."""
    call = {"type": "tool_use", "name": "look", "input": dict[str, Any]()}
    return {"role": "assistant", "content": [{**call, "id": name} for name in names]}


def gave(*names: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """One that has the results, after texts."""
    texts = [{"type": "text", "text": text} for text in before]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "seen"} for name in names]
    return {"role": "user", "content": [*texts, *results]}


USER = says("user")
WHOLE = [says("system"), USER, asked("a", "b"), result("a"), result("b"), says("user", "more")]


def test_a_history_with_all_its_results_is_taken() -> None:
    assert complaints(captured("chat", {"messages": WHOLE})) == []
    assert complaints(captured("messages", {"messages": [USER, used("a"), gave("a")]})) == []
    items = [
        {"type": "message", **USER},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "seen"},
    ]
    assert complaints(captured("responses", {"input": items})) == []


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([USER, asked("a", "b"), result("a"), USER], "before the results of ['b']"),
        ([USER, asked("a")], "no results of ['a']"),
        ([USER, asked("a"), result("a"), result("a"), USER], "was not called or has one"),
        ([USER, result("a"), USER], "was not called or has one"),
        ([USER, asked("a", "b"), result("b"), result("a")], "out of turn"),
        ([USER, asked("a"), result("a"), asked("a"), result("a")], "the id a twice"),
        ([USER, says("assistant", ""), USER], "a blank text of assistant"),
        ([USER, says("assistant")], "the model has the last word"),
        ([says("assistant"), USER], "it begins with assistant text"),
        ([USER, says("system"), USER], "instructions in mid conversation"),
        ([USER, says("critic"), USER], "there is no role 'critic'"),
        ([], "the model has the last word"),
    ],
)
def test_a_request_that_a_provider_would_refuse_is_reported(
    messages: list[dict[str, Any]], complaint: str
) -> None:
    assert complaint in "; ".join(complaints(captured("chat", {"messages": messages})))


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([USER, USER], "two messages of user in a row"),
        ([USER, used("a"), gave("a", before=("by the way",))], "before the results of ['a']"),
        ([USER, used("a"), gave("a", "b")], "a result of b, which was not called or has one"),
        ([says("tool")], "there is no role 'tool'"),
    ],
)
def test_a_request_that_only_one_provider_would_refuse_is_reported_too(
    messages: list[dict[str, Any]], complaint: str
) -> None:
    assert complaint in "; ".join(complaints(captured("messages", {"messages": messages})))
