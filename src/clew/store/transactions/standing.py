"""Where a conversation stands, in one moment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.standing import ActiveTurn, ConversationState
from clew.core.taken_back import find_rewound_spans
from clew.store.transactions import (
    approvals,
    conversations,
    inbox,
    rewinds,
    sessions,
    settings,
    stops,
)
from clew.store.transactions.settings import MODEL, MODEL_BEFORE

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx


def standing(t: Tx, conversation: ConversationId) -> ConversationState:
    """:raises NotFound: if there is no such conversation"""
    found = conversations.get_conversation(t, conversation)
    model = settings.get_setting(t, conversation, MODEL)
    return ConversationState(
        conversation=conversation,
        title=found.title,
        head=found.head,
        closed=not sessions.get_head(t, conversation).is_open,
        model=None if model is None else json.loads(model),
        turn=_unfinished(t, conversation),
        queue=tuple(inbox.line(t, conversation)),
        approvals=tuple(approvals.open_approvals(t, conversation)),
        taken_back=find_rewound_spans(rewinds.rewinds_of(t, conversation)),
    )


def _unfinished(t: Tx, conversation: ConversationId) -> ActiveTurn | None:
    turn = stops.unfinished_turn(t, conversation)
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
    A person chose a model in place of another; those who follow the conversation are told.

    The model learns of it with the next message, if something was said before.
    """
    settings.put_setting(t, conversation, MODEL, json.dumps(name))
    if settings.get_setting(t, conversation, MODEL_BEFORE) is None:
        settings.put_setting(t, conversation, MODEL_BEFORE, json.dumps(before))
    t.wake(conversation)
