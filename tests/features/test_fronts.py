"""The operations and commands of a plugin reach every front that starts an application."""

from __future__ import annotations

import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.cli.client_backend import ClientBackend
from clew.plugin.loading import load_settings_with_features
from clew.tui.transports import websocket
from clew.wire.framing import RpcRequest, write_message
from tests.acceptance.program import Clew

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from clew.tui.transports import Connect

PLUGIN = Path(__file__).with_name("garden.py")
ASKED: Sequence[tuple[str, dict[str, str]]] = (
    ("garden.crop", {}),
    ("rpc.discover", {}),
    ("commands.list", {}),
    ("commands.run", {"text": "/help"}),
)
FRAMES = [
    write_message(RpcRequest(id=number, method=method, params=params))
    for number, (method, params) in enumerate(ASKED)
]


@pytest.fixture
def clew(tmp_path: Path) -> Clew:
    """``clew`` with the plugin enabled."""
    home = tmp_path / "home"
    (home / "plugins").mkdir(parents=True)
    shutil.copy(PLUGIN, home / "plugins")
    settings = '[plugins]\nenabled = ["garden"]\n[api]\ntoken = "s3cret"\n'
    (home / "config.toml").write_text(settings, encoding="utf-8")
    return Clew(home, {"CLEW_MODEL__NAME": "offline"})


def check_answers(frames: list[str]) -> None:
    """Find the plugin in each answer."""
    answers: dict[int, Any] = {told["id"]: told["result"] for told in map(json.loads, frames)}
    assert answers[0] == {"roses": 2}
    assert "garden.crop" in {method["name"] for method in answers[1]["methods"]}
    assert "harvest" in {command["name"] for command in answers[2]["items"]}
    assert "/harvest: harvest a plant" in answers[3]["text"].splitlines()


def test_over_pipes(clew: Clew) -> None:
    check_answers(clew.ok("rpc", text="\n".join(FRAMES)).splitlines())


@asynccontextmanager
async def over_socket(clew: Clew) -> AsyncGenerator[Connect]:
    with clew.serving() as (url, _):
        headers = {"Authorization": "Bearer s3cret"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
            assert (await http.get("/api/garden/crop")).json() == {"roses": 2}
            assert "/api/garden/crop" in (await http.get("/openapi.json")).json()["paths"]
        yield websocket(f"{url.replace('http', 'ws', 1)}/api/ws", token="s3cret")


@asynccontextmanager
async def in_terminal(clew: Clew) -> AsyncGenerator[Connect]:
    flags = {"model.name": "offline"}
    settings = load_settings_with_features(home=clew.home, flags=flags, environ={})
    with ClientBackend(settings, role="tui") as backend:
        yield backend.connect


@pytest.mark.parametrize("front", [over_socket, in_terminal])
async def test_over_a_connection(
    clew: Clew, front: Callable[[Clew], AbstractAsyncContextManager[Connect]]
) -> None:
    async with front(clew) as connect, connect() as connection:
        for frame in FRAMES:
            await connection.send(frame)
        check_answers([str(await connection.receive()) for _ in FRAMES])
