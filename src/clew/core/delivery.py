"""Deliveries: outbound messages on their way to a platform."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, DeliveryId, TurnId
    from clew.core.route import RouteKey
    from clew.core.sent_files import SentFile


class DeliveryState(enum.Enum):
    PENDING = "pending"  #: to be sent, not before ``due_at``
    SENDING = "sending"  #: an owner is sending it, or died while sending
    DELIVERED = "delivered"  #: the platform has it
    UNKNOWN = "unknown"  #: possibly sent: to be reconciled, or sent again and marked
    FAILED = "failed"  #: abandoned, dropped, or refused by the platform


TRANSITIONS = {
    DeliveryState.PENDING: frozenset({DeliveryState.SENDING, DeliveryState.FAILED}),
    DeliveryState.SENDING: frozenset(
        {
            DeliveryState.PENDING,  # the platform asked to retry later
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


class OutboundText(Record):
    """Text to every channel route whose input the turn answers."""

    #: Id of the first route's delivery; the ids for other routes derive from it.
    id: DeliveryId
    kind: DeliveryKind = DeliveryKind.ANSWER
    text: str
    #: True if the text is Markdown.
    markup: bool = True
    #: Delivered after the text, one part each.
    files: tuple[SentFile, ...] = ()


class NewDelivery(Record):
    """Delivery before it is stored."""

    id: DeliveryId
    route: RouteKey
    kind: DeliveryKind
    #: An ``OutboundMessage`` as written by ``clew.core.channel_events.dump_message``.
    body: str


class Delivery(Record):
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


class Chunk(Record):
    """Part of a delivery that is one message on the platform."""

    position: int
    body: str
    state: DeliveryState
    platform_id: str | None
    #: Number of repetitions after an unknown outcome.
    repeated: int
