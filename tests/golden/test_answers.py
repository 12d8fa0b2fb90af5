"""
HTTP and JSON-RPC answer byte for byte what they answered when the files were written.

Only ids, times and places are replaced, and of descriptions only their structure counts. To
accept a change: ``CLEW_GOLDEN=write``, and look at the difference.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from pydantic_ai.messages import ModelResponse, TextPart
from websockets.asyncio.client import connect

from tests.golden.capture import HttpCapture, Recording, RpcCapture, capture_http, capture_rpc
from tests.integration.api_server import TOKEN, serving, settings_for
from tests.line.plans import respond
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pydantic_ai.messages import ModelMessage

FOLDER = Path(os.environ.get("CLEW_GOLDEN_FOLDER", Path(__file__).parent))
_STORE = "sqlite:///clew.db"


def answer(messages: Sequence[ModelMessage]) -> ModelResponse:
    """Answer what a plan says, and a message with a file too."""
    try:
        return respond(messages)
    except ValueError:
        return ModelResponse(parts=[TextPart("seen")])


@asynccontextmanager
async def asking(home: Path) -> AsyncGenerator[tuple[HttpCapture, RpcCapture]]:
    """Clients of a server over a scripted model, which record their answers."""
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        open_world(_STORE, home) as world,
        serving(world.engine, settings_for(home)) as url,
        httpx2.AsyncClient(base_url=url, headers=bearer, timeout=60) as http,
        connect(
            f"{url.replace('http', 'ws', 1)}/api/ws", open_timeout=120, additional_headers=bearer
        ) as socket,
    ):
        world.model.script = answer
        record = Recording(str(home))
        yield HttpCapture(http, record), RpcCapture(socket, record)


def compare(name: str, told: str) -> None:
    """Compare with the file, or write it."""
    file = FOLDER / name
    if os.environ.get("CLEW_GOLDEN") == "write":
        file.write_text(told, encoding="utf-8")
    assert told == file.read_text(encoding="utf-8")


async def test_http_answers_as_it_did(tmp_path: Path) -> None:
    async with asking(tmp_path) as (http, rpc):
        await capture_http(http, rpc)
    compare("http.txt", http.record.text())


async def test_rpc_answers_as_it_did(tmp_path: Path) -> None:
    async with asking(tmp_path) as (_, rpc):
        await capture_rpc(rpc)
    compare("rpc.txt", rpc.record.text())
