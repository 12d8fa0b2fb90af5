"""Why a reply ended, in the words of each format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.agent.tolerant.notes import Note

__all__ = ["chat_reason", "messages_reason", "responses_status"]

#: What servers call the ends that the formats have names for.
_STOP: Final = (
    *("stop", "end_turn", "end", "eos", "eos_token", "stop_token", "stop_sequence", "ok"),
    *("complete", "completed", "done", "finish", "finished", "success", "normal"),
)
_LENGTH: Final = (
    *("length", "max_length", "max_tokens", "max_output_tokens", "token_limit", "model_length"),
    "model_context_window_exceeded",
)
_CALLS: Final = (
    *("tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls"),
)
_FILTER: Final = (
    *("content_filter", "content_filtered", "safety", "refusal", "blocklist", "spii"),
    *("prohibited_content", "recitation"),
)


def _table(stop: str, length: str, calls: str, filtered: str) -> Mapping[str, str]:
    known = ((_STOP, stop), (_LENGTH, length), (_CALLS, calls), (_FILTER, filtered))
    return {word: reason for words, reason in known for word in words}


_CHAT: Final = _table("stop", "length", "tool_calls", "content_filter")
_MESSAGES: Final = _table("end_turn", "max_tokens", "tool_use", "refusal")
_STATUS: Final = _table("completed", "incomplete", "completed", "incomplete")
#: Reasons of Anthropic's that are nobody else's.
_OWN: Final = frozenset(
    {"stop_sequence", "pause_turn", "compaction", "model_context_window_exceeded"}
)
_NOT_DONE: Final = frozenset({"in_progress", "queued", "failed", "cancelled", "incomplete"})


def chat_reason(reason: object, note: Note) -> str | None:
    """Return the finish reason of the Chat format; ``None`` where there is none."""
    return _reason(reason, _CHAT, note)


def messages_reason(reason: object, note: Note) -> str | None:
    """Return the stop reason of the Messages format; ``None`` where there is none."""
    if reason in _OWN:
        return str(reason)
    return _reason(reason, _MESSAGES, note)


def responses_status(status: object, note: Note) -> str:
    """Return the status of a response that has ended."""
    if status in _NOT_DONE:
        return str(status)
    return _reason(status, _STATUS, note) or "completed"


def _reason(reason: object, table: Mapping[str, str], note: Note) -> str | None:
    if not isinstance(reason, str) or not (word := reason.strip().lower()):
        return None
    if (known := table.get(word)) is None:
        # It says that the reply has ended, and nothing that would make it another ending.
        note("finish_reason", word)
        return table["stop"]
    return known
