"""Mails that are never answered: of robots, lists, and the agent itself; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from email.message import EmailMessage

#: The message IDs of every Clew, so that two never answer each other.
OWN_ID: Final = re.compile(r"<clew\.([0-9a-f]{24})\.[0-9a-f]{32}@[^<>\s]+>")
_ROBOTS: Final = re.compile(
    r"(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply|.*-(?:bounces|request|owner)|bounces?)"
    r"(?:[+=].*)?"
)
_PRECEDENCES: Final = frozenset({"bulk", "list", "junk", "auto_reply", "auto-reply"})
#: Headers that only mails of lists and of robots have.
_HEADERS: Final = (
    "list-id",
    "list-post",
    "list-unsubscribe",
    "x-auto-response-suppress",
    "x-autoreply",
    "x-autorespond",
    "x-loop",
    "feedback-id",
)


def find_reason_not_to_answer(mail: EmailMessage, *, sender: str, own: str) -> str | None:
    """Return why a mail is never answered, the same for all of its kind; else ``None``."""
    if sender == own:
        return "a mail of the agent"
    if OWN_ID.fullmatch(_read(mail, "message-id")):
        return "a mail of another agent"
    if _ROBOTS.fullmatch(sender.rpartition("@")[0]):
        return "a mail of a robot: its address"
    if _read(mail, "auto-submitted").partition(";")[0].strip() not in ("", "no"):
        return "a mail of a robot: auto-submitted"
    if _read(mail, "precedence") in _PRECEDENCES:
        return "a mail of a list: precedence"
    if "return-path" in mail and _read(mail, "return-path") in ("", "<>"):
        return "a mail of a robot: no return path"
    if mail.get_content_type() in ("multipart/report", "message/disposition-notification"):
        return "a report"
    named = next((name for name in _HEADERS if _is_set(mail, name)), None)
    return None if named is None else f"a mail of a list or robot: {named}"


def _is_set(mail: EmailMessage, name: str) -> bool:
    return _read(mail, name) not in ("", "none")


def _read(mail: EmailMessage, name: str) -> str:
    return str(mail.get(name) or "").strip().lower()
