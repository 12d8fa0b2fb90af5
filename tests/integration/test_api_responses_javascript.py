"""Responses and conversations, as the official client for JavaScript asks for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.testing import FakeProvider, Hang, count_user_texts
from tests import javascript
from tests.integration.api_server import TOKEN, running, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply


def answer(request: ProviderRequest) -> Reply:
    return Hang() if request.last_user_text == "slowly" else count_user_texts(request)


async def test_every_method_of_the_official_client_for_javascript_works(
    tmp_path: Path, store_url: str
) -> None:
    with FakeProvider(answer) as provider:
        settings = settings_for(tmp_path, provider=provider, store_url=store_url)
        async with running(settings) as server:
            found = await asyncio.to_thread(
                javascript.run_script, "responses.mjs", f"{server.url}/v1", TOKEN
            )
    assert found == {
        "first": ["completed", "turn 1: I have seen: hello", "me"],
        "streamed": [
            "response.created",
            "response.completed",
            "turn 2: I have seen: hello | again",
        ],
        "takenUp": True,
        "background": [True, "completed"],
        "cancelled": "cancelled",
        "inputItems": ["again"],
        "deleted": [True, 404],
        "items": [
            ["user", "in a conversation"],
            ["assistant", "turn 1: I have seen: in a conversation"],
        ],
        "item": True,
        "renamed": "moons",
        "kept": "moons",
        "removed": True,
        "once": True,
    }
