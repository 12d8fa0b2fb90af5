"""The keys that each transaction of a turn touches: a partitioned store would rely on them."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar

import pytest

from clew.core.route import Route
from clew.store import migrate as migrations
from clew.store.contract import Tx
from tests.killing.killer import job_name
from tests.line.points import PointedStore
from tests.line.world import open_world
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from clew.store.contract import Row, Value
    from clew.store.search_index import SearchIndex
    from tests.line.world import World

T = TypeVar("T")
P = ParamSpec("P")

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "scaling.md"
#: The transactions that accept, answer and deliver a message.
JOBS = (
    "submissions.submit_input",
    "turns.begin_work",
    "turns.store_step",
    "journal.record_intent",
    "journal.record_result",
    "turns.store_request",
    "turns.may_steer",
    "turns.steer_turn",
    "leases.renew_lease",
    "turns.finish_turn",
    "leases.release_lease",
)
SCHEMA = Path(migrations.__file__).with_name("migrations") / "0001_first.sql"
TABLES = set(re.findall(r"^CREATE TABLE (\w+)", SCHEMA.read_text(), re.MULTILINE))
_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)")


class RecordedTx(Tx):
    """Notes tables and keys of each statement."""

    def __init__(self, real: Tx) -> None:
        self._real = real
        self.dialect = real.dialect
        self.tables: set[str] = set()
        self.keys: set[str] = set()

    def _note(self, sql: str, args: tuple[Value, ...]) -> None:
        # Parts of other clauses look like tables, too.
        self.tables |= TABLES & set(_TABLE.findall(sql))
        self.keys |= {arg for arg in args if isinstance(arg, str)}

    @property
    def now(self) -> int:
        return self._real.now

    @property
    def search_index(self) -> SearchIndex:
        return self._real.search_index

    def execute(self, sql: LiteralString, *args: Value) -> int:
        self._note(sql, args)
        return self._real.execute(sql, *args)

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        self._note(sql, args)
        return self._real.fetch_one(sql, *args)

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        self._note(sql, args)
        return self._real.fetch_all(sql, *args)

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        return self._real.run_nested(lambda _: job(self))

    def is_alive(self, owner: str) -> bool:
        return self._real.is_alive(owner)

    def notify(self, topic: str) -> None:
        self._real.notify(topic)


class Recording(PointedStore):
    """Notes what each job touches, by its name."""

    tables: defaultdict[str, set[str]]
    #: Each call's keys.
    calls: defaultdict[str, list[set[str]]]
    written: list[str]

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        recorded = self._recorded(job_name(job), job, *args, **kwargs)
        self.written.append(job_name(job))
        return await super().write(recorded)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await super().read(self._recorded(job_name(job), job, *args, **kwargs))

    def _recorded(
        self,
        name: str,
        job: Callable[Concatenate[Tx, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Callable[[Tx], T]:
        if "tables" not in self.__dict__:
            self.tables, self.calls, self.written = defaultdict(set), defaultdict(list), []

        def recorded(t: Tx) -> T:
            tx = RecordedTx(t)
            try:
                return job(tx, *args, **kwargs)
            finally:
                self.tables[name] |= tx.tables
                self.calls[name].append(tx.keys)

        return recorded


@pytest.fixture
async def world(store_url: str, tmp_path: Path) -> AsyncGenerator[World]:
    async with open_world(store_url, tmp_path, kind=Recording) as found:
        yield found


@pytest.mark.both_databases
async def test_each_transaction_of_a_turn_touches_one_conversation(world: World) -> None:
    """The table in the explanation of scaling says which tables that are."""
    people = [Route.parse(f"agent:main:telegram:dm:{number}") for number in (41, 42)]
    for person in people:
        first = await world.say("a:look send", to=person)
        await world.say("b:", to=person)
        await world.idle(first.conversation_id)
    store = world.store
    assert isinstance(store, Recording)
    owner_of = await store.inner.read(_owners)
    for job in JOBS:
        for keys in store.calls[job]:
            conversations = {owner_of[key] for key in keys if key in owner_of}
            assert len(conversations) <= 1, (job, keys)
            routes = {key for key in keys if key.startswith("agent:")}
            assert not routes or job in ("submissions.submit_input", "turns.finish_turn"), (
                job,
                routes,
            )
    rows = [_row(job, store.tables[job]) for job in JOBS if store.calls[job]]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []


async def test_a_plain_turn_has_three_commits(world: World) -> None:
    store = world.store
    assert isinstance(store, Recording)
    # Its jobs run beside the first turns of a process.
    await wait_until(lambda: "owners.end_lost_owners" in store.written, "the first maintenance")
    for text in ("a:", "b:"):
        # The first one gives the conversation a title as well.
        before = len(store.written)
        await world.idle((await world.say(text)).conversation_id)
        await world.engine.wait_until_idle()
    # Beside it, messages are indexed.
    aside = ("maintenance.", "search.")
    of_a_turn = [job for job in store.written[before:] if not job.startswith(aside)]
    assert of_a_turn == ["submissions.submit_input", "turns.begin_work", "turns.finish_turn"]


def _row(job: str, tables: set[str]) -> str:
    return f"| `{job}` | {', '.join(sorted(tables))} |"


def _owners(t: Tx) -> dict[str, str]:
    """The conversation that each id belongs to."""
    found: dict[str, str] = {}
    for table in ("turn", "inbox", "entry", "session", "delivery"):
        for row in t.fetch_all(_IDS[table]):
            found[row[0]] = row[1]
    return found | {conversation: conversation for conversation in list(found.values())}


_IDS: dict[str, LiteralString] = {
    table: f"SELECT id, conversation_id FROM {table}"
    for table in ("turn", "inbox", "entry", "session", "delivery")
}
