"""A message that cannot be read any more stops its conversation with a word, not in silence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from clew.agent.models import close_models_on_exit
from clew.core.events import InputCompleted
from clew.core.route import local_route
from clew.core.turn import TurnOutcome
from clew.engine.engine import Engine
from clew.store.opening import open_store
from clew.testing.provider import FakeProvider
from tests.killing.child import Job, make_means
from tests.killing.killer import Killer
from tests.killing.plans import Say, reply_to

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_turn_whose_context_cannot_be_read_fails_and_says_so(tmp_path: Path) -> None:
    with FakeProvider(reply_to) as provider:
        job = Job(folder=tmp_path, store_url="sqlite:///clew.db", provider=provider.openai_url)
        assert (await _said(job, Say(key="c1m1"))).text == "answer to c1m1"
        with closing(sqlite3.connect(tmp_path / "clew.db")) as database:
            database.execute("DROP TRIGGER entry_never_changes")
            database.execute('UPDATE entry SET message = \'{"kind": "nonsense"}\' WHERE seq = 2')
            database.commit()
        for key in ("c1m2", "c1m3"):
            end = await _said(job, Say(key=key))
            assert end.turn is not None
            assert end.turn.outcome is TurnOutcome.FAILED
            assert "internal error" in end.text


async def _said(job: Job, say: Say) -> InputCompleted:
    """Return the outcome of a message in a separate process."""
    async with close_models_on_exit(), await open_store(job.store_url, home=job.folder) as store:
        means = make_means(job, store, Killer(None, job.fronts, job.folder))
        async with Engine(means, role="test", version="0") as engine:
            accepted = await engine.submit(say.text, target=local_route(say.conversation))
            events = [event async for event in engine.stream_input(accepted)]
    assert isinstance(events[-1], InputCompleted)
    return events[-1]
