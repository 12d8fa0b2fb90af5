"""Whatever a client sends, the answer is one of the documented errors and nothing is stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.api.request_body import MAX_BODY_BYTES
from tests.integration.api_server import TOKEN, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.integration.api_server import Server

HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path)) as found:
        yield found


GARBAGE: dict[str, tuple[bytes, str, str | None]] = {
    "nothing": (b"", "invalid_json", None),
    "no JSON": (b"{", "invalid_json", None),
    "no UTF-8": (b'{"messages": "\xff"}', "invalid_json", None),
    "not a number": (b'{"n": NaN, "messages": []}', "invalid_json", None),
    "a huge number": (b'{"n": ' + b"9" * 5000 + b"}", "invalid_json", None),
    "too deep": (b"[" * 100_000, "invalid_json", None),
    "no object": (b"[1, 2]", "invalid_type", None),
    "null": (b"null", "invalid_type", None),
}
WRONG: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "no messages": ({}, "missing_required_parameter", "messages"),
    "messages null": ({"messages": None}, "invalid_type", "messages"),
    "messages text": ({"messages": "hello"}, "invalid_type", "messages"),
    "messages empty": ({"messages": []}, "invalid_type", "messages"),
    "message text": ({"messages": ["hello"]}, "invalid_type", "messages[0]"),
    "no role": (
        {"messages": [{"content": "hello"}]},
        "missing_required_parameter",
        "messages[0].role",
    ),
    "strange role": (
        {"messages": [{"role": "king", "content": "hello"}]},
        "invalid_type",
        "messages[0].role",
    ),
    "content number": (
        {"messages": [{"role": "user", "content": 7}]},
        "invalid_type",
        "messages[0].content",
    ),
    "content object": (
        {"messages": [{"role": "user", "content": {"text": "hello"}}]},
        "invalid_type",
        "messages[0].content",
    ),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "unsupported_content",
        "messages[0].content[0]",
    ),
    "the address of an image": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "https://x.test/y"}}],
                }
            ]
        },
        "unsupported_content",
        "messages[0].content[0]",
    ),
    "sound": (
        {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
        "unsupported_content",
        "messages[0].content[0]",
    ),
    "no text": ({"messages": [{"role": "user", "content": None}]}, "invalid_value", None),
    "blanks": ({"messages": [{"role": "user", "content": " \n"}]}, "invalid_value", None),
    "the assistant last": (
        {"messages": [*HELLO, {"role": "assistant", "content": "hi"}]},
        "invalid_value",
        "messages[1].role",
    ),
    "stream text": ({"messages": HELLO, "stream": "yes"}, "invalid_type", "stream"),
    "two answers": ({"messages": HELLO, "n": 2}, "unsupported_parameter", "n"),
    "tools": (
        {"messages": HELLO, "tools": [{"type": "function"}]},
        "unsupported_parameter",
        "tools",
    ),
    "functions": (
        {"messages": HELLO, "functions": [{"name": "f"}]},
        "unsupported_parameter",
        "functions",
    ),
    "a schema": (
        {"messages": HELLO, "response_format": {"type": "json_schema"}},
        "unsupported_parameter",
        "response_format",
    ),
}


@pytest.mark.parametrize("case", GARBAGE)
async def test_garbage_is_refused(server: Server, case: str) -> None:
    raw, code, param = GARBAGE[case]
    answer = await server.http.post(
        "/v1/chat/completions", content=raw, headers={"X-Clew-Conversation": "talk"}
    )
    assert_refused(answer.status_code, answer.json(), code, param)
    await assert_nothing_is_stored(server)


@pytest.mark.parametrize("case", WRONG)
async def test_a_wrong_field_is_named(server: Server, case: str) -> None:
    body, code, param = WRONG[case]
    answer = await server.http.post(
        "/v1/chat/completions", json=body, headers={"X-Clew-Conversation": "talk"}
    )
    assert_refused(answer.status_code, answer.json(), code, param)
    await assert_nothing_is_stored(server)


def assert_refused(status: int, body: Any, code: str, param: str | None) -> None:
    assert status == 400
    assert body["error"]["code"] == code
    assert body["error"].get("param") == param
    assert body["error"]["message"]
    assert body["error"]["type"] == "invalid_request_error"


async def assert_nothing_is_stored(server: Server) -> None:
    assert (await server.engine.list_conversations(adhoc=True)).items == ()


async def test_an_unknown_model_is_not_found_as_openai_says_it(server: Server) -> None:
    answer = await server.http.post(
        "/v1/chat/completions", json={"model": "gpt-7", "messages": HELLO}
    )
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert answer.json()["error"]["param"] == "model"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Clew-Double-Text", "perhaps"),
        ("X-Clew-Conversation", ""),
        ("X-Clew-Conversation", "x" * 201),
        ("X-Clew-Conversation", "trn_0123"),
        ("X-Clew-Conversation", "agent:main"),
        ("X-Clew-Conversation", b"\xff\xfe"),
        ("X-Clew-Conversation", "tab\there"),
    ],
    ids=["rule", "empty", "long", "another id", "no route", "no UTF-8", "control"],
)
async def test_a_wrong_header_is_refused(server: Server, header: str, value: str | bytes) -> None:
    answer = await server.http.post(
        "/v1/chat/completions",
        json={"messages": HELLO},
        headers=[(header.encode(), value if isinstance(value, bytes) else value.encode())],
    )
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["message"]
    await assert_nothing_is_stored(server)


@pytest.mark.parametrize("header", ["X-Clew-Conversation", "Idempotency-Key", "Authorization"])
async def test_a_header_that_says_two_things_is_refused(server: Server, header: str) -> None:
    answer = await server.http.post(
        "/v1/chat/completions",
        json={"messages": HELLO},
        headers=[("Authorization", f"Bearer {TOKEN}"), (header, "one"), (header, "two")],
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == header.lower()
    await assert_nothing_is_stored(server)


async def test_nul_and_lone_surrogates_are_replaced(store_url: str, tmp_path: Path) -> None:
    raw = json.dumps({"messages": [{"role": "user", "content": "a\0b \ud800 c"}]})
    async with running(settings_for(tmp_path, store_url=store_url)) as server:
        answer = await server.http.post(
            "/v1/chat/completions", content=raw, headers={"X-Clew-Conversation": "talk"}
        )
        assert answer.status_code == 200
        entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
    assert entries[0].text == "a\ufffdb \ufffd c"


async def test_pairs_of_surrogates_are_letters(server: Server) -> None:
    raw = b'{"messages": [{"role": "user", "content": "a \\ud83e\\uddf5"}]}'
    answer = await server.http.post(
        "/v1/chat/completions", content=raw, headers={"X-Clew-Conversation": "talk"}
    )
    assert answer.json()["choices"][0]["message"]["content"] == "You said: a 🧵"


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
async def test_a_body_that_is_too_large_is_refused_without_reading_it_all(
    server: Server, declared: bool
) -> None:
    read = 0

    async def body() -> AsyncGenerator[bytes]:
        nonlocal read
        for _ in range(20):
            read += MAX_BODY_BYTES // 10
            yield b" " * (MAX_BODY_BYTES // 10)

    headers = {"Content-Length": str(2 * MAX_BODY_BYTES)} if declared else {}
    answer = await server.http.post("/v1/chat/completions", content=body(), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "request_too_large"


async def test_unknown_paths_and_methods_are_errors_of_the_same_shape(server: Server) -> None:
    missing = await server.http.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_path")
    slashed = await server.http.get("/v1/models/")
    assert slashed.status_code == 404
    wrong = await server.http.delete("/v1/chat/completions")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["Allow"] == "POST"
