"""Order of a person's message and of what was shown in its chat."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime


class WrittenMessage(Record):
    """A message of a person, as far as its place among the agent's messages needs it."""

    #: The platform's id.
    id: str
    #: By the platform's clock; some tell whole seconds.
    sent_at: datetime
    #: The platform's ids of messages are numbers that grow.
    has_ordered_ids: bool = False

    def follows(self, id_: str | None, shown_at: datetime) -> bool:
        """Return whether it was written after a message of the agent was shown."""
        if self.has_ordered_ids and id_ is not None:
            own, other = _parse_number(self.id), _parse_number(id_)
            if own is not None and other is not None:
                return own > other
        if self.sent_at.microsecond == 0:
            return self.sent_at >= shown_at.replace(microsecond=0)
        return self.sent_at > shown_at


def _parse_number(id_: str) -> Decimal | None:
    try:
        number = Decimal(id_)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
