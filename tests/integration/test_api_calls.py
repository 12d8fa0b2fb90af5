"""What is known of a tool call, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.testing import FakeProvider
from clew.testing.provider import Calls, ScriptedCall, Text
from clew.wire.results import CallShape
from tests.integration.api_server import running, settings_for
from tests.integration.test_api_conversations import problem, shaped

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.integration.api_server import Server


def play(request: ProviderRequest) -> Reply:
    if request.messages[-1].role == "tool":
        return Text("done")
    return Calls([ScriptedCall("list_files", {})])


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(play) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider, store_url: str) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider, store_url=store_url)) as found:
        yield found


async def test_a_call_says_its_effect_its_times_and_why_it_ran(server: Server) -> None:
    await server.say("look")
    entries = (await server.http.get("/api/conversations/talk/entries")).json()["items"]
    asked = next(one for one in entries if one["role"] == "assistant")
    call = asked["message"]["parts"][0]["tool_call_id"]
    place = f"/api/conversations/talk/turns/{asked['turn']}/calls/{call}"
    found = shaped(await server.http.get(place), CallShape)
    assert (found["tool"], found["effect"], found["runs"]) == ("list_files", "pure", 1)
    assert found["why"]
    assert found["started_at"] <= found["finished_at"]
    await server.say("look", "other")
    for wrong in (f"{place}x", place.replace("/talk/", "/other/"), place.replace("trn_", "trn_0")):
        problem(await server.http.get(wrong), 404)
