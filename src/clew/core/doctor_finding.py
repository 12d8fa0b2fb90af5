"""The findings of `clew doctor`."""

from __future__ import annotations

import enum

from clew.record import Record


class FindingLevel(enum.Enum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"  #: it works, and something should be done
    FAIL = "fail"  #: it does not work, or is not safe


class DoctorFinding(Record):
    """One result of a check."""

    level: FindingLevel
    #: The subject of the check, one or two words.
    what: str
    #: The state that was found.
    detail: str
    #: Advice for a fix, if one is needed.
    fix: str | None = None


def ok(what: str, detail: str) -> DoctorFinding:
    return DoctorFinding(level=FindingLevel.OK, what=what, detail=detail)


def warn(what: str, detail: str, *, fix: str) -> DoctorFinding:
    return DoctorFinding(level=FindingLevel.WARN, what=what, detail=detail, fix=fix)


def fail(what: str, detail: str, *, fix: str | None = None) -> DoctorFinding:
    """Return a failed finding; without ``fix`` the detail says how to fix it."""
    return DoctorFinding(level=FindingLevel.FAIL, what=what, detail=detail, fix=fix)
