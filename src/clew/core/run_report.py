"""Reports of runs that no person began: which of a turn's texts are delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.core.delivery import DeliveryKind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Key of an input's payload; its value may name an answer that is not delivered.
REPORT_KEY: Final = "report"
_QUIET_IF_KEY: Final = "quiet_if"
#: The value for inputs of which nothing is delivered.
_NOTHING: Final = "nothing"


def with_report(payload: Mapping[str, object], *, quiet_if: str | None) -> dict[str, object]:
    """
    Return the payload of an input of which only the answer is delivered.

    Whoever made the input tells of failures; an answer that is exactly ``quiet_if`` is stored
    only.
    """
    return {**payload, REPORT_KEY: {_QUIET_IF_KEY: quiet_if}}


def without_report(payload: Mapping[str, object]) -> dict[str, object]:
    """Return the payload of an input whose route is only asked questions."""
    return {**payload, REPORT_KEY: _NOTHING}


def is_delivered(
    payload: Mapping[str, Any], *, kind: DeliveryKind, text: str, failed: bool
) -> bool:
    """Return whether a text of the turn is delivered where this input of it came from."""
    report = payload.get(REPORT_KEY)
    if report is None:
        return True
    if report == _NOTHING or failed or kind is not DeliveryKind.ANSWER:
        return False
    quiet_if: str | None = report.get(_QUIET_IF_KEY)
    return quiet_if is None or text.strip() != quiet_if.strip()
