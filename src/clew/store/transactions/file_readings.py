"""Texts of files: stored with the message that waits for them, in one commit with its release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.file_reading import FileReading, add_readings, list_waiting
from clew.core.ids import DeliveryId
from clew.store.transactions import inbox
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.settings import get_setting, put_setting, take_setting
from clew.store.transactions.usage import record_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.ids import InboxId
    from clew.core.inbox import InboxItem
    from clew.store.contract import Tx

#: Name of the setting of a conversation that people were told of files without a text.
_TOLD_SETTING = "files.unread_told"


def store_readings(
    t: Tx, inbox_id: InboxId, readings: Mapping[str, FileReading], *, notice: str | None
) -> bool:
    """
    Add the texts of a message's files, and release it; ``False`` if it went on without them.

    ``notice`` is told to the chat if a file has no text, unless it was told since the last one
    that had. Repeating it changes nothing.
    """
    item = inbox.find_item(t, inbox_id)
    if item is None or item.outcome is not None:
        return False
    waiting = list_waiting(item.payload)
    if not inbox.release_held_item(t, inbox_id, add_readings(item.payload, readings)):
        return False
    for attachment, file in waiting.items():
        if (reading := readings.get(attachment)) is not None and reading.usage is not None:
            record_answer(
                t,
                item.conversation_id,
                reading.usage,
                id=f"use_{attachment.removeprefix('att_')}_{inbox_id.removeprefix('inb_')}",
                purpose=file["read_as"],
            )
    _tell_once(t, item, notice)
    return True


def _tell_once(t: Tx, item: InboxItem, notice: str | None) -> None:
    """Tell people that a file could not be read, once per outage."""
    conversation = item.conversation_id
    if notice is None:
        take_setting(t, conversation, _TOLD_SETTING)
    elif get_setting(t, conversation, _TOLD_SETTING) is None:
        put_setting(t, conversation, _TOLD_SETTING, "true")
        deliver_to_chat(
            t,
            conversation,
            item.route,
            OutboundMessage(text=notice, markup=False),
            id=DeliveryId(f"dlv_unread_{item.id}"),
            kind=DeliveryKind.NOTICE,
        )
