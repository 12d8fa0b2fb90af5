"""The numbers of a response's events belong to places in its texts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.api.responses.event_numbering import EventNumbering

TEXTS = st.lists(st.text(alphabet="ab \n", min_size=1).filter(str.strip), max_size=3)


def make_events(texts: list[str], cuts: list[int], *, after: int = -1) -> list[dict[str, Any]]:
    """All events above ``after`` of a response whose texts arrive in pieces."""
    numbering = EventNumbering(after=after)
    events = numbering.begin({"status": "queued"})
    for place, text in enumerate(texts):
        bounds = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
        for begin, end in pairwise(bounds):
            events += numbering.add_piece(f"m{place}", text[begin:end])
        done = numbering.finish_item(f"m{place}", text)
        assert done is not None
        events += done
    return events + numbering.finish({"status": "completed"})


def words_of(events: list[dict[str, Any]]) -> str:
    deltas = (one["delta"] for one in events if one["type"] == "response.output_text.delta")
    return "".join("".join(deltas).split())


@given(TEXTS, st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)), st.integers(0, 100))
def test_a_stream_goes_on_after_any_event_however_the_rest_is_cut(
    texts: list[str], cuts: list[int], others: list[int], stop: int
) -> None:
    events = make_events(texts, cuts)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    assert words_of(events) == "".join("".join(texts).split())
    received = events[: stop % len(events) + 1]
    rest = make_events(texts, others, after=received[-1]["sequence_number"])
    assert words_of(received) + words_of(rest) == words_of(events)
    assert [one for one in received + rest if "delta" not in one] == [
        one for one in events if "delta" not in one
    ]


def test_text_that_differs_from_what_was_sent_is_noticed() -> None:
    numbering = EventNumbering()
    numbering.add_piece("m", "Hello")
    assert numbering.finish_item("m", "Good day") is None
