"""Events as JSON, the same for HTTP and JSON-RPC: a type and its data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.events import (
    ConversationStateChanged,
    Delta,
    EntryAppended,
    Retracted,
    Snapshot,
    ToolCalled,
    TurnFinished,
    TurnStarted,
)
from clew.wire import serializers

if TYPE_CHECKING:
    from clew.core.events import ConversationEvent


def serialize_event(value: ConversationEvent) -> tuple[str, dict[str, object]]:
    """
    Return the type of an event and its data.

    Only ``entry`` has a ``seq`` after which a client can resume. ``snapshot`` and ``delta``
    are provisional text of the current response: any later ``entry`` or ``turn_closed``
    replaces it, ``retracted`` invalidates it.
    """
    match value:
        case EntryAppended(entry=entry):
            return "entry", serializers.serialize_entry(entry)
        case Delta():
            return "delta", {"turn": value.turn, "kind": value.kind.value, "text": value.text}
        case Snapshot():
            return "snapshot", {"turn": value.turn, "text": value.text}
        case Retracted():
            return "retracted", {"turn": value.turn, "reason": value.reason}
        case ToolCalled():
            return "tool", {
                "turn": value.turn,
                "call": value.call_id,
                "tool": value.tool,
                "args": value.args,
                "status": value.status,
            }
        case TurnStarted():
            return "turn_begun", {"turn": value.turn.id, "session": value.session}
        case TurnFinished():
            return "turn_closed", _turn_closed_json(value)
        case ConversationStateChanged(standing=standing):
            return "state", {"state": serializers.serialize_state(standing)}


def _turn_closed_json(value: TurnFinished) -> dict[str, object]:
    turn = value.turn
    traced = {} if turn.trace_id is None else {"trace": turn.trace_id}
    return {
        "turn": turn.id,
        "outcome": None if turn.outcome is None else turn.outcome.value,
        "error": turn.error,
        "code": turn.error_code,
        **traced,
    }
