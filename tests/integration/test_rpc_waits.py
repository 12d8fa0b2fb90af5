"""``clew rpc`` and a server that listens and does not answer yet."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute

from clew.api.discovery import advertise
from clew.api.server import serve_app
from clew.api.shutdown import ShutdownSignals
from clew.api.sockets import base_url, bind_sockets
from clew.api.startup_app import StartupApp
from clew.background import run_in_background
from clew.cli.rpc_stdio import wait_for_server
from clew.cli.server_connection import connect_to_server
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from starlette.websockets import WebSocket


async def accept(socket: WebSocket) -> None:
    await socket.accept(headers=[(b"x-clew-server", b"here")])
    await socket.receive()


async def test_it_waits_for_a_server_that_is_starting_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings, leaving = settings_for(tmp_path), ShutdownSignals()
    app, sockets = (
        StartupApp(models=("clew",), token=None, leaving=leaving),
        bind_sockets(settings.api),
    )
    (tmp_path / "run").mkdir()
    said: list[str] = []

    def has_said(times: int) -> bool:
        said.append(capsys.readouterr().err)
        return "".join(said).count("waiting for it") == times

    async with AsyncExitStack() as stack:
        stack.enter_context(advertise(tmp_path, url=base_url(sockets[0]), name="here"))
        await stack.enter_async_context(
            run_in_background(serve_app(app, sockets, leaving=leaving), name="server")
        )
        waiting = asyncio.create_task(wait_for_server(settings, stack, patience=0.5))
        await wait_until(lambda: has_said(1))
        assert not waiting.done()
        app.set_app(Starlette(routes=[WebSocketRoute("/api/ws", accept)]))
        assert await waiting is not None
        assert has_said(1)


async def test_a_silent_program_on_the_port_of_a_killed_server_is_not_waited_for(
    tmp_path: Path,
) -> None:
    settings = settings_for(tmp_path)
    (tmp_path / "run").mkdir()
    (socket, *_) = bind_sockets(settings.api)
    with socket:
        address = {"url": base_url(socket), "name": "here", "pid": os.getpid()}
        (tmp_path / "run" / "api.json").write_text(json.dumps(address), encoding="utf-8")
        async with AsyncExitStack() as stack:
            assert await connect_to_server(settings, stack, patience=0.1) is None
