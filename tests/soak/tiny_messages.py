"""Ten thousand tiny messages in two hundred conversations, twenty at once, on both databases."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import httpx2

from clew.store.opening import open_store
from tests.acceptance.program import Clew
from tests.contract import invariants
from tests.crowd import talk_to
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES, CONVERSATIONS, AT_ONCE = 10_000, 200, 20


def run() -> Table:
    with server() as url:
        rows = [_on(database, url) for database in DATABASES]
    return Table(
        title="Tiny messages",
        columns=("database", "messages", "seconds", "not answered", "violations"),
        rows=tuple(rows),
        passed=not any(unanswered or broken for _, _, _, unanswered, broken in rows),
    )


def _on(database: str, server_url: str) -> tuple[str, int, int, int, int]:
    with fresh(database, server_url) as (url, home):
        clew = Clew(home / "home", {"CLEW_MODEL__NAME": "offline", "CLEW_STORE__URL": url})
        began = time.monotonic()
        with (
            (home / "serve.log").open("w") as log,
            clew.serving(errors=log) as (place, process),
        ):
            wrong = asyncio.run(_crowd(place))
            process.terminate()
            process.wait(60)
        seconds = round(time.monotonic() - began)
        broken = asyncio.run(_violations(url, clew.home))
    for told in (*wrong, *broken):
        print(told)
    return database, MESSAGES, seconds, len(wrong), len(broken)


async def _crowd(place: str) -> list[str]:
    async with httpx2.AsyncClient(base_url=place, timeout=60) as http:
        return await talk_to(http, messages=MESSAGES, conversations=CONVERSATIONS, at_once=AT_ONCE)


async def _violations(url: str, home: Path) -> list[str]:
    async with await open_store(url, home=home) as store:
        return await store.read(invariants.check)
