"""Conversation state, read in one transaction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.conversation_state import ActiveTurn, ConversationState
from clew.core.rewound import find_rewound_spans
from clew.store.transactions import (
    approvals,
    conversations,
    inbox,
    rewinds,
    sessions,
    settings,
    turn_queries,
)
from clew.store.transactions.settings import MODEL_SETTING, PREVIOUS_MODEL_SETTING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx


def get_conversation_state(t: Tx, conversation: ConversationId) -> ConversationState:
    """
    Return the state of a conversation.

    :raises NotFound: if there is no such conversation
    """
    found = conversations.get_conversation(t, conversation)
    model = settings.get_setting(t, conversation, MODEL_SETTING)
    return ConversationState(
        conversation=conversation,
        title=found.title,
        head=found.head,
        closed=not sessions.get_head(t, conversation).is_open,
        model=None if model is None else json.loads(model),
        turn=_active_turn(t, conversation),
        queue=tuple(
            item for item in inbox.list_open_items(t, conversation) if not item.is_internal
        ),
        approvals=tuple(approvals.list_open_approvals(t, conversation)),
        taken_back=find_rewound_spans(rewinds.list_rewinds(t, conversation)),
    )


def _active_turn(t: Tx, conversation: ConversationId) -> ActiveTurn | None:
    turn = turn_queries.find_unfinished_turn(t, conversation)
    if turn is None:
        return None
    return ActiveTurn(
        id=turn.id,
        state=turn.state,
        stopping=turn.stop is not None,
        started_at=turn.started_at,
    )


def choose_model(t: Tx, conversation: ConversationId, name: str, *, before: str) -> None:
    """
    Store the model chosen for a conversation, and wake its followers.

    The new model is informed with the next message, unless nothing was answered before.
    """
    settings.put_setting(t, conversation, MODEL_SETTING, json.dumps(name))
    if settings.get_setting(t, conversation, PREVIOUS_MODEL_SETTING) is None:
        settings.put_setting(t, conversation, PREVIOUS_MODEL_SETTING, json.dumps(before))
    t.notify(conversation)
