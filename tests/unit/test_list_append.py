"""The checker of histories finds what no order explains."""

from __future__ import annotations

import pytest

from tests.soak._list_append import Operation, find_anomalies


def append(value: str, begun: float, ended: float | None) -> Operation:
    return Operation(begun=begun, ended=ended, appended=value)


def read(values: str, begun: float, ended: float) -> Operation:
    return Operation(begun=begun, ended=ended, read=tuple(values))


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([append("a", 0, 1), append("b", 0, 2), read("ba", 3, 4)], ""),
        ([append("a", 0, None), read("", 1, 2), read("a", 3, 4)], ""),
        ([append("a", 0, None), read("", 3, 4)], ""),
        ([append("a", 0, 1), read("a", 2, 3), read("", 4, 5)], "ended before"),
        ([append("a", 0, 1), read("", 2, 3)], "is lost"),
        ([append("a", 0, 1), read("", 2, 3), read("a", 4, 5)], "ended before"),
        ([append("a", 0, 1), append("b", 2, 3), read("ba", 4, 5)], "ended before"),
        ([append("a", 0, 1), append("b", 0, 1), read("ab", 2, 3), read("ba", 2, 3)], "beginning"),
        ([append("a", 0, 1), read("aa", 2, 3)], "twice"),
        ([read("a", 2, 3)], "nobody"),
        ([append("a", 2, 3), read("a", 0, 1)], "ended before"),
    ],
)
def test_a_history_is_linearizable_or_the_anomaly_is_named(
    history: list[Operation], found: str
) -> None:
    anomalies = find_anomalies(history)
    assert bool(anomalies) is bool(found)
    assert all(found in sentence for sentence in anomalies)
