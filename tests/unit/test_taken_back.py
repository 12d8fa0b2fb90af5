"""Messages that rewinds remove from a conversation and restore."""

from __future__ import annotations

import pytest

from clew.core.rewound import RewindMark, find_rewound_spans


@pytest.mark.parametrize(
    ("rewinds", "gone"),
    [
        ([], []),
        ([(6, 2)], [(3, 6)]),
        ([(6, 0)], [(1, 6)]),
        # To the end of the log: nothing goes.
        ([(6, 6)], []),
        # Two, one after the other: the second over what the first left.
        ([(6, 4), (10, 8)], [(5, 6), (9, 10)]),
        ([(6, 4), (8, 2)], [(3, 8)]),
        # Forth again, to what the first took out.
        ([(6, 2), (6, 5)], [(6, 6)]),
        ([(6, 2), (8, 4)], [(5, 8)]),
        # To the point at which somebody had gone back: what that took out stays out.
        ([(6, 2), (8, 2)], [(3, 8)]),
    ],
)
def test_of_what_is_in_the_log_this_is_out_of_the_conversation(
    rewinds: list[tuple[int, int]], gone: list[tuple[int, int]]
) -> None:
    found = find_rewound_spans([RewindMark(at=at, to=to) for at, to in rewinds])
    assert [(span.first, span.last) for span in found] == gone
