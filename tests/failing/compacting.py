"""Provider for tests of compaction: it gives answers and summaries."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.testing import Text
from tests.contract.lifecycle.doubles import SUMMARY
from tests.contract.lifecycle.filling import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.entry import Entry
    from clew.testing import ProviderRequest, Reply, Script
    from tests.failing.desk import Desk

#: The beginning of the default compactor's prompt.
_ASKED = "You keep the memory of a conversation"


def good(_: ProviderRequest) -> Reply:
    """An answer, or a summary that nothing can be said against."""
    return Text(SUMMARY)


@dataclass(kw_only=True)
class Plays:
    """Answers by ``turn``, writes summaries by ``summary``, and keeps both kinds of request."""

    turn: Script = lambda _: Text("an answer")
    summary: Script = good
    turns: list[ProviderRequest] = field(default_factory=list)
    summaries: list[ProviderRequest] = field(default_factory=list)

    def __call__(self, request: ProviderRequest) -> Reply:
        if request.last_user_text.startswith(_ASKED):
            self.summaries.append(request)
            return self.summary(request)
        self.turns.append(request)
        return self.turn(request)


async def filled(desk: Desk, count: int, *, size: int, about: str = "hello") -> str:
    """A conversation with so many messages of so many bytes each; its name."""
    talk = await desk.begin(about)
    await desk.store.write(fill, desk.ids[talk], count, size=size)
    return talk


async def log_of(desk: Desk, talk: str) -> Sequence[Entry]:
    """Everything that was ever said."""
    return await desk.engine.read_entries(desk.ids[talk], limit=1000)


async def sessions_of(desk: Desk, talk: str) -> list[str]:
    """By what each of its sessions was opened."""
    view = await desk.engine.get_view(desk.ids[talk])
    return [session.opened_by for session in view.sessions]


def sent(request: ProviderRequest) -> str:
    """All that a request says, as text."""
    return json.dumps(request.raw, ensure_ascii=False)
