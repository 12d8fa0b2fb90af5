"""Long conversations with restarts and changing tools: how often a request begins otherwise."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import structlog

from tests.prefix_story import tell_story
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server


@dataclass(frozen=True, kw_only=True)
class _Story:
    turns: int
    restarts: int
    changes: int


#: The last one restarts before every fourth turn.
STORIES = (
    _Story(turns=20, restarts=2, changes=3),
    _Story(turns=100, restarts=10, changes=3),
    _Story(turns=200, restarts=50, changes=3),
)


def run() -> Table:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with server() as url:
        rows = [_tell(story, database, url) for story in STORIES for database in DATABASES]
    return Table(
        title="The prefix of a session",
        columns=(
            "database", "turns", "restarts", "changes of the tools", "requests",
            "requests that begin otherwise", "requests made again that differ",
        ),
        rows=tuple(rows),
        passed=not any(row[-1] or row[-2] for row in rows),
    )  # fmt: skip


def _tell(
    story: _Story, database: str, server_url: str
) -> tuple[str, int, int, int, int, int, int]:
    with fresh(database, server_url) as (url, home):
        told = asyncio.run(
            tell_story(
                home,
                url,
                turns=story.turns,
                restarts=_spread(story.restarts, story.turns),
                changes=_spread(story.changes, story.turns),
            )
        )
    return (
        database,
        story.turns,
        story.restarts,
        story.changes,
        len(told.requests),
        len(told.broken_prefixes),
        len(told.differing),
    )


def _spread(count: int, turns: int) -> list[int]:
    """Turns at equal distances, none of them the first."""
    return [2 + number * (turns - 2) // count for number in range(count)]
