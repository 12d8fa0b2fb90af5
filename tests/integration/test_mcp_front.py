"""MCP over HTTP: the official SDK's client talks to conversations, and only to those it may see."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from clew.core.route import local_route
from clew.wire.params import LARGEST_SEQ
from tests.golden.test_answers import answer
from tests.integration.api_server import TOKEN, serving, settings_for
from tests.integration.mcp_clients import call, fail, over_http, read_json
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.config.settings import Settings
    from tests.line.world import World

NAMES = [
    "conversations_list", "conversations_read", "conversations_search", "send_message",
    "approvals_list", "approvals_answer", "memory_recall",
]  # fmt: skip


@asynccontextmanager
async def serving_world(
    home: Path, url: str = "sqlite:///clew.db", *, settings: Settings | None = None
) -> AsyncGenerator[tuple[World, str]]:
    async with (
        open_world(url, home) as world,
        serving(world.engine, settings or settings_for(home)) as address,
    ):
        world.model.script = answer
        yield world, address


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_sends_a_message_and_finds_it_again(tmp_path: Path, mode: str) -> None:
    async with serving_world(tmp_path) as (_, url), over_http(url, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        done = await call(client, "send_message", conversation="talk", text="a:")
        assert (done["state"], done["text"], done["error"]) == ("done", "answer to a", None)
        (listed,) = (await call(client, "conversations_list"))["items"]
        assert listed["id"] == done["conversation"]
        read = await call(client, "conversations_read", conversation="talk")
        told = [(one["seq"], one["text"]) for one in read["items"]]
        assert told == [(1, "a:"), (2, "answer to a")]
        (hit,) = (await call(client, "conversations_search", query="answer"))["items"]
        assert (hit["conversation"], hit["seq"]) == (done["conversation"], 2)
        (resource,) = (await client.list_resources()).resources
        whole = await read_json(client, resource.uri)
        assert [one["text"] for one in whole["newest"]] == ["a:", "answer to a"]
        entry = await read_json(client, whole["newest"][1]["uri"])
        assert entry["text"] == "answer to a"


@pytest.mark.both_databases
async def test_a_message_with_one_key_is_stored_once(tmp_path: Path, store_url: str) -> None:
    async with serving_world(tmp_path, store_url) as (world, url), over_http(url) as client:
        given = {"conversation": "talk", "text": "a:", "key": "one"}
        stored = await call(client, "send_message", **given, wait=0)
        done = await asyncio.gather(*(call(client, "send_message", **given) for _ in range(3)))
        assert {one["inbox_id"] for one in done} == {stored["inbox_id"]}
        assert {one["text"] for one in done} == {"answer to a"}
        # The field in which clients of Clew put keys means the same.
        meta = await client.call_tool(
            "send_message",
            {"conversation": "talk", "text": "a:"},
            meta={"clew.dev/idempotency-key": "one"},
        )
        assert meta.structured_content["inbox_id"] == stored["inbox_id"]
        for other in ({"text": "b:"}, {"conversation": "eve"}):
            assert "another request" in await fail(client, "send_message", **{**given, **other})
        entries = await world.engine.read_entries(done[0]["conversation"])
        assert [one.text for one in entries] == ["a:", "answer to a"]


async def test_a_call_that_waits_for_approval_is_told_and_answered(tmp_path: Path) -> None:
    async with serving_world(tmp_path) as (_, url), over_http(url) as client:
        given = {"conversation": "talk", "text": "p: pay", "key": "one"}
        asked = await call(client, "send_message", **given)
        assert (asked["state"], asked["text"]) == ("waiting", "")
        assert "approvals" in asked["next"]
        (approval,) = (await call(client, "approvals_list", conversation="talk"))["items"]
        assert approval == asked["approvals"][0]
        yes = {"approval": approval["id"], "approve": True}
        for _ in range(2):  # the same answer is accepted again
            assert (await call(client, "approvals_answer", **yes))["state"] == "approved"
        assert "approved" in await fail(client, "approvals_answer", **{**yes, "approve": False})
        assert (await call(client, "send_message", **given))["text"] == "answer to p"


async def test_a_client_does_only_what_its_scope_names(tmp_path: Path) -> None:
    async with serving_world(tmp_path) as (_, url):
        async with over_http(url, query="?scope=read") as client:
            offered = [tool.name for tool in (await client.list_tools()).tools]
            assert offered == [
                name for name in NAMES if name not in {"send_message", "approvals_answer"}
            ]
            told = await fail(client, "send_message", conversation="talk", text="a:")
            assert "scope read, and it needs talk" in told
            assert (await call(client, "conversations_list"))["items"] == []
        async with over_http(url, query="?scope=talk") as client:
            told = await fail(client, "approvals_answer", approval="apr_0", approve=True)
            assert "it needs operate" in told
        async with httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60
        ) as http:
            refused = await http.post(f"{url}/mcp?scope=all", json={})
            assert refused.status_code == 400
            assert "read, talk, operate" in refused.text


async def test_what_is_wrong_with_a_call_is_said_in_a_sentence(tmp_path: Path) -> None:
    async with serving_world(tmp_path) as (_, url), over_http(url) as client:
        assert await fail(client, "send_message", text="a:") == (
            "the argument 'conversation' is missing"
        )
        assert "has no argument 'txt'" in await fail(client, "conversations_list", txt=1)
        assert "whole number from 0" in await fail(
            client, "send_message", conversation="talk", text="a:", wait=-1
        )
        assert "no conversation" in await fail(client, "conversations_read", conversation="nowhere")
        assert "there is no tool 'pay'" in await fail(client, "pay")
        for uri in ("clew://conversations/nowhere", "clew://conversations/a/b", "file:///etc"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_long_texts_are_cut_in_lists_and_whole_as_resources(tmp_path: Path) -> None:
    async with serving_world(tmp_path) as (world, url), over_http(url) as client:
        await world.engine.wait_for_input(
            await world.engine.submit(f"a:{' ' * 9_000}", target=local_route("talk"))
        )
        page = await call(client, "conversations_read", conversation="talk", before=LARGEST_SEQ)
        first = page["items"][0]
        assert (len(first["text"]), first["characters"]) == (4_001, 9_002)
        (found,) = (await client.list_resources()).resources
        assert len((await read_json(client, f"{found.uri}/entries/1"))["text"]) == 9_002


async def test_the_door_is_shut_to_strangers(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with serving_world(tmp_path) as (_, url), httpx2.AsyncClient(timeout=60) as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            assert (await http.post(f"{url}/mcp", json=ping, headers=headers)).status_code == 401
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        shown = await http.get(f"{url}/mcp")
        assert (shown.status_code, shown.headers["allow"]) == (405, "POST")
    settings = settings_for(tmp_path, token=None)
    async with (
        serving_world(tmp_path, settings=settings) as (_, url),
        httpx2.AsyncClient(timeout=60) as http,
    ):
        for name, value in (("Host", "evil.example"), ("Origin", "https://evil.example")):
            refused = await http.post(f"{url}/mcp", json=ping, headers={name: value})
            assert refused.status_code == 403, name
