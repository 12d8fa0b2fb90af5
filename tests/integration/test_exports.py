"""Conversations leave a store as lines and come into another one, whole, once, and unmixed."""

from __future__ import annotations

import io
import time
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.export_format.verify import verify_export
from clew.core.ids import ConversationId, IdGenerator
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL
from clew.core.turn import TurnOutcome
from clew.engine import imports as importing
from clew.engine.exports import ConversationExporter
from clew.engine.imports import ConversationImporter, ImportOutcome, ImportResult, open_section
from clew.store.opening import open_store
from clew.store.transactions import conversations, hook_marks, leases
from clew.store.transactions.grants import is_tainted
from clew.wording import IMPORTED_NOTICE
from tests import postgres
from tests.contract import invariants
from tests.exported import said_in, sealed, verified
from tests.line.world import open_world
from tests.lives import lead

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from pathlib import Path

    from clew.store.contract import Store, Tx
    from tests.line.world import World

ids = IdGenerator(lambda: time.time_ns() // 1_000_000)


@pytest.fixture
def another_url(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> Iterator[str]:
    """A second empty store, of the same kind."""
    if store_url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path}/another.db"
    else:
        with postgres.database(request.getfixturevalue("postgres_server")) as url:
            yield url


@asynccontextmanager
async def opened(url: str, home: Path) -> AsyncGenerator[Store]:
    """A store in which every invariant holds in the end."""
    async with await open_store(url, home=home) as store:
        yield store
        assert await store.read(invariants.check) == []


async def exported(store: Store, *names: str, secrets: Sequence[str] = ()) -> bytes:
    exports = ConversationExporter(store, secrets=secrets)
    chosen = await exports.resolve_names(names) if names else None
    return b"".join([line async for line in exports.iter_lines(chosen)])


async def taken_in(store: Store, export: bytes, *, revive: bool = False) -> list[ImportResult]:
    found = verified(export)
    assert found.findings == []
    async with ConversationImporter(store, ids, version="0").register_owner() as imports:
        taken = [
            await imports.import_conversation(
                open_section(io.BytesIO(export), outline), revive=revive
            )
            for outline in found.conversations
        ]
        await imports.import_tombstones(found.tombstones)
        return taken


def results(taken: Sequence[ImportResult]) -> list[ImportOutcome]:
    return [one.outcome for one in taken]


@pytest.mark.both_databases
async def test_an_imported_conversation_is_exported_again_to_the_byte(
    store_url: str, another_url: str, tmp_path: Path
) -> None:
    """Over both databases, and a second time without a trace."""
    async with open_world(store_url, tmp_path) as world:
        names = await lead(world)
        export = await exported(world.store.inner)
        one = await exported(world.store.inner, "agent:main:local:talk")
    kinds = {kind for kind, _ in said_in(export)}
    assert kinds >= {"session", "turn", "input", "entry", "usage", "attachment", "tombstone"}
    for url in (another_url, f"sqlite:///{tmp_path}/third.db"):
        async with opened(url, tmp_path) as store:
            assert results(await taken_in(store, export)) == [ImportOutcome.IMPORTED] * 3
            assert await exported(store) == export
            assert results(await taken_in(store, export)) == [ImportOutcome.UNCHANGED] * 3
            assert results(await taken_in(store, one)) == [ImportOutcome.UNCHANGED]
            assert await exported(store) == export
            assert await exported(store, names[0]) == one


async def test_an_imported_conversation_continues_there(store_url: str, tmp_path: Path) -> None:
    async with open_world(f"sqlite:///{tmp_path}/from.db", tmp_path) as world:
        name, *_ = await lead(world)
        export = await exported(world.store.inner)
    async with open_world(store_url, tmp_path) as world:
        await taken_in(world.store.inner, export)
        ended = await world.end(await world.say("x:look", to=name))
        assert ended.turn is not None
        assert ended.turn.outcome is TurnOutcome.ANSWERED
        assert len(world.model.sent[-1]) > 8, "with everything that was said before"
        assert (await world.engine.get_view(name)).routes == ()
        # What it has read is not known here.
        assert await world.store.inner.read(is_tainted, ConversationId(name))
        await world.engine.delete_conversation(name)
        assert await world.check() == []


class Both:
    """Two places where conversations go on; each test has one of its own, under ``name``."""

    def __init__(self, there: World, here: World, name: str) -> None:
        self.there, self.here, self.name = there, here, name

    async def export(self, *, secrets: Sequence[str] = ()) -> bytes:
        return await exported(self.there.store.inner, self.name, secrets=secrets)

    async def carry(self, *, revive: bool = False) -> ImportResult:
        """Export the conversation there and take it in here."""
        export = await self.export()
        (taken,) = await taken_in(self.here.store.inner, export, revive=revive)
        return taken

    async def say(self, text: str) -> ConversationId:
        """Say something there."""
        return await say(self.there, text, to=self.name)

    async def undo(self, world: World) -> None:
        """Undo the last message; the names stay, so that all of them are equal."""
        name = await self.there.engine.resolve_name(self.name)
        await world.end(await world.engine.sessions.queue_undo(name))

    async def entries(self, name: str) -> int:
        return (await self.here.engine.get_view(ConversationId(name))).conversation.last_seq


async def say(world: World, text: str, to: str) -> ConversationId:
    accepted = await world.say(text, to=to)
    await world.end(accepted)
    return accepted.conversation_id


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
async def places(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[tuple[World, World]]:
    home = tmp_path_factory.mktemp("places")
    with ExitStack() as stack:
        url = f"sqlite:///{home}/here.db"
        if request.param == "postgres":
            server = request.getfixturevalue("postgres_server")
            url = stack.enter_context(postgres.database(server))
        async with (
            open_world(f"sqlite:///{home}/there.db", home) as there,
            open_world(url, home) as here,
        ):
            yield there, here
            assert await here.check() == []


@pytest.fixture
def both(places: tuple[World, World], request: pytest.FixtureRequest) -> Both:
    return Both(*places, name=f"{request.node.name[:60]}-{time.time_ns()}")


async def test_a_longer_export_extends_and_a_shorter_one_changes_nothing(
    both: Both,
) -> None:
    name = await both.say("a:look")
    assert (await both.carry()).outcome is ImportOutcome.IMPORTED
    before = await both.export()
    await both.say("b:read;look")
    await both.undo(both.there)
    await both.there.engine.rename_conversation(name, f"Title of {both.name}")
    grown = await both.carry()
    assert (grown.outcome, grown.local_id, grown.entries) == (ImportOutcome.EXTENDED, name, 6)
    now = await both.export()
    assert await exported(both.here.store.inner, name) == now
    assert results(await taken_in(both.here.store.inner, before)) == [ImportOutcome.UNCHANGED]
    assert await exported(both.here.store.inner, name) == now


async def test_two_that_went_on_apart_are_never_merged(both: Both) -> None:
    name = await both.say("a:look")
    await both.there.engine.rename_conversation(name, both.name)
    await both.carry()
    await say(both.here, "mine:", to=name)
    mine = await exported(both.here.store.inner, name)
    await both.say("theirs:look")
    copied = await both.carry()
    assert copied.outcome is ImportOutcome.COPIED
    assert await exported(both.here.store.inner, name) == mine
    copy = (await both.here.engine.get_view(ConversationId(copied.local_id))).conversation
    assert (copy.origin, copy.origin_seq, copy.title) == (name, 4, f"{both.name} (2)")
    assert (await both.carry()).outcome is ImportOutcome.UNCHANGED
    await both.say("more:")
    grown = await both.carry()
    assert (grown.outcome, grown.local_id, grown.entries) == (
        ImportOutcome.EXTENDED,
        copied.local_id,
        2,
    )
    # The copy goes on as well, apart from where it came from.
    await say(both.here, "mine:", to=copied.local_id)
    await both.say("again:")
    second = await both.carry()
    assert second.outcome is ImportOutcome.COPIED
    assert second.local_id not in (name, copied.local_id)
    assert (await both.carry()).outcome is ImportOutcome.UNCHANGED
    assert await both.entries(second.local_id) == 12


async def test_a_session_without_entries_is_a_way_of_its_own(both: Both) -> None:
    await both.say("a:")
    await both.say("b:")
    await both.carry()
    await both.undo(both.there)
    assert (await both.carry()).outcome is ImportOutcome.EXTENDED
    await both.undo(both.here)
    await both.undo(both.there)
    assert (await both.carry()).outcome is ImportOutcome.COPIED


async def test_an_import_restores_a_deleted_conversation_only_on_request(both: Both) -> None:
    name = await both.say("a:")
    await both.carry()
    await both.here.engine.delete_conversation(name)
    assert (await both.carry()).outcome is ImportOutcome.DELETED
    revived = await both.carry(revive=True)
    assert revived.outcome is ImportOutcome.COPIED
    assert await both.entries(revived.local_id) == 2
    assert (await both.carry(revive=True)).outcome is ImportOutcome.UNCHANGED
    await both.here.engine.delete_conversation(ConversationId(revived.local_id))
    assert (await both.carry(revive=True)).outcome is ImportOutcome.DELETED


async def test_a_deletion_leaves_a_mark_that_fits_what_was_exported_before(both: Both) -> None:
    name = await both.say("unheard_of:")
    before = await both.export()
    await both.carry()
    await both.there.engine.delete_conversation(name)
    after = await exported(both.there.store.inner, name)
    assert b"unheard_of" in before
    assert b"unheard_of" not in after
    assert verify_export(io.BytesIO(after), earlier=verified(before)).findings == []
    # It is not deleted here, and deleting it here later leaves a mark of its own.
    await taken_in(both.here.store.inner, after)
    assert await both.entries(name) == 2
    await both.here.engine.delete_conversation(name)
    after = await exported(both.here.store.inner, name)
    assert verify_export(io.BytesIO(after), earlier=verified(before)).findings == []


@pytest.mark.both_databases
async def test_a_turn_that_is_not_over_is_stopped_where_it_was_taken_in(both: Both) -> None:
    asked = await both.there.say("a:look pay", to=both.name)
    await both.there.waiting(asked.conversation_id)
    ran = both.here.tools.ran.total()
    assert (await both.carry()).outcome is ImportOutcome.IMPORTED
    await both.here.idle(asked.conversation_id)
    turn = await both.here.store.inner.read(_only_turn, asked.conversation_id)
    assert turn == ("done", "cancelled")
    assert both.here.tools.ran.total() == ran
    await say(both.here, "b:look", to=asked.conversation_id)


def _only_turn(t: Tx, conversation: str) -> object:
    return t.fetch_one("SELECT state, outcome FROM turn WHERE conversation_id = $1", conversation)


async def test_one_that_others_write_to_is_left_for_later(both: Both) -> None:
    name = await both.say("a:")
    await both.carry()
    await both.say("b:")
    store = both.here.store.inner
    lease = (await store.write(leases.acquire_lease, name, owner=both.here.engine.owner_id)).lease
    taken = await both.carry()
    assert (taken.outcome, taken.entries) == (ImportOutcome.FAILED, 0)
    assert taken.note is not None
    assert "import again later" in taken.note
    await store.write(leases.release_lease, lease)
    assert (await both.carry()).outcome is ImportOutcome.EXTENDED


async def test_ids_that_others_have_here_are_not_taken_from_them(both: Both) -> None:
    await both.say("a:")
    (session,) = [line["id"] for kind, line in said_in(await both.export()) if kind == "session"]
    other = ids.new_conversation_id()
    await both.here.store.inner.write(
        conversations.open_conversation, other, scope=LOCAL, session_ids=lambda _: session
    )
    assert (await both.carry()).outcome is ImportOutcome.COPIED
    assert await both.entries(other) == 0


async def test_secrets_of_the_settings_are_in_no_export(both: Both) -> None:
    secret = 'sk-"ünd"\\hidden'
    name = await both.say(f"a:{secret}")
    await both.there.engine.rename_conversation(name, f"About {secret} and {both.name}")
    export = await both.export(secrets=[secret])
    assert "hidden" not in export.decode()
    assert verified(export).conversations[0].withheld
    # Without all that was said its hashes prove nothing: it gets others.
    (taken,) = await taken_in(both.here.store.inner, export)
    assert taken.outcome is ImportOutcome.COPIED
    assert results(await taken_in(both.here.store.inner, export)) == [ImportOutcome.UNCHANGED]
    assert results(await taken_in(both.there.store.inner, export)) == [ImportOutcome.UNCHANGED]


async def test_routes_lead_to_what_was_taken_in_only_on_request(both: Both) -> None:
    name, other = await both.say("a:"), f"other-{both.name}"
    await say(both.here, "b:", to=other)
    await both.there.engine.sessions.resume_conversation(local_route(other), name)
    export, here = await both.export(), both.here.engine
    (taken,) = await taken_in(both.here.store.inner, export)
    assert (await here.get_view(name)).routes == ()
    async with ConversationImporter(
        both.here.store.inner, ids, version="0"
    ).register_owner() as imports:
        (outline,) = verified(export).conversations
        await imports.claim_routes(open_section(io.BytesIO(export), outline), taken)
    assert await here.resolve_name(both.name) == name
    assert await here.resolve_name(other) != name


@pytest.mark.both_databases
async def test_a_chat_learns_once_that_an_imported_conversation_continues_in_it(both: Both) -> None:
    name = await both.say("a:")
    chat = Route(platform="telegram", account="bot", kind="dm", chat=both.name)
    store = both.there.store.inner
    await store.write(conversations.claim_route, chat.key, name)
    export, here = await both.export(), both.here.store.inner
    for _ in range(2):
        (taken,) = await taken_in(here, export)
        async with ConversationImporter(here, ids, version="0").register_owner() as imports:
            (outline,) = verified(export).conversations
            await imports.claim_routes(open_section(io.BytesIO(export), outline), taken)
    bodies = await here.read(lambda t: t.fetch_column("SELECT body FROM delivery"))
    assert [IMPORTED_NOTICE in body for body in bodies] == [True]


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"expiry_finalized": True}, True),
        ({"memory_flushed": True}, True),
        ({"expiry_finalized": False, "memory_flushed": True}, False),
        ({}, False),
    ],
)
async def test_s4_7_the_end_of_a_session_that_was_told_elsewhere_is_not_told_again(
    both: Both, record: dict[str, bool], told: bool
) -> None:
    name = await both.say("a:")
    await both.there.engine.start_new_conversation(local_route(both.name))
    await both.there.idle(name)
    await both.there.engine.wait_until_idle()
    said = said_in(await exported(both.there.store.inner, name))
    (end,) = (line for kind, line in said if kind == "input" and line["kind"] == "command")
    assert end.pop("expiry_finalized") is True
    end |= record
    await taken_in(both.here.store.inner, b"".join(sealed(said)))
    marked = await both.here.store.inner.read(
        hook_marks.list_notified_plugins, hook_marks.ALL, end["id"]
    )
    assert (marked == {hook_marks.ALL}) is told


class Stopped(Exception):
    """The process ends here."""


class Stopping:
    """A store that stops before the write of this number."""

    def __init__(self, store: Store, writes: int) -> None:
        self._store, self._left = store, writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, job: Any, *args: Any, **kwargs: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise Stopped
        return await self._store.write(job, *args, **kwargs)


async def test_an_import_that_is_stopped_anywhere_leaves_whole_conversations_and_continues(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_FIRST_SLICE", 4)
    monkeypatch.setattr(importing, "_MIN_SLICE", 4)
    monkeypatch.setattr(importing, "_MAX_SLICE", 4)
    async with open_world(f"sqlite:///{tmp_path}/from.db", tmp_path) as world:
        name, *_ = await lead(world)
        export = await exported(world.store.inner, name)
    (outline,) = verified(export).conversations
    async with opened(store_url, tmp_path) as store:
        lengths: list[int] = []
        for writes in range(1, 40):
            stopping: Any = Stopping(store, writes)
            imports = ConversationImporter(stopping, ids, version="0")
            try:
                await imports.import_conversation(open_section(io.BytesIO(export), outline))
            except Stopped:
                pass
            else:
                break
            assert await store.read(invariants.check) == []
            lengths.append(await store.read(_length, name))
        assert len({*lengths}) > 3
        assert lengths == sorted(lengths)
        assert await exported(store, name) == export


def _length(t: Tx, name: str) -> int:
    row = t.fetch_one("SELECT last_seq FROM lease WHERE conversation_id = $1", name)
    return 0 if row is None else row[0]
