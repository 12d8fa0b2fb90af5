"""Life cycles, effects, ids and text: the small rules."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.clock import from_millis, to_millis
from clew.core import approval, delivery, turn
from clew.core.effect import Effect, ResumeAction, effect_of, resume_action
from clew.core.entry import GENESIS, chain_hash
from clew.core.ids import IdGenerator, looks_like_id, new_session_id
from clew.core.text import REPLACEMENT, sanitize_text, truncate_text
from clew.core.transitions import check_transition
from clew.errors import InvalidTransition

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping

TABLES: dict[str, Mapping[Any, frozenset[Any]]] = {
    "turn": turn.TRANSITIONS,
    "approval": approval.TRANSITIONS,
    "delivery": delivery.TRANSITIONS,
}
STATES: list[tuple[str, enum.Enum, enum.Enum]] = [
    (name, old, new) for name, moves in TABLES.items() for old in moves for new in moves
]


@pytest.mark.parametrize(("name", "old", "new"), STATES)
def test_a_move_is_allowed_by_its_table_alone(name: str, old: enum.Enum, new: enum.Enum) -> None:
    if new in TABLES[name][old]:
        check_transition(name, TABLES[name], old, new)
        return
    with pytest.raises(InvalidTransition, match=f"{old.value}.*{new.value}") as raised:
        check_transition(name, TABLES[name], old, new)
    assert (raised.value.what, raised.value.old, raised.value.new) == (name, old.value, new.value)


@pytest.mark.parametrize("name", TABLES)
def test_every_state_stands_in_its_table(name: str) -> None:
    states = {
        "turn": turn.TurnState,
        "approval": approval.ApprovalState,
        "delivery": delivery.DeliveryState,
    }
    assert set(TABLES[name]) == set(states[name])


def test_final_states_have_no_transition() -> None:
    assert not turn.TRANSITIONS[turn.TurnState.DONE]
    assert not delivery.TRANSITIONS[delivery.DeliveryState.DELIVERED]
    ends = set(approval.ApprovalState) - {approval.ApprovalState.OPEN}
    assert not any(approval.TRANSITIONS[end] for end in ends)


@pytest.mark.parametrize(
    ("effect", "resume"),
    [
        (Effect.PURE, ResumeAction.RUN),
        (Effect.IDEMPOTENT, ResumeAction.RUN),
        (Effect.ONCE, ResumeAction.UNKNOWN),
        (Effect.ASK, ResumeAction.ASK),
    ],
)
def test_an_open_call_is_resumed_by_its_effect(effect: Effect, resume: ResumeAction) -> None:
    assert resume_action(effect) is resume


@pytest.mark.parametrize("metadata", [None, {}, {"other": 1}, {"effect": None}, "pure", 7])
def test_a_tool_that_declares_nothing_runs_once(metadata: object) -> None:
    assert effect_of(metadata) is Effect.ONCE


@pytest.mark.parametrize("effect", Effect)
def test_a_declared_effect_is_taken(effect: Effect) -> None:
    assert effect_of({"effect": effect.value}) is effect


def test_an_unknown_effect_is_refused() -> None:
    with pytest.raises(ValueError, match="sometimes"):
        effect_of({"effect": "sometimes"})


def test_a_session_id_contains_its_time() -> None:
    made = new_session_id(1_767_225_600_999, lambda n: "ab" * n)
    assert made == "20260101_000000_ababab"
    assert looks_like_id(made)


@given(st.integers(0, 2**45 - 1), st.integers(0, 2**45 - 1))
def test_ids_sort_by_the_time_they_were_made(one: int, other: int) -> None:
    first, second = (
        IdGenerator(lambda ms=ms: ms, lambda n: "0" * 2 * n).new_turn_id() for ms in (one, other)
    )
    assert (first < second) is (one < other)


def test_ids_of_one_millisecond_differ() -> None:
    ids = IdGenerator(lambda: 0)
    assert len({ids.new_entry_id() for _ in range(1000)}) == 1000


@pytest.mark.parametrize("name", ["main", "cnv", "2026_x", "cnvx_1", "my_plans"])
def test_other_names_do_not_look_like_ids(name: str) -> None:
    assert not looks_like_id(name)


@given(st.text())
def test_storable_text_has_neither_nul_nor_lone_surrogates(text: str) -> None:
    stored = sanitize_text(text)
    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert len(stored) == len(text)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
def test_storable_text_is_left_as_it_is(text: str) -> None:
    assert sanitize_text(text) == text


def test_text_that_cannot_be_stored_is_replaced() -> None:
    assert sanitize_text("a\0b\ud800c") == f"a{REPLACEMENT}b{REPLACEMENT}c"


@given(st.text(), st.integers(1, 20))
def test_shortened_text_fits(text: str, limit: int) -> None:
    short = truncate_text(text, limit)
    assert len(short) <= limit
    assert short == text or (short[-1] == "…" and text.startswith(short[:-1]))


@given(st.integers(0, 253_402_300_799_999))
def test_a_time_survives_its_milliseconds(millis: int) -> None:
    moment = from_millis(millis)
    assert to_millis(moment) == millis
    assert moment.utcoffset() is not None


def test_the_hash_of_an_entry_is_fixed_for_all_time() -> None:
    """Written out, so that a store of today can be verified by a program of later."""
    fields = ("cnv_1", 1, "ent_1", "s", None, "message", "user", "ü", "[]", "[]", "f", "{}", 5)
    body = '["cnv_1",1,"ent_1","s",null,"message","user","ü","[]","[]","f","{}",5]'
    assert chain_hash(GENESIS, fields) == hashlib.sha256(bytes(32) + body.encode()).digest()


@given(st.lists(st.none() | st.integers() | st.text(), max_size=3))
def test_the_hash_is_over_compact_json(fields: list[str | int | None]) -> None:
    body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(GENESIS + body.encode()).digest()
    assert chain_hash(GENESIS, tuple(fields)) == digest


@given(st.text(max_size=5), st.text(max_size=5))
def test_the_hash_distinguishes_every_field(one: str, other: str) -> None:
    same = chain_hash(GENESIS, ("a", one, other)) == chain_hash(GENESIS, ("a", other, one))
    assert same is (one == other)
