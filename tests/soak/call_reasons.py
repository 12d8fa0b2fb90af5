"""Thousands of tool calls of every kind, each stored with the reason of its decision."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import structlog

from tests.deciding import FLAGS, KINDS, make_tools, run_calls
from tests.line.world import open_world
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from pathlib import Path

CALLS = int(os.environ.get("CLEW_SOAK_CALLS", "10000"))


def run() -> Table:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows: list[tuple[object, ...]] = []
    with server() as server_url:
        for database in DATABASES:
            with fresh(database, server_url) as (url, home):
                begun = time.monotonic()
                reasons = asyncio.run(_run(url, home))
                found = Counter(_kind_of(reason) for reason in reasons)
                seconds = round(time.monotonic() - begun)
                rows.append((database, len(reasons), seconds, *(found[one] for one in _COLUMNS)))
    return Table(
        title=f"{CALLS:,} tool calls and the reason of each",
        columns=("database", "calls", "seconds", *_COLUMNS),
        rows=tuple(rows),
        passed=all(row[1] == CALLS and row[-1] == 0 and all(row[3:-1]) for row in rows),
    )


_COLUMNS = ("by default", "rule allows", "rule denies", "grant", "a person", "none")
_FORMS = {
    "by default": r"by default: .*",
    "rule allows": r"rule \d+ allows it",
    "rule denies": r"rule \d+ denies it",
    "grant": r"grant grt_\w+: .*",
    "a person": r"me (allowed|denied) it \(asked, because .*\)",
}


def _kind_of(reason: str | None) -> str:
    return next((name for name, form in _FORMS.items() if re.fullmatch(form, reason or "")), "none")


async def _run(url: str, home: Path) -> list[str | None]:
    async with open_world(url, home, tools=make_tools, flags=FLAGS) as world:
        return await run_calls(world, turns=CALLS // len(KINDS))
