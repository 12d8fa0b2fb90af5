"""
Id types and their generation.

Every id except a session's starts with its own prefix (``cnv_``, ``trn_`` …), so that a
route's NAME is never mistaken for one. Ids sort by creation time.
"""

from __future__ import annotations

import os
import random
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NewType, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

ConversationId = NewType("ConversationId", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
EntryId = NewType("EntryId", str)
InboxId = NewType("InboxId", str)
DeliveryId = NewType("DeliveryId", str)
ApprovalId = NewType("ApprovalId", str)
GrantId = NewType("GrantId", str)
ClientId = NewType("ClientId", str)
OwnerId = NewType("OwnerId", str)

PREFIXES = ("cnv", "trn", "ent", "inb", "dlv", "apr", "grt", "cli", "own", "op", "use", "att")

_SESSION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")
_PREFIXED = re.compile(rf"(?:{'|'.join(PREFIXES)})_")


# Ids are unique, not secret: a system call for each would cost more than the insert.
_RANDOM = random.Random()
if hasattr(os, "register_at_fork"):
    # Otherwise a forked child would repeat its parent's numbers.
    os.register_at_fork(after_in_child=_RANDOM.seed)


def random_hex(size: int) -> str:
    """Return ``size`` random bytes as hex digits; unique, but predictable from other ids."""
    return f"{_RANDOM.getrandbits(8 * size):0{2 * size}x}"


class SessionIdFactory(Protocol):
    """Callable that proposes a session id for a time; called again if the id is taken."""

    def __call__(self, millis: int, /) -> SessionId: ...


def new_session_id(millis: int, token: Callable[[int], str] = random_hex) -> SessionId:
    """Return ``YYYYMMDD_HHMMSS_xxxxxx`` in UTC, with six random hex digits."""
    moment = datetime.fromtimestamp(millis // 1000, UTC)
    return SessionId(f"{moment:%Y%m%d_%H%M%S}_{token(3)}")


def make_entry_id(inbox_id: InboxId) -> EntryId:
    """Return the id of the entry that an input becomes."""
    return EntryId(f"ent_{inbox_id.removeprefix('inb_')}")


def looks_like_id(name: str) -> bool:
    """Return whether a name has the form of an id of any kind."""
    return bool(_SESSION.fullmatch(name) or _PREFIXED.match(name))


class IdGenerator:
    """Id generator of one process; tests replace the clock and the random part."""

    def __init__(
        self,
        millis: Callable[[], int],
        token: Callable[[int], str] = random_hex,
    ) -> None:
        self._millis = millis
        self._token = token

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}_{self._millis():012x}{self._token(8)}"

    def new_conversation_id(self) -> ConversationId:
        return ConversationId(self._new_id("cnv"))

    def new_turn_id(self) -> TurnId:
        return TurnId(self._new_id("trn"))

    def new_entry_id(self) -> EntryId:
        return EntryId(self._new_id("ent"))

    def new_inbox_id(self) -> InboxId:
        return InboxId(self._new_id("inb"))

    def new_delivery_id(self) -> DeliveryId:
        return DeliveryId(self._new_id("dlv"))

    def new_approval_id(self) -> ApprovalId:
        return ApprovalId(self._new_id("apr"))

    def new_client_id(self) -> ClientId:
        return ClientId(self._new_id("cli"))

    def new_owner_id(self) -> OwnerId:
        return OwnerId(self._new_id("own"))

    def new_operation_id(self) -> str:
        """Return an id for one rotation, branch, import or claim, which makes it idempotent."""
        return self._new_id("op")

    def new_usage_id(self) -> str:
        return self._new_id("use")

    def new_attachment_id(self) -> str:
        return self._new_id("att")
