"""Session keys: each route has one key, each key one route."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.ids import IdGenerator, new_session_id
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, Scope, can_see, scope_of
from clew.errors import UsageError

#: Ids as platforms make them, and what could be taken for structure.
PART = st.one_of(
    st.text(min_size=1, max_size=8),
    st.sampled_from([":", "%", "%3A", "user", "thread", "account", "a:user:b", "dm", "агент"]),
)
MAYBE = st.none() | PART
ROUTES = st.builds(
    Route, agent=PART, platform=PART, kind=MAYBE, chat=PART, account=MAYBE, user=MAYBE, thread=MAYBE
)


@given(ROUTES)
def test_a_key_is_read_as_the_route_that_wrote_it(route: Route) -> None:
    assert Route.parse(route.key) == route


@given(ROUTES, ROUTES)
def test_two_routes_have_two_keys(one: Route, other: Route) -> None:
    assert (one.key == other.key) is (one == other)


@given(st.text(max_size=40) | st.lists(PART, max_size=9).map(":".join))
def test_any_other_text_is_refused_or_written_the_same(text: str) -> None:
    for key in (text, f"agent:{text}"):
        try:
            route = Route.parse(key)
        except UsageError:
            continue
        assert route.key == key


@pytest.mark.parametrize(
    ("key", "route"),
    [
        ("agent:main:telegram:dm:42", Route(platform="telegram", kind="dm", chat="42")),
        ("agent:main:local:main", Route(platform="local", chat="main")),
        (
            "agent:main:matrix:group:!room%3Ahs.org:user:@me%3Ahs.org",
            Route(platform="matrix", kind="group", chat="!room:hs.org", user="@me:hs.org"),
        ),
        (
            "agent:b:slack:channel:C1:account:T1:user:U1:thread:7.1",
            Route(
                agent="b", platform="slack", kind="channel", chat="C1", account="T1", user="U1",
                thread="7.1",
            ),
        ),
    ],
)  # fmt: skip
def test_keys_look_like_this(key: str, route: Route) -> None:
    assert route.key == key
    assert Route.parse(key) == route


def test_a_persons_and_a_threads_talk_in_a_group_are_two() -> None:
    user = Route(platform="telegram", kind="group", chat="1", user="2")
    thread = Route(platform="telegram", kind="group", chat="1", thread="2")
    assert user.key == "agent:main:telegram:group:1:user:2"
    assert thread.key == "agent:main:telegram:group:1:thread:2"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "agent",
        "agent:main",
        "agent:main:telegram",
        "agent:main::dm",
        "agent:main:telegram:dm:42:",
        "agent:main:telegram:dm:42:room:7",
        "agent:main:telegram:dm:42:user:1:user:2",
        "agent:main:telegram:dm:42:thread:1:user:2",
        "agent:main:telegram:dm:4%32",
        "agent:main:telegram:dm:%ff",
        "agent:main:telegram:dm:%3a",
        "route:main:telegram:dm:42",
        " agent:main:telegram:dm:42",
    ],
)
def test_an_invalid_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        Route.parse(key)


@pytest.mark.parametrize("part", ["agent", "platform", "kind", "chat", "account", "user", "thread"])
def test_an_empty_part_is_refused(part: str) -> None:
    parts: dict[str, str] = {"platform": "p", "chat": "c", part: ""}
    with pytest.raises(UsageError):
        _ = Route(**parts).key


@pytest.mark.parametrize(
    "name",
    [
        "", "cnv_1", "trn_x", "20260101_000000_aaaaaa", "agent:main:local:x", "a\nb", "a\0b",
        "x" * 201,
    ],
)  # fmt: skip
def test_a_name_that_could_be_an_id_or_cannot_be_seen_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        local_route(name)


@given(st.text(min_size=1, max_size=20))
def test_no_id_is_a_name(token: str) -> None:
    ids = IdGenerator(lambda: 1, lambda _: token)
    made = [
        ids.new_conversation_id(),
        ids.new_turn_id(),
        ids.new_inbox_id(),
        ids.new_owner_id(),
        new_session_id(1),
    ]
    for name in made:
        with pytest.raises(UsageError):
            local_route(name)


def test_a_name_may_hold_what_a_key_uses() -> None:
    assert local_route("a:user:b").key == "agent:main:local:a%3Auser%3Ab"


def test_a_scope_is_a_person_a_chat_with_its_threads_or_local() -> None:
    group = Route(platform="telegram", kind="group", chat="-1")
    thread = Route(platform="telegram", kind="group", chat="-1", thread="9", user="7")
    assert scope_of(group) == scope_of(thread) == "chat:telegram:-1"
    assert scope_of(Route(platform="telegram", kind="dm", chat="42")) == "person:telegram:42"
    assert scope_of(local_route("main")) == LOCAL


def test_two_accounts_are_two_scopes_and_two_agents_share_one() -> None:
    one = Route(platform="slack", kind="dm", chat="D1", account="T1")
    two = Route(platform="slack", kind="dm", chat="D1", account="T2")
    agent = Route(agent="b", platform="slack", kind="dm", chat="D1", account="T1")
    assert scope_of(one) != scope_of(two)
    assert scope_of(agent) == scope_of(one)


@given(ROUTES)
def test_a_scope_sees_itself_and_local_sees_all(route: Route) -> None:
    scope = scope_of(route)
    assert can_see(scope, scope)
    assert can_see(LOCAL, scope)
    assert can_see(scope, LOCAL) is (scope == LOCAL)
    assert not can_see(Scope("person:nobody:0"), Scope("chat:nobody:0"))
