"""
Ids: distinct types, and where new ones come from.

Every id but a session's begins with a prefix of its own (``cnv_``, ``trn_`` …), so that a route's
NAME can never be taken for one. Ids sort by the time they were made.
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
ClientId = NewType("ClientId", str)
OwnerId = NewType("OwnerId", str)

PREFIXES = ("cnv", "trn", "ent", "inb", "dlv", "apr", "cli", "own", "op", "use", "att")

_SESSION = re.compile(r"\d{8}_\d{6}_[0-9a-f]{6}")
_PREFIXED = re.compile(rf"(?:{'|'.join(PREFIXES)})_")


# Ids are unique, not secret: asking the kernel for each costs more than storing what it names.
_RANDOM = random.Random()
if hasattr(os, "register_at_fork"):
    # A forked child would go on with its parent's numbers.
    os.register_at_fork(after_in_child=_RANDOM.seed)


def token_hex(size: int) -> str:
    """``size`` random bytes as hex digits; unique, but to be guessed by who knows the others."""
    return f"{_RANDOM.getrandbits(8 * size):0{2 * size}x}"


class SessionIds(Protocol):
    """Proposes a session id for a moment; asked again where the proposal is taken."""

    def __call__(self, millis: int, /) -> SessionId: ...


def session_id(millis: int, token: Callable[[int], str] = token_hex) -> SessionId:
    """``YYYYMMDD_HHMMSS_xxxxxx`` in UTC, with six random hex digits."""
    moment = datetime.fromtimestamp(millis // 1000, UTC)
    return SessionId(f"{moment:%Y%m%d_%H%M%S}_{token(3)}")


def looks_like_id(name: str) -> bool:
    """Whether a name has the form of an id, of any kind."""
    return bool(_SESSION.fullmatch(name) or _PREFIXED.match(name))


class Ids:
    """Makes ids for one process; the clock and the random part can be replaced in tests."""

    def __init__(
        self,
        millis: Callable[[], int],
        token: Callable[[int], str] = token_hex,
    ) -> None:
        self._millis = millis
        self._token = token

    def _new(self, prefix: str) -> str:
        return f"{prefix}_{self._millis():012x}{self._token(8)}"

    def conversation(self) -> ConversationId:
        return ConversationId(self._new("cnv"))

    def turn(self) -> TurnId:
        return TurnId(self._new("trn"))

    def entry(self) -> EntryId:
        return EntryId(self._new("ent"))

    def inbox(self) -> InboxId:
        return InboxId(self._new("inb"))

    def delivery(self) -> DeliveryId:
        return DeliveryId(self._new("dlv"))

    def approval(self) -> ApprovalId:
        return ApprovalId(self._new("apr"))

    def client(self) -> ClientId:
        return ClientId(self._new("cli"))

    def owner(self) -> OwnerId:
        return OwnerId(self._new("own"))

    def operation(self) -> str:
        """For one rotation, branch, import or claim: repeating it with this id repeats nothing."""
        return self._new("op")

    def usage(self) -> str:
        return self._new("use")

    def attachment(self) -> str:
        return self._new("att")
