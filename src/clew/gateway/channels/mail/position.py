"""Read position in the folder of a mailbox; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.gateway.channels.mail.codec import StoredMail

#: Maximum events that are remembered, for a folder that counts anew.
_MAX_RECENT: Final = 200


class MailPosition(Record):
    """The last mail that is stored."""

    #: The folder's number; after a change of it, UIDs mean other mails.
    uid_validity: int
    uid: int
    #: Seconds since 1970 at which the server received the newest stored mail.
    newest: float
    #: The folder's number when the agent came, and the seconds since 1970 then.
    begun: tuple[int, float]
    #: The last events.
    recent: Sequence[str] = ()

    @classmethod
    def from_json(cls, text: str) -> MailPosition:
        told: dict[str, Any] = json.loads(text)
        told["begun"] = tuple(told["begun"])
        return cls(**told)

    def to_json(self) -> str:
        told = {"uid_validity": self.uid_validity, "uid": self.uid, "newest": self.newest}
        return json.dumps({**told, "begun": list(self.begun), "recent": list(self.recent)})

    def has_stored(self, mail: StoredMail, event: str) -> bool:
        """Return whether a mail is stored, or came before the agent."""
        validity, at = self.begun
        is_older = mail.uid_validity != validity and mail.received_at.timestamp() < at
        return is_older or event in self.recent

    def advance(self, mails: Sequence[StoredMail], events: Sequence[str]) -> MailPosition:
        """Return the position after these mails were stored, with these events."""
        times = [mail.received_at.timestamp() for mail in mails]
        return replace(
            self,
            uid_validity=mails[-1].uid_validity,
            uid=mails[-1].uid,
            newest=max(self.newest, *times),
            recent=[*self.recent, *events][-_MAX_RECENT:],
        )
