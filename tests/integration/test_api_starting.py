"""While the engine is being built, what needs none is answered, and everything else waits."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING

import httpx2
import pytest
from starlette.responses import PlainTextResponse

from clew.api.health import offered_models
from clew.api.shutdown import ShutdownSignals
from clew.api.startup_app import StartupApp
from clew.config import Secret
from tests.acceptance.program import CLEW

if TYPE_CHECKING:
    from pathlib import Path

_PLUGIN = """
import threading
from clew.hooks.specs import hookimpl

@hookimpl
def configure(options):
    {does}
"""


def client(app: StartupApp, **headers: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)


def starting(*, token: Secret | None = None) -> StartupApp:
    return StartupApp(models=offered_models("openai-chat:llama"), token=token)


async def test_health_and_models_are_answered_at_once_and_balancers_go_elsewhere() -> None:
    async with client(starting()) as http:
        assert (await http.get("/healthz")).json() == {"status": "ok"}
        models = (await http.get("/v1/models")).json()["data"]
        assert [each["id"] for each in models] == ["clew", "openai-chat:llama"]
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "not_ready")
        assert ready.headers["retry-after"] == "1"


async def test_a_request_that_needs_the_engine_waits_for_it() -> None:
    app = starting()
    async with client(app) as http:
        asked = asyncio.create_task(http.post("/v1/chat/completions", json={}))
        other = asyncio.create_task(http.post("/healthz"))
        done, _ = await asyncio.wait({asked, other}, timeout=0.05)
        assert not done
        app.set_app(PlainTextResponse("the engine's answer"))
        assert (await asked).text == (await other).text == "the engine's answer"
        assert (await http.get("/v1/models")).text == "the engine's answer"


async def test_waiting_requests_are_refused_when_the_server_stops_during_its_start() -> None:
    leaving = ShutdownSignals()
    app = StartupApp(models=("clew",), token=None, leaving=leaving)
    async with client(app) as http:
        asked = asyncio.create_task(http.post("/v1/chat/completions", json={}))
        await asyncio.wait({asked}, timeout=0.05)
        assert not asked.done()
        leaving.drain.set()
        answer = await asyncio.wait_for(asked, timeout=60)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        assert answer.headers["retry-after"] == "1"
        assert (await http.get("/healthz")).status_code == 200


async def test_a_starting_server_reveals_no_more_without_the_token_than_later() -> None:
    app = starting(token=Secret.from_text("a-token-of-ours"))
    async with client(app) as http:
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/v1/models")).status_code == 401
    async with client(app, authorization="Bearer a-token-of-ours") as http:
        assert (await http.get("/v1/models")).status_code == 200
    async with client(starting(), host="evil.example") as http:
        assert (await http.get("/v1/models")).status_code == 403


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise ValueError('no such door')", "ValueError: no such door"),
        ("raise SystemExit(0)", "RuntimeError: the plugin raised SystemExit"),
        ("threading.Event().wait()", "TimeoutError: configure has not returned within 10 seconds"),
    ],
)
def test_a_plugin_that_cannot_be_set_up_is_reported_before_the_gateway_is_ready(
    tmp_path: Path, does: str, said: str
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "door.py").write_text(_PLUGIN.format(does=does))
    told = ["model.name=offline", "api.port=0", "plugins.enabled=door"]
    command = [CLEW, "--home", str(tmp_path), *(part for one in told for part in ("--set", one))]
    done = subprocess.run(
        [*command, "serve"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert f"plugins.enabled: 'door' cannot be loaded: {said}" in done.stderr.replace("\n", " ")
