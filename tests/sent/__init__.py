"""
Sent equals stored, in the whole suite: what a provider got is made again from what is stored.

``watching`` notes every fake provider, engine and program of a test, whoever starts them; after the
test ``compare`` takes each request that came in since, and looks for it among those that the stores
give (``rebuilding``). A test that leaves one over fails.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.sent import watching
from tests.sent.rebuilding import explain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from tests.sent.watching import CapturedRequest, Shelf

#: The property of a report that holds what was compared.
PROPERTY = "sent"
#: Requests that the tests compared themselves.
_elsewhere: Counter[str] = Counter()


def compare(item: pytest.Item) -> None:
    """
    Compare what the test has led to.

    :raises AssertionError: if there is a request that does not follow from a store
    """
    if _elsewhere:
        item.user_properties.append((PROPERTY, dict(_elsewhere)))
        _elsewhere.clear()
    requests, shelves = watching.taken()
    if not requests or not shelves or item.get_closest_marker("unequal"):
        return
    counts, left = _explained(requests, shelves)
    item.user_properties.append((PROPERTY, dict(counts)))
    assert not left, "\n".join(map(_sentence, left))


async def unexplained(requests: Sequence[CapturedRequest], shelf: Shelf) -> list[str]:
    """For tests that have other processes ask: which requests do not follow from a store."""
    counts, left = await explain(requests, [shelf])
    _elsewhere.update(counts)
    return [_sentence(request) for request in left]


def _sentence(request: CapturedRequest) -> str:
    body = request.body.decode(errors="replace")
    return f"request {request.number} was sent, but is not stored so: {body}"


def _explained(
    requests: list[CapturedRequest], shelves: list[Shelf]
) -> tuple[Counter[str], list[CapturedRequest]]:
    # The loop of the test is not ours; and nothing here is to be noted in turn.
    with watching.paused(), ThreadPoolExecutor(1) as aside:
        # The driver of a browser has a loop in this thread, between the tests of a module too.
        return aside.submit(_run, requests, shelves).result()


def _run(
    requests: list[CapturedRequest], shelves: list[Shelf]
) -> tuple[Counter[str], list[CapturedRequest]]:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(explain(requests, shelves))


def summary(counts: Counter[str]) -> str:
    """One line on all that was compared."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
    return f"sent equals stored: {counts.total():,} requests compared ({kinds})"


def counted(properties: list[tuple[str, object]]) -> Counter[str]:
    """Return the comparison that the properties of a report describe."""
    found: Counter[str] = Counter()
    for name, value in properties:
        if name == PROPERTY:
            counts: Mapping[str, int] = value  # pyright: ignore[reportAssignmentType]
            found.update(counts)
    return found
