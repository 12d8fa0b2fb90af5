"""Trace contexts of W3C: the header ``traceparent``, and the one of the request being handled."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final

from clew.record import Record

#: Name of the header, and the key of an input's payload.
TRACEPARENT: Final = "traceparent"
#: Of the request that is being handled, if it came with a valid one.
incoming_traceparent: ContextVar[str | None] = ContextVar("incoming_traceparent", default=None)

_PATTERN: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceParent(Record):
    """The span of a caller within its trace."""

    trace_id: str
    span_id: str
    is_sampled: bool


def parse_traceparent(value: str | None) -> TraceParent | None:
    """Return the span that a header names; ``None`` without a valid one."""
    found = None if value is None else _PATTERN.fullmatch(value.strip())
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    # A version that is known has no more fields.
    if found[0].startswith("00-") and found[4] is not None:
        return None
    return TraceParent(trace_id=found[1], span_id=found[2], is_sampled=bool(int(found[3], 16) & 1))
