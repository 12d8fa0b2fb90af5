"""Thirty days of chats of three people and their group: who is told what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.features.memory_story import Story
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from tests.features.memory_story import StoryEnd

_DAYS, _QUESTIONS = 30, 60


def run() -> Table:
    with server() as url:
        ends = [(database, _play(database, url)) for database in DATABASES]
    return Table(
        title=f"{_DAYS} days of three people and their group, a restart each week",
        columns=(
            *("database", "requests", "corrections", "forgotten", "compactions", "restarts"),
            *("questions", "without the right fact", "with one of others, or a forgotten one"),
        ),
        rows=tuple(
            (
                *(database, end.requests, end.corrections, end.forgotten, end.compactions),
                *(end.restarts, end.questions, len(end.wrong), len(end.leaks)),
            )
            for database, end in ends
        ),
        passed=all(not (end.wrong or end.leaks) for _, end in ends),
    )


def _play(database: str, url: str) -> StoryEnd:
    with fresh(database, url) as (store, home):
        return asyncio.run(Story(seed=7, days=_DAYS, questions=_QUESTIONS).play(home, store))
