"""Deliveries: outbound messages on their way to a platform."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, DeliveryId, TurnId
    from clew.core.route import RouteKey


class DeliveryState(enum.Enum):
    PENDING = "pending"  #: to be sent, not before ``due_at``
    SENDING = "sending"  #: an owner is at it, or died at it
    DELIVERED = "delivered"  #: the platform has it
    UNKNOWN = "unknown"  #: sent perhaps: to be reconciled, or sent once more and marked
    FAILED = "failed"  #: given up, dropped, or refused by the platform


MOVES = {
    DeliveryState.PENDING: frozenset({DeliveryState.SENDING, DeliveryState.FAILED}),
    DeliveryState.SENDING: frozenset(
        {
            DeliveryState.PENDING,  # the platform said: later
            DeliveryState.DELIVERED,
            DeliveryState.UNKNOWN,
            DeliveryState.FAILED,
        }
    ),
    DeliveryState.UNKNOWN: frozenset(
        {DeliveryState.SENDING, DeliveryState.DELIVERED, DeliveryState.FAILED}
    ),
    DeliveryState.DELIVERED: frozenset[DeliveryState](),
    DeliveryState.FAILED: frozenset({DeliveryState.PENDING}),  # the operator retries
}


class DeliveryKind(enum.Enum):
    ANSWER = "answer"
    TEXT = "text"
    NOTICE = "notice"
    APPROVAL = "approval"


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What is told to everyone on a channel whose input a turn answers."""

    #: Of the first route's delivery; those of others are made from it.
    id: DeliveryId
    kind: DeliveryKind = DeliveryKind.ANSWER
    text: str
    #: Whether the text is Markdown.
    markup: bool = True


#: Takes the place of a beginning that no answer follows.
UNFINISHED = "(This answer was not finished.)"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewDelivery:
    """A delivery before it is stored."""

    id: DeliveryId
    route: RouteKey
    kind: DeliveryKind
    #: An ``Outgoing``, as ``clew.core.chat.dump`` writes it.
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    id: DeliveryId
    conversation_id: ConversationId
    turn_id: TurnId | None
    route: RouteKey
    seq: int | None
    kind: DeliveryKind
    body: str
    state: DeliveryState
    attempts: int
    due_at: datetime
    error: str | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """One part of a delivery, as one message of the platform."""

    position: int
    body: str
    state: DeliveryState
    platform_id: str | None
    #: How often it was sent once more after an unknown outcome.
    repeated: int
