"""Runs of ``/ag-ui`` as no front-end should ask for them: each has a status, or a whole stream."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final

import httpx2

from tests.integration.ag_ui_client import check_event

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = ("talk", "main", "one", "two", "cnv_0", "apr_0", "x" * 255)
_VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 10**30, 1.5, "", " ", "hi there", "/status", "\ud800", "\u0000", [], {}, [[]],
    [{"type": "text", "text": "part"}], [{"type": "binary", "mimeType": "image/png", "data": "A"}],
    [{"type": "text"}], [{"type": "image", "source": {"type": "url", "value": "file:///etc/passwd"}}],
)  # fmt: skip
_ROLES: Final = ("user", "user", "user", "assistant", "system", "developer", "tool", "activity", "")
_CALL: Final = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{"}}
#: What the endpoint describes, and what our own limits do.
_STATUSES: Final = frozenset({200, 400, 404, 409, 413, 422})
_ENDS: Final = frozenset({"RUN_FINISHED", "RUN_ERROR"})


def fuzz_ag_ui(url: str, token: str, *, seed: int, runs: int) -> list[str]:
    """Ask for runs; what is wrong with their answers."""
    chance = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=60) as http:
        return [
            f"{json.dumps(body)[:500]}: {complaint}"
            for body in (_make_run(chance) for _ in range(runs))
            for complaint in _try(http, body)
        ]


def _make_run(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice(_VALUES)
    body: dict[str, Any] = {
        "threadId": chance.choice(_NAMES),
        "runId": chance.choice(_NAMES),
        "messages": [_make_message(chance) for _ in range(chance.randrange(4))],
    }
    if chance.random() < 0.2:
        status = chance.choice(("resolved", "cancelled", "later"))
        entry = {"interruptId": chance.choice(_NAMES), "status": status}
        body["resume"] = [{**entry, "payload": chance.choice(_VALUES)}]
    if chance.random() < 0.2:
        field = chance.choice(("tools", "state", "context", "forwardedProps", "messages", "runId"))
        body[field] = chance.choice(_VALUES)
    return body


def _make_message(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice(_VALUES)
    more: dict[str, Any] = chance.choice(
        ({}, {}, {"toolCalls": [_CALL]}, {"toolCallId": "c"}, {"name": 7}, {"encryptedValue": "x"})
    )
    content = chance.choice(("hi there", "hi there", chance.choice(_VALUES)))
    return {"id": chance.choice(_NAMES), "role": chance.choice(_ROLES), "content": content, **more}


def _try(http: httpx2.Client, body: Any) -> Iterator[str]:
    # Surrogates are as broken programs send them: escaped.
    content = json.dumps(body)
    sent = http.post("/ag-ui", content=content, headers={"Content-Type": "application/json"})
    if sent.status_code not in _STATUSES:
        yield f"status {sent.status_code}: {sent.text[:500]}"
    elif sent.status_code == 200:
        lines = (line for line in sent.text.splitlines() if line.startswith("data:"))
        events = [json.loads(line.removeprefix("data:")) for line in lines]
        yield from _judge(events)


def _judge(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        try:
            check_event(event)
        except (AssertionError, ValueError) as error:
            yield f"no event of the protocol: {event}: {error}"
    if not events or events[0]["type"] != "RUN_STARTED" or events[-1]["type"] not in _ENDS:
        yield f"the stream is {[event['type'] for event in events]}"
