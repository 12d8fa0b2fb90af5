"""Whatever an editor sends, each request has one answer, with a sentence."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from acp.meta import AGENT_METHODS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.acp.server import serve_editor
from clew.core.route import local_route
from tests.contract import invariants
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import over_pipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from tests.integration.api_server import Server

INTERNAL = -32603
#: Among them what a request needs to get beyond the checks.
TEXTS = st.sampled_from(["talk", "/", "/status", "/new", "model", "offline", "hi", "cnv_0", ""])
BLOCKS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource_link", "resource", "other"])},
    optional={
        "text": TEXTS,
        "data": TEXTS,
        "mimeType": TEXTS,
        "uri": TEXTS,
        "name": TEXTS,
        "resource": st.fixed_dictionaries({"uri": TEXTS}, optional={"text": TEXTS, "blob": TEXTS}),
    },
)
PARAMS: dict[str, st.SearchStrategy[Any]] = {
    "sessionId": TEXTS,
    "cwd": TEXTS,
    "prompt": st.lists(BLOCKS, max_size=2) | TEXTS,
    "mcpServers": st.just([]) | TEXTS,
    "cursor": TEXTS,
    "configId": TEXTS,
    "value": TEXTS | st.booleans(),
    "protocolVersion": st.integers(0, 3),
    "methodId": TEXTS,
    "_meta": st.just({"clew.dev/idempotency-key": "k"}) | TEXTS,
}
REQUESTS = st.fixed_dictionaries(
    {
        "method": st.sampled_from([*AGENT_METHODS.values(), "none"]),
        "params": st.fixed_dictionaries({}, optional=PARAMS),
    }
)
LOAD: dict[str, Any] = {
    "method": "session/load",
    "params": {"sessionId": "talk", "cwd": "/", "mcpServers": []},
}


class EditorBench:
    """A server in a loop of its own."""

    def __init__(self, runner: asyncio.Runner, server: Server) -> None:
        self._runner, self._server = runner, server

    def answers(self, lines: Sequence[bytes]) -> list[Any]:
        """Return the answers to an editor that sends this."""
        heard: list[Any] = []

        async def sent() -> AsyncIterator[bytes]:
            for line in lines:
                yield line

        async def hear(line: str) -> None:
            heard.append(json.loads(line))

        def locate(home: Path, scope: str) -> Path:
            return home / scope

        connect = over_pipe(self._server)
        self._runner.run(serve_editor(connect, sent(), hear, agent=None, locate=locate))
        return [message for message in heard if "method" not in message]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[EditorBench]:
    with asyncio.Runner() as runner:
        serving = running(settings_for(tmp_path))
        server = runner.run(serving.__aenter__())
        runner.run(server.engine.submit("hello", target=local_route("talk")))
        yield EditorBench(runner, server)
        runner.run(server.engine.wait_until_idle())
        assert runner.run(server.store.read(invariants.check)) == []
        runner.run(serving.__aexit__(None, None, None))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(made=st.lists(REQUESTS, max_size=3), garbage=st.lists(st.binary(max_size=20), max_size=2))
def test_each_request_has_one_answer_and_garbage_an_error(
    bench: EditorBench, made: list[dict[str, Any]], garbage: list[bytes]
) -> None:
    asked = [{"jsonrpc": "2.0", "id": n, **request} for n, request in enumerate([LOAD, *made])]
    noise = [line for line in garbage if line.strip()]
    answers = bench.answers([*noise, *(json.dumps(request).encode() for request in asked)])
    assert sorted(one["id"] for one in answers if one["id"] is not None) == list(range(len(asked)))
    assert len(answers) == len(asked) + len(noise)
    for error in (one["error"] for one in answers if "error" in one):
        assert error["code"] != INTERNAL, (made, error)
        assert error["message"].strip()
