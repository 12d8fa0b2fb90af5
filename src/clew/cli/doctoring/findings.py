"""What a check found."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Level(enum.Enum):
    OK = "ok"
    WARN = "warn"  #: it works, and something should be done
    FAIL = "fail"  #: it does not work, or is not safe


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    level: Level
    #: What was looked at, in a word or two.
    what: str
    #: How it is.
    detail: str
    #: What to do next, where there is something to do.
    fix: str | None = None


def ok(what: str, detail: str) -> Finding:
    return Finding(level=Level.OK, what=what, detail=detail)


def warn(what: str, detail: str, *, fix: str) -> Finding:
    return Finding(level=Level.WARN, what=what, detail=detail, fix=fix)


def fail(what: str, detail: str, *, fix: str | None = None) -> Finding:
    """Without ``fix`` the detail says what to do: errors of ours do."""
    return Finding(level=Level.FAIL, what=what, detail=detail, fix=fix)


def size(count: int) -> str:
    """A number of bytes, for people."""
    value, units = float(count), ["bytes", "KB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return (
        f"{value:.0f} {units[0]}"
        if value >= 10 or units[0] == "bytes"
        else f"{value:.1f} {units[0]}"
    )
