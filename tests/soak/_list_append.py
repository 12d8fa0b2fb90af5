"""
Linearizability of one list that clients append to and read, by what they saw.

The longest read fixes the order of all appends in it. Every operation then has one place: an append
its own, a read after the last append that it saw. The history is linearizable if nothing ended
before something that stands earlier in that order began.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """What one client did; ``ended`` is ``None`` where no answer came."""

    begun: float
    ended: float | None
    #: What was appended, or …
    appended: str | None = None
    #: … what was read.
    read: tuple[str, ...] = ()


def find_anomalies(history: list[Operation]) -> list[str]:
    """Return everything that no order of the operations can explain."""
    reads = [one for one in history if one.appended is None and one.ended is not None]
    longest = max((one.read for one in reads), key=len, default=())
    found = [
        f"{one.read} is no beginning of {longest}"
        for one in reads
        if one.read != longest[: len(one.read)]
    ]
    found += [f"{value} is there twice" for value in {*longest} if longest.count(value) > 1]
    appends = {one.appended: one for one in history if one.appended is not None}
    found += [f"{value} was read, and nobody appended it" for value in {*longest} - {*appends}]
    return found or _find_disorder(longest, appends, reads)


def _find_disorder(
    longest: tuple[str, ...], appends: dict[str, Operation], reads: list[Operation]
) -> list[str]:
    lost = [one for value, one in appends.items() if value not in longest and one.ended is not None]
    last = max((one.begun for one in reads if one.read == longest), default=0.0)
    found = [f"{one.appended} is lost" for one in lost if one.ended and one.ended < last]
    places = {value: place for place, value in enumerate(longest, 1)}
    ordered = sorted(
        [(places[value], 0, one.begun, one) for value, one in appends.items() if value in places]
        + [(len(one.read), 1, one.begun, one) for one in reads],
        key=lambda each: each[:3],
    )
    newest = 0.0
    for place, _, begun, one in ordered:
        if one.ended is not None and one.ended < newest:
            what = one.appended or f"a read of {len(one.read)}"
            found.append(f"{what} at place {place} had ended before what stands before it began")
        newest = max(newest, begun)
    return found
