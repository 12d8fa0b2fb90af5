"""Lists of conversations by person, channel and time, the same on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from clew.core.conversation import ConversationFilter
from clew.core.ids import ConversationId, SessionId, new_session_id
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.core.session import Head
from clew.store.opening import open_store
from clew.store.transactions import leases, listing, sessions, views
from clew.store.transactions.conversations import get_conversation, open_conversation
from tests.contract.lifecycle.filling import EARLIER, fill

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.core.scope import Scope
    from clew.store.contract import Store, Tx

#: In the order in which they are used.
PLACES: Final = {
    "local": local_route("talk"),
    "Ann": Route(platform="telegram", kind="dm", chat="1"),
    "Ann at work": Route(platform="telegram", kind="dm", chat="1", account="work"),
    "a group": Route(platform="telegram", kind="group", chat="-7", thread="1"),
    "100%": Route(platform="discord", kind="dm", chat="100%_:!"),
    "an odd name": Route(platform="my_chat", kind="dm", chat="telegram:"),
}
_SECOND: Final = 1000


@pytest.fixture
async def store(store_url: str, tmp_path: Path) -> AsyncGenerator[Store]:
    async with await open_store(store_url, home=tmp_path) as opened:
        yield opened


def _scope(name: str) -> Scope:
    return scope_of(PLACES[name])


def _fill(t: Tx) -> None:
    for number, name in enumerate(PLACES, 1):
        conversation = ConversationId(f"cnv_{number:028}")
        open_conversation(t, conversation, scope=_scope(name), session_ids=new_session_id)
        t.execute(
            "UPDATE conversation SET title = $2, titled_by = 'person' WHERE id = $1",
            conversation,
            name,
        )
        t.execute(
            "UPDATE lease SET updated_at = $2 WHERE conversation_id = $1",
            conversation,
            number * _SECOND,
        )


def _list(t: Tx, wanted: ConversationFilter, viewer: Scope, title: str) -> list[str | None]:
    page = listing.list_conversations(t, viewer=viewer, title=title, wanted=wanted)
    return [one.title for one in page.items]


async def _listed(
    store: Store, viewer: Scope = LOCAL, title: str = "", **wanted: Any
) -> list[str | None]:
    return await store.read(_list, ConversationFilter(**wanted), viewer, title)


async def test_conversations_are_listed_by_person_channel_and_time(store: Store) -> None:
    await store.write(_fill)
    assert await _listed(store) == [*reversed(PLACES)]
    for name in PLACES:
        assert await _listed(store, scope=_scope(name)) == [name]
    assert await _listed(store, channel="telegram") == ["a group", "Ann at work", "Ann"]
    assert await _listed(store, channel="work") == ["Ann at work"]
    assert await _listed(store, channel="local") == ["local"]
    # No part of a name is a pattern.
    assert await _listed(store, channel="my_chat") == ["an odd name"]
    assert await _listed(store, channel="my!chat") == []
    assert await _listed(store, channel="%") == []
    assert await _listed(store, since=3 * _SECOND) == [
        "an odd name",
        "100%",
        "a group",
        "Ann at work",
    ]
    assert await _listed(store, until=3 * _SECOND) == ["Ann", "local"]
    both: dict[str, Any] = {"since": 2 * _SECOND, "until": 4 * _SECOND, "channel": "telegram"}
    assert await _listed(store, **both) == ["Ann at work", "Ann"]
    assert await _listed(store, title="work", **both) == ["Ann at work"]


async def test_a_filter_shows_nobody_more_than_they_may_see(store: Store) -> None:
    await store.write(_fill)
    for viewer in map(_scope, PLACES):
        if viewer == LOCAL:
            continue
        for wanted in ("local", _scope("a group")):
            expected = ["a group"] if viewer == wanted else []
            assert await _listed(store, viewer, scope=wanted) == expected
        [own] = await store.read(_scopes, viewer)
        assert own == viewer
    assert await store.read(_scopes, LOCAL) == [_scope(name) for name in reversed(PLACES)]


def _scopes(t: Tx, viewer: Scope) -> list[Scope]:
    found = listing.list_scopes(t, viewer=viewer)
    assert all(one.conversations == 1 for one in found)
    return [one.scope for one in found]


async def test_pages_of_a_filter_follow_each_other(store: Store) -> None:
    await store.write(_fill)
    wanted = ConversationFilter(channel="telegram")

    def read(t: Tx) -> list[str | None]:
        titles: list[str | None] = []
        cursor: str | None = None
        while True:
            page = listing.list_conversations(
                t, viewer=LOCAL, cursor=cursor, limit=2, wanted=wanted
            )
            titles += [one.title for one in page.items]
            if (cursor := page.next) is None:
                return titles

    assert await store.read(read) == ["a group", "Ann at work", "Ann"]


async def test_the_entries_of_each_session_are_counted_without_reading_them(store: Store) -> None:
    def talk(t: Tx) -> dict[SessionId, int]:
        conversation = ConversationId("cnv_" + "7" * 28)
        open_conversation(t, conversation, scope=LOCAL, session_ids=new_session_id)
        for number, count in enumerate((3, 0, 5)):
            fill(t, conversation, count, size=20)
            lease = leases.acquire_lease(t, conversation, owner=EARLIER).lease
            head = sessions.get_head(t, conversation)
            last = get_conversation(t, conversation).last_seq
            sessions.rotate_session(
                t,
                lease,
                operation=f"op_{number}",
                expected=Head(session=head.id, last_seq=last),
                base=(),
                reason="rewind",
                session_ids=new_session_id,
            )
            leases.release_lease(t, lease)
        counted = t.fetch_map(
            "SELECT session_id, count(*) FROM entry WHERE conversation_id = $1 GROUP BY session_id",
            conversation,
        )
        counts = views.get_view(t, conversation, viewer=LOCAL).counts
        assert {name: count for name, count in counts.items() if count} == counted
        return counts

    assert list((await store.write(talk)).values()) == [3, 0, 5, 0]
