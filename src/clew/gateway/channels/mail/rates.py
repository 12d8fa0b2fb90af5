"""Rate of mails: the last brake of a loop that no header betrays; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds in which mails are counted.
_WINDOW: Final = 3600


class RecentMails(Record, kw_only=False):
    """The mails of the last hour, of a thread or a person: when the server received each."""

    events: Mapping[str, float]

    @classmethod
    def from_json(cls, text: str | None) -> RecentMails:
        return cls({} if text is None else json.loads(text))

    def to_json(self) -> str:
        return json.dumps(dict(self.events))

    def add(self, event: str, at: float) -> RecentMails:
        """Return them with one more, once per event."""
        kept = {one: then for one, then in self.events.items() if at - _WINDOW < then}
        return RecentMails({**kept, event: at})

    def is_over(self, limit: int) -> bool:
        return len(self.events) > limit
