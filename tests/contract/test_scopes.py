"""Callers see and change only their own records; the local owner of the store sees all."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pytest

from clew import runtime
from clew.commands.runner import CommandRunner
from clew.config import load_settings
from clew.core.ids import ConversationId
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.engine.engine import Engine
from clew.errors import NotFound, TitleTaken
from clew.store.opening import open_store
from tests.contract import invariants

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from clew.core.scope import Scope

#: Command line and API token are one scope: whoever has them has the store.
PLACES = {
    "A": Route(platform="telegram", kind="dm", chat="a"),
    "B": Route(platform="telegram", kind="dm", chat="b"),
    "A elsewhere": Route(platform="discord", kind="dm", chat="a"),
    "A, other bot": Route(platform="telegram", kind="dm", chat="a", account="work"),
    "a group": Route(platform="telegram", kind="group", chat="g", thread="1"),
    "local": local_route("talk"),
}
WORD = "minotaur"


@dataclass(frozen=True, kw_only=True)
class Talk:
    """A conversation with something said in it, and whose it is."""

    owner: str
    route: Route
    id: ConversationId
    session: str
    title: str


async def begun(engine: Engine, owner: str, *, n: int = 0) -> Talk:
    """Someone's conversation; number 0 is where their route leads."""
    route = PLACES[owner]
    accepted = await engine.submit(f"{WORD} of {owner}", target=route)
    async for _ in engine.stream_input(accepted):
        pass
    title = f"{owner}, {n}"
    await engine.rename_conversation(accepted.conversation_id, title)
    view = await engine.get_view(accepted.conversation_id)
    return Talk(
        owner=owner,
        route=route,
        id=accepted.conversation_id,
        session=view.conversation.head,
        title=title,
    )


@asynccontextmanager
async def opened(url: str, home: Path) -> AsyncGenerator[Engine]:
    settings = load_settings(home=home, flags={"model.name": "offline"}, environ={})
    async with await open_store(url, home=home) as store:
        means = runtime.build_services(settings, store)
        async with Engine(means, role="test", version="0") as engine:
            yield engine
        assert await store.read(invariants.check) == []


async def listed(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    page = await engine.list_conversations(viewer=viewer, limit=1000, adhoc=True)
    titled = await engine.list_views(viewer=viewer, title=talk.title, limit=1000)
    found = talk.id in {one.id for one in page.items}
    assert found == (talk.id in {one.conversation.id for one in titled.items})
    # A list shows of each conversation what looking at it does.
    assert list(titled.items) == [
        await engine.get_view(one.conversation.id, viewer=viewer) for one in titled.items
    ]
    return found


async def found_by_its_words(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    hits = (await engine.search_messages(WORD, viewer=viewer, limit=100)).items
    return talk.id in {hit.conversation_id for hit in hits}


async def shown(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    return await _may(engine.get_view(talk.id, viewer=viewer))


async def read(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    return await _may(engine.read_entries(talk.id, viewer=viewer))


async def resolved(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    names = [talk.id, talk.session, talk.route.key]
    found = {await _may(engine.resolve_name(name, viewer=viewer)) for name in names}
    assert len(found) == 1
    return found.pop()


async def resumed(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    here = Route(platform="telegram", kind="dm", chat="c")
    before = await engine.start_new_conversation(here)
    may = await _may(engine.sessions.resume_conversation(here, talk.id, viewer=viewer))
    assert (await engine.resolve_name(here.key) == before) != may
    return may


async def branched(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    return await _may(engine.sessions.branch_conversation(talk.id, viewer=viewer))


async def renamed(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    may = await _may(engine.rename_conversation(talk.id, "taken over", viewer=viewer))
    title = (await engine.get_view(talk.id)).conversation.title
    assert (title == talk.title) != may
    await engine.rename_conversation(talk.id, talk.title)
    return may


async def resumed_by_command(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    """By its id, its session, its route and its title; nothing is told of what is not theirs."""
    here = next(route for route in PLACES.values() if scope_of(route) == viewer)
    home = await engine.resolve_name(here.key)
    moved: set[bool] = set()
    for name in (talk.id, talk.session, talk.title):
        reply = await CommandRunner(engine).run_command(
            f"/resume {name}", target=here, viewer=viewer
        )
        moved.add(await engine.resolve_name(here.key) == talk.id)
        assert (talk.title in reply.text.replace(name, "")) <= moved.copy().pop()
        await engine.sessions.resume_conversation(here, home)
    assert len(moved) == 1
    return moved.pop()


async def listed_by_command(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    here = next(route for route in PLACES.values() if scope_of(route) == viewer)
    reply = await CommandRunner(engine).run_command("/sessions", target=here, viewer=viewer)
    assert (talk.id in reply.text) == (talk.title in reply.text)
    return talk.id in reply.text


async def deleted(engine: Engine, viewer: Scope, talk: Talk) -> bool:
    may = await _may(engine.delete_conversation(talk.id, viewer=viewer))
    assert await _may(engine.get_view(talk.id)) != may
    return may


async def _may(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except NotFound:
        return False
    return True


ACTS: list[Callable[[Engine, Scope, Talk], Awaitable[bool]]] = [
    listed,
    found_by_its_words,
    shown,
    read,
    resolved,
    resumed,
    branched,
    renamed,
    resumed_by_command,
    listed_by_command,
    deleted,
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.__name__)
async def test_a_conversation_is_theirs_alone_and_the_owners(
    act: Callable[[Engine, Scope, Talk], Awaitable[bool]], store_url: str, tmp_path: Path
) -> None:
    allowed: set[tuple[str, str]] = set()
    async with opened(store_url, tmp_path) as engine:
        talks = {owner: await begun(engine, owner) for owner in PLACES}
        for owner, viewer in product(PLACES, PLACES):
            if await act(engine, scope_of(PLACES[viewer]), talks[owner]):
                allowed.add((viewer, owner))
            if act is deleted and (viewer, owner) in allowed:
                talks[owner] = await begun(engine, owner, n=len(allowed))
    theirs = {(owner, owner) for owner in PLACES}
    assert allowed == theirs | {("local", owner) for owner in PLACES}


async def test_a_conversation_of_another_scope_is_not_found(store_url: str, tmp_path: Path) -> None:
    viewer = scope_of(PLACES["B"])
    async with opened(store_url, tmp_path) as engine:
        talk = await begun(engine, "A")
        strange = ConversationId(talk.id[:-1] + ("0" if talk.id[-1] != "0" else "1"))
        for job in (
            engine.get_view,
            engine.read_entries,
            engine.delete_conversation,
            engine.resolve_name,
        ):
            with pytest.raises(NotFound) as hidden:
                await job(talk.id, viewer=viewer)
            with pytest.raises(NotFound) as missing:
                await job(strange, viewer=viewer)
            assert str(hidden.value).replace(talk.id, strange) == str(missing.value)


@pytest.mark.parametrize("viewer", ["itself", "local"])
async def test_a_title_is_unique_within_a_scope(
    viewer: str, store_url: str, tmp_path: Path
) -> None:
    async with opened(store_url, tmp_path) as engine:
        for owner in PLACES:
            talk = await begun(engine, owner)
            giver = LOCAL if viewer == "local" else scope_of(talk.route)
            await engine.rename_conversation(talk.id, "Labyrinth", viewer=giver)
            second = await engine.start_new_conversation(talk.route)
            assert await _is_taken(engine.rename_conversation(second, "Labyrinth", viewer=giver))
            assert (await engine.get_view(second)).conversation.title is None


async def _is_taken(asked: Awaitable[object]) -> bool:
    try:
        await asked
    except TitleTaken:
        return True
    return False


async def test_threads_and_people_of_a_group_are_one_scope(store_url: str, tmp_path: Path) -> None:
    group = PLACES["a group"]
    other = Route(platform="telegram", kind="group", chat="g", thread="2", user="b")
    async with opened(store_url, tmp_path) as engine:
        talk = await begun(engine, "a group")
        assert scope_of(other) == scope_of(group)
        assert await shown(engine, scope_of(other), talk)


async def test_an_ad_hoc_conversation_belongs_to_the_owner(store_url: str, tmp_path: Path) -> None:
    async with opened(store_url, tmp_path) as engine:
        accepted = await engine.submit(f"{WORD}!", target=local_route("passing"))
        found = (await engine.get_view(accepted.conversation_id)).conversation
        assert found.scope == LOCAL
        hits = await engine.search_messages(WORD, viewer=scope_of(PLACES["A"]))
        assert hits.items == ()
