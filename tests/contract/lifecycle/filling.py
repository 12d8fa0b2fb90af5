"""Long sessions, made without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from clew.agent import messages
from clew.core.ids import EntryId, OwnerId
from clew.store.transactions import entries, leases, sessions

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

#: An owner that has ended.
EARLIER = OwnerId("own_earlier")
#: 120,000 tokens in twenty messages, at three bytes each.
BYTES_OF_A_LONG_ONE = 18_000


def message(number: int, size: int) -> ModelMessage:
    """The ``number``-th of a talk: a person and the assistant take turns."""
    text = f"{number}: ".ljust(size, "x")
    if number % 2:
        return ModelRequest(parts=[UserPromptPart(text)])
    return ModelResponse(parts=[TextPart(text)])


def fill(
    t: Tx,
    conversation: ConversationId,
    count: int,
    *,
    size: int = BYTES_OF_A_LONG_ONE,
    first: int = 1,
) -> list[ModelMessage]:
    """Append so many messages to the head, numbered from ``first``; returns them."""
    lease = leases.acquire_lease(t, conversation, owner=EARLIER).lease
    head = sessions.get_head(t, conversation)
    talk = [message(number, size) for number in range(first, first + count)]
    drafts = [
        messages.message_to_draft(EntryId(f"ent_{head.id}_{number}"), one)
        for number, one in enumerate(talk, 1)
    ]
    entries.append_entries(t, lease, head.id, drafts)
    leases.release_lease(t, lease)
    return talk
