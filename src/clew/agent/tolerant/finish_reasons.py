"""Finish reasons, translated to each format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = ["to_chat_reason", "to_messages_reason", "to_responses_status"]

#: Names that servers use for the finish reasons of the formats.
_STOP_NAMES: Final = (
    *("stop", "end_turn", "end", "eos", "eos_token", "stop_token", "stop_sequence", "ok"),
    *("complete", "completed", "done", "finish", "finished", "success", "normal"),
)
_LENGTH_NAMES: Final = (
    *("length", "max_length", "max_tokens", "max_output_tokens", "token_limit", "model_length"),
    "model_context_window_exceeded",
)
_CALLS_NAMES: Final = (
    *("tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls"),
)
_FILTER_NAMES: Final = (
    *("content_filter", "content_filtered", "safety", "refusal", "blocklist", "spii"),
    *("prohibited_content", "recitation"),
)


def _make_table(stop: str, length: str, calls: str, filtered: str) -> Mapping[str, str]:
    known = (
        (_STOP_NAMES, stop),
        (_LENGTH_NAMES, length),
        (_CALLS_NAMES, calls),
        (_FILTER_NAMES, filtered),
    )
    return {word: reason for words, reason in known for word in words}


_CHAT_REASONS: Final = _make_table("stop", "length", "tool_calls", "content_filter")
_MESSAGES_REASONS: Final = _make_table("end_turn", "max_tokens", "tool_use", "refusal")
_RESPONSES_STATUSES: Final = _make_table("completed", "incomplete", "completed", "incomplete")
#: Reasons that only Anthropic has.
_ANTHROPIC_ONLY: Final = frozenset(
    {"stop_sequence", "pause_turn", "compaction", "model_context_window_exceeded"}
)
_UNFINISHED_STATUSES: Final = frozenset(
    {"in_progress", "queued", "failed", "cancelled", "incomplete"}
)


def to_chat_reason(reason: object, note: UnknownReporter) -> str | None:
    """Return the finish reason of the Chat format; ``None`` if there is none."""
    return _translate_reason(reason, _CHAT_REASONS, note)


def to_messages_reason(reason: object, note: UnknownReporter) -> str | None:
    """Return the stop reason of the Messages format; ``None`` if there is none."""
    if reason in _ANTHROPIC_ONLY:
        return str(reason)
    return _translate_reason(reason, _MESSAGES_REASONS, note)


def to_responses_status(status: object, note: UnknownReporter) -> str:
    """Return the status of a response that has ended."""
    if status in _UNFINISHED_STATUSES:
        return str(status)
    return _translate_reason(status, _RESPONSES_STATUSES, note) or "completed"


def _translate_reason(
    reason: object, table: Mapping[str, str], note: UnknownReporter
) -> str | None:
    if not isinstance(reason, str) or not (word := reason.strip().lower()):
        return None
    if (known := table.get(word)) is None:
        # The reply has ended, and nothing says that it was another ending.
        note("finish_reason", word)
        return table["stop"]
    return known
