"""Deliveries and people as programs get them, over the API and from the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew import wording
from clew.clock import from_millis
from clew.core.channel_events import load_message
from clew.core.delivery import DeliveryState
from clew.core.route import Route
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from clew.core.access import Person
    from clew.core.delivery import Delivery


def describe_change(one: Delivery) -> dict[str, object]:
    """Return a delivery that was changed."""
    return {"id": one.id, "state": one.state.value, "route": one.route}


def describe_delivery(one: Delivery, changed_at: int) -> dict[str, object]:
    """Return a delivery that did not arrive, with the time (ms) of its last change."""
    return {
        **describe_change(one),
        "channel": Route.parse(one.route).channel,
        "conversation": one.conversation_id,
        "kind": one.kind.value,
        "text": wording.word_message(load_message(one.body)).text,
        "attempts": one.attempts,
        "error": wording.describe_note(one.error),
        "created_at": format_timestamp(one.created_at),
        "changed_at": format_timestamp(from_millis(changed_at)),
        "open": one.state is not DeliveryState.FAILED,
    }


def describe_person(person: Person) -> dict[str, object]:
    """Return a person who asked for access, is let in or is shut out."""
    return {
        "channel": person.account.channel,
        "account": person.account.account,
        "user": person.user,
        "name": person.name,
        "standing": person.standing.value,
        "changed_at": format_timestamp(person.changed_at),
        "code_until": format_timestamp(person.code_until),
        "approved_by": person.approved_by,
    }
