"""The context of a conversation, prepared for people to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages as codec
from clew.agent.compactor import estimate_size, extract_summary, format_tool_calls
from clew.core.context_view import SUMMARY, ContextMessageView, ContextView
from clew.store.transactions import context, sessions

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.session_base import Base
    from clew.store.contract import Store, Tx
    from clew.store.transactions.context import Context, ContextMessage


async def inspect_context(store: Store, conversation: ConversationId) -> ContextView:
    """
    Return the context that the model receives before the next message.

    :raises NotFound: if there is no such conversation
    """
    found, base = await store.read(_read_context, conversation)
    return ContextView(
        conversation=conversation,
        session=found.session,
        base=base,
        lines=tuple(build_message_view(message) for message in found.messages),
    )


def _read_context(t: Tx, conversation: ConversationId) -> tuple[Context, Base]:
    found = context.read_head_context(t, conversation)
    return found, sessions.get_base(t, found.session.id)


def build_message_view(stored: ContextMessage) -> ContextMessageView:
    """Return one stored message as people read it."""
    message = codec.load_message(stored.message)
    summary = extract_summary(message)
    return ContextMessageView(
        seq=stored.seq,
        role=codec.get_role(message).value if summary is None else SUMMARY,
        text=codec.extract_text(message) if summary is None else summary,
        calls=format_tool_calls(message),
        tokens=estimate_size(message).tokens,
        message=stored.message,
    )
