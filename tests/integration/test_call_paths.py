"""The walks on the page ``message-to-turn`` are those of a real message, and stay short."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic_ai.run import AgentRun

from clew.store.sqlite.tx import SqliteTx
from clew.testing import FakeProvider, count_user_texts
from tests.call_paths import CallTracer, code_of, tracing
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from types import FrameType

    from tests.call_paths import Hop

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "message-to-turn.md"
TO_COMMIT, TO_MODEL = "From the HTTP request to the commit", "From the lease to the model"
MOST = {TO_COMMIT: 12, TO_MODEL: 8}
#: It awaits the transaction that takes the lease, and then the turn.
LEASE_TAKER = ("engine/conversation_workers.py", "ConversationWorkers._try_next")
#: Functions between the use case and the INSERT.
MOST_FOR_ACCEPTING = 2


def inserts_input(frame: FrameType) -> bool:
    return (
        frame.f_code is code_of(SqliteTx.execute) and "INSERT INTO inbox" in frame.f_locals["sql"]
    )


def asks_model(frame: FrameType) -> bool:
    return (
        frame.f_code is code_of(AgentRun.next)
        and type(frame.f_locals["node"]).__name__ == "ModelRequestNode"
    )


class MessageTracer(CallTracer):
    """Tracer of one message: to the INSERT, to the COMMIT after it, and to the model."""

    def __init__(self) -> None:
        super().__init__(
            {"insert": inserts_input, "commit": self._commits_input, "model": asks_model}
        )

    def _commits_input(self, frame: FrameType) -> bool:
        return "insert" in self.paths and frame.f_code.co_qualname == "GroupCommitter._commit_batch"

    def walk_to_commit(self) -> list[Hop]:
        """The walk to the INSERT, and the function that commits it."""
        return [*self.paths["insert"][:-1], self.paths["commit"][-1]]

    def walk_to_model(self) -> list[Hop]:
        path = self.paths["model"]
        return path[path.index(LEASE_TAKER) + 1 :]


def documented(walk: str) -> list[Hop]:
    """The functions of a walk on the page, each with its module."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {walk}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([^`]+)` `([^`]+)`", section, re.MULTILINE)


@pytest.fixture(scope="module")
async def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Hop]]:
    tracer = MessageTracer()
    with FakeProvider(count_user_texts) as provider, tracing(tracer):
        settings = settings_for(tmp_path_factory.mktemp("home"), provider=provider)
        async with running(settings) as server:
            answer = await server.say("hello")
            assert answer.status_code == 200
    return {TO_COMMIT: tracer.walk_to_commit(), TO_MODEL: tracer.walk_to_model()}


@pytest.mark.parametrize("walk", [TO_COMMIT, TO_MODEL])
async def test_a_message_takes_the_short_walk_of_the_page(
    walks: dict[str, list[Hop]], walk: str
) -> None:
    assert documented(walk) == walks[walk]
    assert len(walks[walk]) <= MOST[walk]


async def test_accepting_takes_two_functions(walks: dict[str, list[Hop]]) -> None:
    rules = [hop for hop in walks[TO_COMMIT] if hop[0].startswith("store/transactions/")]
    assert 1 <= len(rules) <= MOST_FOR_ACCEPTING
