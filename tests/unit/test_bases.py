"""Bases: what a session starts from."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.session_base import (
    Base,
    BaseItem,
    EntryRange,
    InlineMessage,
    extend_base,
    merge_ranges,
)


def _range(first: int, more: int) -> EntryRange:
    return EntryRange(first=first, last=first + more)


RANGES = st.builds(_range, st.integers(1, 30), st.integers(0, 5))
LITERALS = st.builds(InlineMessage, format=st.just("t/1"), message=st.text(max_size=3))
BASES = st.lists(RANGES | LITERALS, max_size=8).map(tuple)


def spelled(base: Base) -> list[int | str]:
    """Each seq and each literal, one by one."""
    found: list[int | str] = []
    for item in base:
        if isinstance(item, EntryRange):
            found += range(item.first, item.last + 1)
        else:
            found.append(item.message)
    return found


@pytest.mark.parametrize(("first", "last"), [(0, 1), (-1, 1), (2, 1)])
def test_a_range_begins_at_one_and_does_not_end_before(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="no range"):
        EntryRange(first=first, last=last)


@given(BASES)
def test_joining_changes_no_message_and_no_order(base: Base) -> None:
    assert spelled(merge_ranges(base)) == spelled(base)


@given(BASES)
def test_joined_ranges_do_not_touch(base: Base) -> None:
    items: list[BaseItem] = list(merge_ranges(base))
    for one, next_one in itertools.pairwise(items):
        if isinstance(one, EntryRange) and isinstance(next_one, EntryRange):
            assert one.last + 1 != next_one.first


@given(BASES, st.integers(0, 20), st.integers(0, 5))
def test_a_whole_context_is_the_base_and_what_was_said_since(
    base: Base, opened_seq: int, since: int
) -> None:
    last = opened_seq + since
    whole = extend_base(base, opened_seq=opened_seq, last_seq=last)
    assert spelled(whole) == spelled(base) + list(range(opened_seq + 1, last + 1))


def test_a_session_in_which_nothing_was_said_is_its_base() -> None:
    base = (EntryRange(first=1, last=4),)
    assert extend_base(base, opened_seq=4, last_seq=4) == base


def test_reopening_makes_one_range_of_two() -> None:
    base = (EntryRange(first=1, last=4),)
    assert extend_base(base, opened_seq=4, last_seq=9) == (EntryRange(first=1, last=9),)
