"""
Sixty turns over HTTP with twenty questions, five compactions, three kill -9 and another model.

The model answers only from the request that it gets; on both databases, in each format.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from clew.core.route import local_route
from clew.core.session import COMPRESSION
from clew.store.opening import open_store
from clew.store.transactions import conversations, sessions
from clew.testing import FakeProvider
from tests.acceptance.program import Clew
from tests.context.checker import complaints
from tests.context.recall import LONG, TOOLS, WINDOW, Memoryless, carry_on
from tests.failing.desk import FORMATS, PREFIX
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from tests.failing.desk import Format

ROOT = Path(__file__).parents[2]
#: Seconds that a turn with a compaction may take.
_PATIENCE = 60.0


class Served:
    """Carries a talk on over HTTP; a restart kills the server."""

    def __init__(self, clew: Clew) -> None:
        self._clew = clew
        self._stack = ExitStack()
        self._url = ""

    def start(self) -> None:
        self._url, self._process = self._stack.enter_context(self._clew.serving())

    async def say(self, text: str) -> str:
        body = {"messages": [{"role": "user", "content": text}]}
        async with httpx2.AsyncClient(base_url=self._url, timeout=_PATIENCE) as http:
            answer = await http.post(
                "/v1/chat/completions", json=body, headers={"X-Clew-Conversation": "talk"}
            )
        return answer.json()["choices"][0]["message"]["content"]

    async def restart(self) -> None:
        self._process.kill()
        self.end()
        self.start()

    async def switch(self) -> None:
        self._clew.ok("chat", "-c", "talk", text="/model openai:another\n")

    def end(self) -> None:
        self._stack.close()


def run() -> Table:
    found: list[tuple[tuple[object, ...], bool]] = []
    with server() as server_url:
        for database, form in itertools.product(DATABASES, FORMATS):
            with fresh(database, server_url) as (url, home):
                counts = _recalled(url, home, form)
                right, wrong, compactions, *_, refused = counts
                good = right == LONG.questions and compactions >= LONG.compactions
                found.append(((database, form, *counts), good and not wrong and not refused))
    return Table(
        title=f"{LONG.turns} turns, {LONG.questions} questions, {len(LONG.restarts)} kill -9",
        columns=(
            *("database", "first model", "right", "wrong", "compactions", "summaries asked for"),
            *("looked up again", "refused by the checker"),
        ),
        rows=tuple(row for row, _ in found),
        passed=all(good for *_, good in found),
    )


def _recalled(url: str, home: Path, form: Format) -> tuple[int, ...]:
    (home / "plugins").mkdir()
    (home / "plugins" / "recall_tools.py").write_text(TOOLS)
    model = Memoryless()
    with FakeProvider(model) as provider:
        place = provider.anthropic_url if form == "messages" else provider.openai_url
        settings = {
            "STORE__URL": url,
            "MODEL__NAME": f"{PREFIX[form]}:fake-model",
            "MODEL__BASE_URL": place,
            "MODEL__API_KEY": "x",
            "MODEL__CONTEXT_WINDOW": str(WINDOW),
            "TOOLS__MODULES": "recall_tools",
        }
        env = {f"CLEW_{name}": value for name, value in settings.items()}
        env |= {
            "PYTHONPATH": str(ROOT),
            "OPENAI_BASE_URL": provider.openai_url,
            "OPENAI_API_KEY": "x",
        }
        driver = Served(Clew(home, env))
        driver.start()
        recalled = asyncio.run(carry_on(driver, LONG))
        driver.end()
        compactions = asyncio.run(_compactions(url, home))
        refused = sum(bool(complaints(request)) for request in provider.wait_until_settled())
    for sentence in recalled.wrong:
        print(f"{url.partition(':')[0]}, {form}: {sentence}", flush=True)
    counts = (model.asked["summary"], model.asked["looked up again"])
    return recalled.right, len(recalled.wrong), compactions, *counts, refused


async def _compactions(url: str, home: Path) -> int:
    async with await open_store(url, home=home) as store:
        conversation = await store.read(conversations.resolve_conversation, local_route("talk").key)
        lineage = await store.read(sessions.list_sessions, conversation)
    return sum(session.end_reason == COMPRESSION for session in lineage)
