"""AG-UI and MCP, as the official clients for JavaScript speak them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing import FakeProvider, Text, count_user_texts
from tests import javascript
from tests.integration.api_server import TOKEN, running, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

#: Installs packages at first.
pytestmark = pytest.mark.timeout(900)


def answer(request: ProviderRequest) -> Reply:
    if request.last_user_text == "slowly":
        return Text("one two three four", chunks=4, delay=0.2)
    return count_user_texts(request)


async def run(folder: Path, store_url: str, script: str) -> Any:
    with FakeProvider(answer) as provider:
        settings = settings_for(folder, provider=provider, store_url=store_url)
        async with running(settings) as server:
            return await asyncio.to_thread(javascript.run_script, script, server.url, TOKEN)


async def test_the_official_client_of_ag_ui_holds_what_is_stored(
    tmp_path: Path, store_url: str
) -> None:
    found = await run(tmp_path, store_url, "ag_ui.mjs")
    first = ["turn 1: I have seen: hello"]
    talk = [
        ["user", "hello"],
        ["assistant", *first],
        ["user", "again"],
        ["assistant", "turn 2: I have seen: hello | again"],
    ]
    said = [
        ["user", "elsewhere"],
        ["assistant", "turn 3: I have seen: hello | again | elsewhere"],
    ]
    assert found["news"] == first
    assert found["talk"] == found["repeated"] == talk
    assert sorted(found["loaded"]) == sorted(talk + said)
    slowly = [["user", "slowly"], ["assistant", "one two three four"]]
    assert sorted(found["resumed"]) == sorted(talk + said + slowly)


async def test_the_official_client_of_mcp_for_typescript_works(
    tmp_path: Path, store_url: str
) -> None:
    found = await run(tmp_path, store_url, "mcp.mjs")
    assert {"conversations_list", "send_message", "memory_recall"} <= {*found.pop("tools")}
    assert found == {
        "server": "clew",
        "text": "turn 1: I have seen: hello",
        "once": True,
        "resources": 1,
        "read": True,
        "wrong": True,
    }
