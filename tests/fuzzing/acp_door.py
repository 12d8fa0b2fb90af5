"""Requests to ``clew acp`` as no editor should make them: each has one answer, and it goes on."""

from __future__ import annotations

import json
import random
from typing import IO, TYPE_CHECKING, Any, Final

from acp.meta import AGENT_METHODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.program import Clew

_METHODS: Final = (*AGENT_METHODS.values(), "none", "")
_FIELDS: Final = (
    "sessionId", "cwd", "prompt", "mcpServers", "cursor", "configId", "value", "protocolVersion",
    "methodId", "_meta", "modelId", "other",
)  # fmt: skip
_VALUES: Final[tuple[Any, ...]] = (
    None, True, -1, 1, 10**30, 1.5, "", "/", "talk", "main", "cnv_0", "\ud800", "x" * 5_000, [], {},
    [[]], [{"type": "text", "text": "hi there"}], [{"type": "text", "text": "/status"}],
    [{"type": "image", "data": "A", "mimeType": "image/png"}], {"clew.dev/idempotency-key": "k"},
)  # fmt: skip
_GARBAGE: Final = ("garbage", "{ not json", "[]", "7", '{"jsonrpc": "2.0"}', '"\\ud800"')
_INTERNAL: Final = -32603


def fuzz_acp(clew: Clew, token: str, *, seed: int, requests: int) -> list[str]:
    """Make requests; what is wrong with their answers, and with the end of the program."""
    chance = random.Random(seed)
    with clew.with_env({"CLEW_API__TOKEN": token}).started("acp", piped=True) as process:
        sink, source = process.stdin, process.stdout
        assert sink is not None
        assert source is not None
        found = [one for number in range(requests) for one in _try(chance, number, sink, source)]
        sink.close()
        code = process.wait(60)
        assert process.stderr is not None
        errors = process.stderr.read()
    if code != 0 or "Traceback" in errors:
        found.append(f"it ended with {code}: {errors[-2_000:]}")
    return found


def _try(chance: random.Random, number: int, sink: IO[str], source: IO[str]) -> Iterator[str]:
    is_garbage = chance.random() < 0.05
    line = chance.choice(_GARBAGE) if is_garbage else json.dumps(_make_request(chance, number))
    print(line, file=sink, flush=True)
    for text in source:
        told: dict[str, Any] = json.loads(text)
        if "method" in told or told.get("id") != (None if is_garbage else number):
            continue
        if told.get("error", {}).get("code") == _INTERNAL:
            yield f"{line[:500]}: {told}"
        return
    yield f"{line[:500]}: no answer"


def _make_request(chance: random.Random, number: int) -> dict[str, Any]:
    params: Any = {name: chance.choice(_VALUES) for name in _FIELDS if chance.random() < 0.4}
    if chance.random() < 0.5:
        params |= {"sessionId": "talk", "cwd": "/", "mcpServers": []}
    if chance.random() < 0.05:
        params = chance.choice(_VALUES)
    method = chance.choice(_METHODS)
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
