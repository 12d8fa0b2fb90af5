"""Calls of ``/mcp`` as nobody should make them: each has an answer of the protocol."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final

import httpx2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEADERS: Final = {"Accept": "application/json, text/event-stream"}
_METHODS: Final = (
    "tools/list", "resources/list", "resources/read", "resources/templates/list", "ping",
    "initialize", "server/discover", "prompts/list", "notifications/cancelled", "", "tools",
)  # fmt: skip
_VALUES: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 10**30, 1.5, "", "talk", "main", "cnv_0", "apr_0", "\ud800", "x" * 5_000,
    [], {}, [[]], {"a": None},
)  # fmt: skip
_URIS: Final = (
    "clew://conversations/talk", "clew://conversations/talk/entries/1", "clew://conversations/",
    "clew://conversations/%ff/entries/99999999999999999999", "file:///etc/passwd", "",
)  # fmt: skip
#: What the protocol answers with, and what our own limits do.
_STATUSES: Final = frozenset({200, 202, 400, 404, 406, 413})
_INTERNAL: Final = -32603


def fuzz_mcp(url: str, token: str, *, seed: int, calls: int) -> list[str]:
    """Make calls; what is wrong with their answers."""
    chance = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}", **_HEADERS}
    with httpx2.Client(base_url=url, headers=headers, timeout=30) as http:
        tools = _ask(http, {"jsonrpc": "2.0", "id": 0, "method": "tools/list"})["result"]["tools"]
        return [
            f"{json.dumps(body)[:500]}: {complaint}"
            for body in (_make_body(chance, chance.choice(tools)) for _ in range(calls))
            for complaint in _try(http, body)
        ]


def _make_body(chance: random.Random, tool: Mapping[str, Any]) -> Any:
    match chance.randrange(10):
        case 0:
            return chance.choice(_VALUES)
        case 1 | 2:
            params = {"uri": chance.choice(_URIS), "cursor": chance.choice(_VALUES)}
            return _request(chance.choice(_METHODS), chance.choice((params, *_VALUES)))
        case 3:
            return _request(
                "tools/call", {"name": tool["name"], "arguments": chance.choice(_VALUES)}
            )
        case _:
            arguments = dict(_make_arguments(chance, tool["inputSchema"]))
            return _request("tools/call", {"name": tool["name"], "arguments": arguments})


def _request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _make_arguments(chance: random.Random, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield right arguments, and some that are missing, wrong, or none of the tool's."""
    for name, one in schema["properties"].items():
        if name == "wait":
            yield name, chance.choice((0, 0, 0, -1, "0"))
        elif name in schema["required"] or chance.random() < 0.5:
            yield name, _make_value(chance, one)
    if chance.random() < 0.1:
        yield chance.choice(("more", "", "session_id")), chance.choice(_VALUES)


def _make_value(chance: random.Random, schema: Mapping[str, Any]) -> Any:
    if chance.random() < 0.2:
        return chance.choice(_VALUES)
    kind = chance.choice(schema["anyOf"]) if "anyOf" in schema else schema
    known: dict[Any, Any] = {
        "string": chance.choice(("talk", "hi there", "apr_0", "a:b")),
        "integer": chance.choice((0, 1, 7)),
        "boolean": True,
    }
    return known.get(kind.get("type"))


def _try(http: httpx2.Client, body: Any) -> Iterator[str]:
    # Surrogates are as broken programs send them: escaped.
    sent = http.post("/mcp", content=json.dumps(body), headers={"Content-Type": "application/json"})
    if sent.status_code not in _STATUSES:
        yield f"status {sent.status_code}: {sent.text[:500]}"
    elif sent.content and (told := _read(sent)).get("error", {}).get("code") == _INTERNAL:
        yield f"an internal error: {told}"


def _ask(http: httpx2.Client, body: Any) -> dict[str, Any]:
    return _read(http.post("/mcp", json=body))


def _read(sent: httpx2.Response) -> dict[str, Any]:
    """The last message of an answer, of a stream too."""
    if sent.headers["content-type"].startswith("text/event-stream"):
        lines = [line for line in sent.text.splitlines() if line.startswith("data:")]
        return json.loads(lines[-1].removeprefix("data:"))
    return json.loads(sent.text)
