"""Threads: the mails that belong together, and what an answer to one has to name; pure."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Final

from clew.gateway.channels.mail.automatic import OWN_ID
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from email.message import EmailMessage

_ID: Final = re.compile(r"<[^<>\s]{1,900}>")
#: The most ids of a thread that an answer names: the first, and the last ones.
_MAX_REFERENCES: Final = 20
_MAX_SUBJECT: Final = 500
_REPLY_PREFIX: Final = re.compile(r"^\s*(?:(?:re|aw|sv|antw|odp|vs|r)\s*:\s*)+", re.IGNORECASE)


class MailThread(Record):
    """State of a thread: what an answer to it needs."""

    #: The address of the person: nobody else continues the thread.
    chat: str
    subject: str
    #: The message ID of the newest mail, and those before it.
    last: str
    references: Sequence[str] = ()
    #: The event of the mail that begins it here.
    begun_by: str = ""

    @classmethod
    def from_json(cls, text: str) -> MailThread:
        return cls(**json.loads(text))

    def to_json(self) -> str:
        told = {"chat": self.chat, "subject": self.subject, "last": self.last}
        told["begun_by"] = self.begun_by
        return json.dumps({**told, "references": list(self.references)}, ensure_ascii=False)


def read_ids(mail: EmailMessage) -> list[str]:
    """Return the message IDs that a mail refers to, the oldest first."""
    told = [str(mail.get(name) or "") for name in ("references", "in-reply-to")]
    return list(dict.fromkeys(_ID.findall(" ".join(told))))


def list_candidates(chat: str, ids: Sequence[str]) -> list[str]:
    """Return the names of the threads that a mail may continue, the likeliest first."""
    # Ours say it by themselves, even where a client names no other.
    ours = [found[1] for one in reversed(ids) if (found := OWN_ID.fullmatch(one.lower()))]
    return list(dict.fromkeys([*ours, *(name_thread(chat, one) for one in ids)]))


def name_thread(chat: str, root: str) -> str:
    """Return the name of the thread that begins with a mail, as routes have it."""
    return hashlib.sha256(f"{chat}\n{root}".encode()).hexdigest()[:24]


def continue_thread(
    *, chat: str, subject: str, message: str, ids: Sequence[str], begun_by: str
) -> MailThread:
    """Return the thread as it is after a mail of the person."""
    kept = [one for one in ids if one != message]
    return MailThread(
        chat=chat,
        subject=" ".join(subject.split())[:_MAX_SUBJECT],
        last=message,
        references=[*kept[:1], *kept[1:][-_MAX_REFERENCES:]],
        begun_by=begun_by,
    )


def strip_reply_prefix(subject: str) -> str:
    """Return a subject without ``Re:`` and its likes."""
    return _REPLY_PREFIX.sub("", " ".join(subject.split()))
