"""Replies to clients, and turns, while the database is away."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.store.postgres import Limits, open_postgres
from clew.testing import FakeProvider, Slow, Text
from tests.integration.api_server import always, running, settings_for, until
from tests.integration.postgres_proxy import CuttingProxy, listening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx2

    from clew.testing import Script
    from tests.databases import Databases
    from tests.integration.api_server import Server

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.unequal("the way to their stores ends with the tests"),
]

HASTY = Limits(retry_timeout=0.2, uncertain_retry_timeout=0.2, check_timeout=0.5)


@asynccontextmanager
async def behind_a_proxy(
    url: str, home: Path, script: Script
) -> AsyncGenerator[tuple[Server, CuttingProxy, FakeProvider]]:
    """A server of the API whose connections to its database can be cut."""
    proxy = CuttingProxy(url)
    with FakeProvider(script) as provider:
        async with listening(proxy.handle, url) as through:
            store = await open_postgres(through, limits=HASTY)
            settings = settings_for(home, provider=provider, store_url=through)
            async with running(settings, opened=store) as server:
                yield server, proxy, provider


async def post(server: Server, text: str) -> httpx2.Response:
    return await server.http.post("/api/conversations/talk/messages", json={"text": text})


async def said(server: Server) -> list[str]:
    answer = await server.http.get("/api/conversations/talk/entries")
    return [entry["text"] for entry in answer.json()["items"]]


async def ready(server: Server) -> bool:
    return (await server.http.get("/readyz")).status_code == 200


@pytest.fixture
def url(postgres_databases: Databases) -> Iterator[str]:
    with postgres_databases.migrated() as found:
        yield found


async def test_a_client_is_told_to_retry_only_if_nothing_was_stored(
    url: str, tmp_path: Path
) -> None:
    async with behind_a_proxy(url, tmp_path, always(Text("yes"))) as (server, proxy, _):
        await server.say("hello")
        # The answer to COMMIT is lost, and then the server can be asked: it was stored.
        proxy.about, proxy.plan = b"message one", ["swallow"]
        assert (await post(server, "message one")).status_code == 202
        # It cannot be asked: nobody knows.
        proxy.about, proxy.plan = b"message two", ["swallow and go"]
        unknown = await post(server, "message two")
        assert unknown.status_code == 503
        assert "may have been stored" in unknown.json()["error"]["message"]
        assert "retry-after" not in unknown.headers
        assert unknown.headers["x-should-retry"] == "false"
        # It is away before anything was sent.
        assert not await ready(server)
        refused = await post(server, "message three")
        assert refused.status_code == 503
        assert "nothing was stored" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"] == "1"
        proxy.come_back()
        await until(lambda: ready(server))
        await server.say("four")
        asked = [text for text in await said(server) if text != "yes"]
        assert asked == ["hello", "message one", "message two", "four"]


async def test_an_answer_made_during_an_outage_is_stored_afterwards(
    url: str, tmp_path: Path
) -> None:
    script = always(Slow(Text("yes"), seconds=0.3))
    async with behind_a_proxy(url, tmp_path, script) as (server, proxy, provider):
        asking = asyncio.create_task(server.say("hello"))
        await server.begun()
        await until(lambda: asyncio.sleep(0, result=bool(provider.requests)))
        proxy.go_away()
        await asyncio.to_thread(provider.wait_until_settled)
        # Longer than a job is tried by the store itself.
        await asyncio.sleep(2 * HASTY.retry_timeout)
        proxy.come_back()
        answer = await asking
        assert answer.status_code == 200, answer.text
        assert await said(server) == ["hello", "yes"]
        assert len(provider.requests) == 1
