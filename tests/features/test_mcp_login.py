"""Logins at hosted MCP servers: from a chat, renewed in time, and asked for again when revoked."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.config import Secret
from clew.features.mcp import logins, stored_login
from clew.features.mcp.connection import ServerState
from clew.features.mcp.settings import McpServer
from tests.features.mcp_world import open_mcp
from tests.features.oauth_server import oauth_server
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.features.mcp_world import McpWorld
    from tests.features.oauth_server import OAuthServer


_LOST = "connection to hosted was lost"


def hosted(server: OAuthServer, **more: Any) -> dict[str, McpServer]:
    return {"hosted": McpServer(url=f"{server.url}/mcp", auth="oauth", trust="full", **more)}


async def log_in(world: McpWorld) -> str:
    """Log in as a person does who has a browser and the chat."""
    told = await world.command("/mcp login hosted")
    (link,) = [line for line in told.splitlines() if line.startswith("http")]
    async with httpx2.AsyncClient(timeout=60) as browser:
        sent = await browser.get(link)
    return await world.command(f"/mcp login hosted {sent.headers['location']}")


async def add(world: McpWorld, a: int, b: int) -> str:
    return await world.call_tool("hosted", "add", a=a, b=b)


@pytest.mark.both_databases
async def test_a_person_logs_in_from_a_chat_and_stays_so_after_a_restart(
    tmp_path: Path, store_url: str
) -> None:
    with oauth_server() as server:
        async with open_mcp(tmp_path, store_url, hosted(server)) as world:
            assert "/mcp login hosted" in await add(world, 1, 2)
            assert world.get("hosted").status.state is ServerState.NEEDS_LOGIN
            assert "waiting for a login" in await world.command("/mcp")
            assert server.registered == [], "nobody has asked to log in"
            assert "no code" in await _refused(world, "http://127.0.0.1:8421/mcp/callback?x=1")
            assert "access_denied" in await _refused(world, "http://x/?error=access_denied")
            assert await log_in(world) == "Logged in at hosted: it has 1 tools."
            assert "3" in await add(world, 1, 2)
            stored = await world.store.read(lambda t: t.fetch_all("SELECT * FROM mcp_login"))
            assert not any(token in str(stored) for token in server.list_tokens())
            await world.check()
        assert (tmp_path / logins.KEY_FILE).stat().st_mode & 0o777 == 0o600
        async with open_mcp(tmp_path, store_url, hosted(server)) as world:
            assert "7" in await add(world, 3, 4)


async def _refused(world: McpWorld, address: str) -> str:
    await world.command("/mcp login hosted")
    return await world.command(f"/mcp login hosted {address}")


async def test_a_day_of_tokens_of_five_minutes_fails_no_call_and_a_revoked_one_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = [0.0]

    def clock() -> float:
        return time.time() + hours[0] * 3600

    class Clock:
        time = staticmethod(clock)

    monkeypatch.setattr("mcp.client.auth.oauth2.time", Clock)
    monkeypatch.setattr(stored_login, "time", Clock)
    with oauth_server(lifetime=300.0, clock=clock) as server:
        async with open_mcp(tmp_path, "sqlite:///clew.db", hosted(server)) as world:
            await log_in(world)
            connection = world.get("hosted")
            tool = (await _wait_for_tool(world))["add"]
            refused = server.refused
            for number in range(288):
                hours[0] += 1 / 12
                found = await connection.call(tool, {"a": number, "b": 1}, key=None)
                assert str(number + 1) in str(found.content)
            assert server.refused == refused, "renewed before it expires"
            assert server.renewals >= 280
            # The authorization server is out of order: the login is not lost.
            hours[0] += 1 / 12
            server.fails_with = 503
            # Either the call finds out, or the stream of the server's notices just before.
            said = await add(world, 1, 2)
            assert "503" in said or _LOST in said
            server.fails_with = None
            await wait_until(lambda: connection.status.state is ServerState.UP)
            assert "3" in await add(world, 1, 2)
            # A token that is refused before its time is renewed.
            for _ in range(2):
                before = server.renewals
                server.drop_access()
                assert "3" in await add(world, 1, 2)
                assert server.renewals == before + 1
            server.revoke()
            said = await add(world, 1, 2)
            assert _LOST in said or "/mcp login hosted" in said
            await wait_until(lambda: connection.status.state is ServerState.NEEDS_LOGIN)
            assert "/mcp login hosted" in await add(world, 1, 2)
            assert await log_in(world) == "Logged in at hosted: it has 1 tools."
            assert "3" in await add(world, 1, 2)


async def test_a_login_that_cannot_be_read_here_is_asked_for_once(tmp_path: Path) -> None:
    url = "sqlite:///clew.db"
    with oauth_server() as server:
        async with open_mcp(tmp_path, url, hosted(server)) as world:
            await log_in(world)
        (tmp_path / logins.KEY_FILE).unlink()
        async with open_mcp(tmp_path, url, hosted(server)) as world:
            connection = world.get("hosted")
            connection.start()
            await wait_until(lambda: connection.status.state is ServerState.NEEDS_LOGIN)
            asked = connection.status
            await asyncio.sleep(0.3)
            assert connection.status is asked, "it is not tried again and again"
            assert await log_in(world) == "Logged in at hosted: it has 1 tools."
            assert "3" in await add(world, 1, 2)


async def _wait_for_tool(world: McpWorld) -> Any:
    connection = world.get("hosted")
    await wait_until(lambda: bool(connection.tools))
    return connection.tools


async def test_two_gateways_use_each_token_for_renewal_once(tmp_path: Path, store_url: str) -> None:
    with oauth_server(lifetime=1.0) as server:
        async with (
            open_mcp(tmp_path, store_url, hosted(server)) as one,
            open_mcp(tmp_path, store_url, hosted(server)) as other,
        ):
            await log_in(one)
            await other.pool.look()
            tools = [(await _wait_for_tool(world))["add"] for world in (one, other)]
            for _ in range(3):
                await asyncio.sleep(1.0)
                found = await asyncio.gather(
                    *(
                        world.get("hosted").call(tool, {"a": 1, "b": 1}, key=None)
                        for world, tool in zip((one, other), tools, strict=True)
                    )
                )
                assert all("2" in str(answer.content) for answer in found)
        assert server.renewals <= 5


async def test_a_program_with_an_account_of_its_own_needs_no_person(tmp_path: Path) -> None:
    with oauth_server() as server:
        servers = {
            "hosted": McpServer(
                url=f"{server.url}/mcp",
                auth="client_credentials",
                trust="full",
                client_id="robot",
                client_secret=Secret.from_text("s3cret-of-a-robot"),
            )
        }
        async with open_mcp(tmp_path, "sqlite:///clew.db", servers) as world:
            assert "3" in await add(world, 1, 2)
            assert "needs no login" in await world.command("/mcp login hosted")
