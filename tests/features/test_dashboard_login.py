"""Logins at the dashboard: a code or a token once, then a cookie, and the attacks on them."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from clew.api import caller
from clew.api.rpc import websocket
from clew.features.dashboard import logins
from clew.features.dashboard.settings import DashboardSettings
from clew.plugin.loading import get_features
from clew.store.backup.create import create_backup
from clew.store.backup.restore import restore_backup
from clew.store.opening import open_store
from tests.features.test_dashboard import with_dashboard
from tests.integration import stores
from tests.integration.api_server import TOKEN, running
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import httpx2

    from tests.integration.api_server import Server

TLS_HOST = "clew.example"
TLS = {"Host": TLS_HOST, "Origin": f"https://{TLS_HOST}"}


@asynccontextmanager
async def opened(
    home: Path, store_url: str = "sqlite:///clew.db", **dashboard: Any
) -> AsyncGenerator[Server]:
    """A gateway with a token, and a client that has only cookies."""
    settings = with_dashboard(home, DashboardSettings(**dashboard))
    schemas = get_features(settings).schemas
    store = await open_store(store_url, home=home, features=schemas)
    async with running(settings, opened=store) as server:
        server.http.headers.pop("authorization")
        yield server


def own(server: Server) -> dict[str, str]:
    return {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}


async def log_in(server: Server, **given: str) -> httpx2.Response:
    return await server.http.post("/api/login", json=given, headers=own(server))


def cookie_of(answer: httpx2.Response) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def socket_of(server: Server, cookie: str, **headers: str) -> connect:
    url = f"{server.url.replace('http', 'ws', 1)}/api/ws"
    return connect(url, additional_headers={"Cookie": cookie, **headers}, open_timeout=PATIENCE)


async def call(socket: Any, method: str, **params: object) -> Any:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    return json.loads(await socket.recv())["result"]


@pytest.mark.both_databases
async def test_a_code_logs_one_browser_in_and_its_login_is_listed_and_revoked(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "LOGIN_CHECK_SECONDS", 0.01)
    async with opened(tmp_path, store_url) as server:
        assert (await server.http.get("/api/login")).json() == {"needed": True}
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        code = (await server.http.post("/api/login-codes", headers=bearer)).json()["code"]
        answers = await asyncio.gather(*(log_in(server, code=code) for _ in range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
        cookie = cookie_of(next(one for one in answers if one.status_code == 200))
        assert (await server.http.get("/api/login")).json() == {"needed": False}
        (login,) = (await server.http.get("/api/logins")).json()["items"]
        assert login["scope"] == "local"
        assert login["label"].startswith("python-httpx")
        async with (
            socket_of(server, cookie, Origin=server.url) as socket,
            AsyncExitStack() as stack,
        ):
            assert (await call(socket, "login.list"))["items"][0]["id"] == login["id"]
            await call(socket, "conversation.open", conversation="main")
            events = server.http.stream("GET", "/api/conversations/main/events", timeout=PATIENCE)
            streamed = await stack.enter_async_context(events)
            assert streamed.status_code == 200
            path = f"/api/logins/{login['id']}"
            revoked = await server.http.delete(path, headers=own(server))
            assert revoked.status_code == 200
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), PATIENCE)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == websocket.CLOSE_LOGGED_OUT
            # The stream ends: without that, reading it to its end would not.
            assert b"retry" in await asyncio.wait_for(streamed.aread(), PATIENCE)
        assert (await server.http.get("/api/logins")).status_code == 401


@pytest.mark.both_databases
async def test_codes_and_logins_expire(tmp_path: Path, store_url: str) -> None:
    async with opened(tmp_path, store_url) as server:
        code, store = logins.make_secret(), server.store
        await store.write(logins.add_code, code)
        await store.write(lambda t: t.execute("UPDATE dashboard_code SET expires_at = $1", t.now))
        assert (await log_in(server, code=code)).status_code == 401
        assert (await log_in(server, token=TOKEN)).status_code == 200
        await store.write(lambda t: t.execute("UPDATE dashboard_login SET used_at = 0"))
        assert (await server.http.get("/api/logins")).status_code == 200
        (login,) = await store.read(logins.list_logins)
        assert login.used_at > 0
        await store.write(lambda t: t.execute("UPDATE dashboard_login SET expires_at = $1", t.now))
        assert (await server.http.get("/api/logins")).status_code == 401
        await store.write(logins.remove_expired)
        assert await store.read(lambda t: t.exists("SELECT 1 FROM dashboard_login")) is False


async def test_the_store_holds_no_cookie_and_no_log_a_secret(tmp_path: Path) -> None:
    code = logins.make_secret()
    with structlog.testing.capture_logs() as logged:
        async with opened(tmp_path) as server:
            await server.store.write(logins.add_code, code)
            cookie = cookie_of(await log_in(server, code=code)).partition("=")[2]
            await log_in(server, code=code)
            await log_in(server, token="wrong-token")
            stored = await server.store.read(
                lambda t: t.fetch_all("SELECT id, digest, label FROM dashboard_login")
            )
    for secret in (code, cookie, "wrong-token", TOKEN):
        assert secret not in str(stored)
        assert secret not in str(logged)
    assert "logged_in" in str(logged)


async def test_the_cookie_is_hidden_from_scripts_and_other_sites_and_goes_over_tls(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, origins=[f"https://{TLS_HOST}"]) as server:
        here = (await log_in(server, token=TOKEN)).headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(here.split("; "))
        assert "Secure" not in here
        answer = await server.http.post("/api/login", json={"token": TOKEN}, headers=TLS)
        there = answer.headers["set-cookie"]
        assert there.startswith("__Host-clew-login-")
        assert {"HttpOnly", "SameSite=strict", "Path=/", "Secure"} <= set(there.split("; "))
        # Behind TLS, one that was made without it is worth nothing.
        cookie = cookie_of(answer).removeprefix("__Host-")
        server.http.cookies.clear()
        listed = await server.http.get("/api/logins", headers={**TLS, "Cookie": cookie})
        assert listed.status_code == 401
        plain = {"Host": TLS_HOST, "Origin": f"http://{TLS_HOST}"}
        refused = await server.http.post("/api/login", json={"token": TOKEN}, headers=plain)
        assert refused.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {},
    ],
    ids=["another site", "another port", "no origin that counts", "no origin", "a form"],
)
async def test_another_page_can_neither_log_in_nor_use_the_cookie(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with opened(tmp_path) as server:
        wrong = await server.http.post("/api/login", json={"token": TOKEN}, headers=headers)
        assert wrong.status_code == 403
        assert "set-cookie" not in wrong.headers
        cookie = cookie_of(await log_in(server, token=TOKEN))
        changed = await server.http.post("/api/login-codes", headers=headers)
        assert changed.status_code == 403
        assert (await server.http.post("/api/logout", headers=headers)).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            async with socket_of(server, cookie, **headers):
                pass
        assert refused.value.response.status_code == 403
        assert (await server.http.get("/api/logins")).status_code == 200


async def test_a_name_that_leads_here_gets_no_login_and_a_cookie_opens_nothing_else(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as server:
        cookie = cookie_of(await log_in(server, token=TOKEN))
        for path in ("/api/login", "/api/logins", "/"):
            rebound = {"Host": "evil.example", "Origin": "http://evil.example", "Cookie": cookie}
            assert (await server.http.get(path, headers=rebound)).status_code in (401, 403)
        for path in ("/v1/models", "/metrics", "/openapi.json"):
            assert (await server.http.get(path)).status_code == 401
        assert (await server.http.post("/mcp", headers=own(server))).status_code == 401
        assert (await server.http.post("/api/logout", headers=own(server))).status_code == 200
        server.http.cookies.clear()
        old = {"Cookie": cookie}
        assert (await server.http.get("/api/logins", headers=old)).status_code == 401


async def test_guesses_are_limited(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        statuses = [(await log_in(server, token="guess")).status_code for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        for body in (b"", b"[]", b'{"code": 1}', b'{"other": "x"}'):
            answer = await server.http.post("/api/login", content=body, headers=own(server))
            assert answer.status_code in (400, 429)


async def test_a_restore_brings_no_login_back(tmp_path: Path) -> None:
    url, file = "sqlite:///clew.db", tmp_path / "backup"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with opened(tmp_path) as server:
        cookie = cookie_of(await log_in(server, token=TOKEN))
        created = (await server.http.post("/api/login-codes", headers=bearer)).json()["code"]
        await asyncio.to_thread(create_backup, url, home=tmp_path, file=file, tell=stores.silent)
    await asyncio.to_thread(
        restore_backup, url, home=tmp_path, file=file, replace=True, tell=stores.silent
    )
    async with opened(tmp_path) as server:
        refused = await server.http.get("/api/logins", headers={"Cookie": cookie})
        assert refused.status_code == 401
        assert (await log_in(server, code=created)).status_code == 401
        assert (await server.http.get("/api/logins", headers=bearer)).json()["items"] == []
        assert (await log_in(server, token=TOKEN)).status_code == 200
        (login,) = (await server.http.get("/api/logins")).json()["items"]
        assert login["label"].startswith("python-httpx")
