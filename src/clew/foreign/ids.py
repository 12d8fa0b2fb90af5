"""Ids of imported records: the same source gives the same ids at each import."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId, EntryId, InboxId, TurnId, new_session_id

if TYPE_CHECKING:
    from clew.core.ids import SessionId

#: The first moment that the form of our ids cannot show any more, in milliseconds.
_END_OF_TIME = 253_402_300_800_000


def clamp_millis(at: int) -> int:
    """Return a time that every part of Clew can show."""
    return min(max(at, 0), _END_OF_TIME - 1)


def make_conversation_id(system: str, origin: str) -> ConversationId:
    """Return the id under which a conversation of another system is stored here."""
    return ConversationId(f"cnv_{_digest(system, origin)[:28]}")


class IdMaker:
    """Maker of the ids within one imported conversation."""

    def __init__(self, system: str, origin: str) -> None:
        self.conversation = make_conversation_id(system, origin)

    def make_session_id(self, number: int, at: int) -> SessionId:
        digest = self._digest("session", str(number))
        return new_session_id(at, lambda _: digest[:6])

    def make_turn_id(self, origin: str, at: int) -> TurnId:
        return TurnId(self._make("trn", origin, at))

    def make_input_id(self, origin: str, at: int) -> InboxId:
        return InboxId(self._make("inb", origin, at))

    def make_entry_id(self, origin: str, at: int) -> EntryId:
        return EntryId(self._make("ent", origin, at))

    def make_id(self, prefix: str, origin: str, at: int) -> str:
        """Return an id of another kind."""
        return self._make(prefix, origin, at)

    def _make(self, prefix: str, origin: str, at: int) -> str:
        return f"{prefix}_{at:012x}{self._digest(prefix, origin)[:16]}"

    def _digest(self, *parts: str) -> str:
        return _digest(self.conversation, *parts)


def _digest(*parts: str) -> str:
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
