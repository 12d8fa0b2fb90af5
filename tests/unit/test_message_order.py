"""The order of a person's message and of what was shown in its chat."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clew.core.message_order import WrittenMessage

_SHOWN = datetime(2026, 3, 1, 12, 0, 5, 400_000, UTC)


@pytest.mark.parametrize(
    ("own", "shown", "follows"),
    [
        ("101", "100", True),
        ("100", "101", False),
        ("1000", "999", True),  # no comparison of texts
        ("1700000005.000200", "1700000005.000100", True),
        ("1700000005.000100", "1700000005.000200", False),
    ],
)
def test_ids_that_grow_tell_the_order_whatever_the_clocks_say(
    own: str, shown: str, follows: bool
) -> None:
    for skew in (-3600, 0, 3600):
        sent = _SHOWN + timedelta(seconds=skew)
        written = WrittenMessage(id=own, sent_at=sent, has_ordered_ids=True)
        assert written.follows(shown, _SHOWN) is follows


@pytest.mark.parametrize(
    ("sent", "follows"),
    [
        (_SHOWN - timedelta(milliseconds=1), False),
        (_SHOWN + timedelta(milliseconds=1), True),
        # Whole seconds: written somewhere in the second in which it was shown.
        (_SHOWN.replace(microsecond=0), True),
        (_SHOWN.replace(microsecond=0) - timedelta(seconds=1), False),
    ],
)
@pytest.mark.parametrize(
    ("id_", "shown", "ordered"),
    [("1", "2", False), ("1337.42.abc", "2", True), ("NaN", "2", True), ("1", None, True)],
)
def test_without_such_ids_the_time_of_the_message_decides(
    id_: str, shown: str | None, ordered: bool, sent: datetime, follows: bool
) -> None:
    written = WrittenMessage(id=id_, sent_at=sent, has_ordered_ids=ordered)
    assert written.follows(shown, _SHOWN) is follows
