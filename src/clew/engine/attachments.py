"""Stored messages with the contents of their attached files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.attachments import collect_attachment_digests, insert_attachment_contents
from clew.store.transactions import attachments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.messages import ModelMessage
    from clew.store.contract import Store


async def load_messages(
    store: Store, stored: Sequence[str], *, pictures: bool
) -> list[ModelMessage]:
    """Return the messages that ``dump`` wrote; without ``pictures`` an image becomes a note."""
    found = [messages.load_message(each) for each in stored]
    if not (digests := collect_attachment_digests(found)):
        return found
    contents = await store.read(attachments.read_contents, digests)
    return [insert_attachment_contents(message, contents, pictures=pictures) for message in found]
