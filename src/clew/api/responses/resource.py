"""A response in OpenAI's format, as a pure function of what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api import outcome_mapping
from clew.api.problems import Problem
from clew.api.responses.ids import input_id, output_id, response_id
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.inbox import InboxItem
    from clew.engine.request_service import TokenUsage
    from clew.engine.response_service import ResponseRecord

#: Failures with a code of their own in OpenAI's list.
_ERROR_CODES = {"rate_limit": "rate_limit_exceeded"}
#: Fields whose values are those of the agent: a request cannot change them.
_FIXED: dict[str, Any] = {
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "truncation": "auto",
    "text": {"format": {"type": "text"}},
    "reasoning": {"effort": None, "summary": None},
    "temperature": 1.0,
    "top_p": 1.0,
    "top_logprobs": 0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "service_tier": "default",
    "safety_identifier": None,
    "prompt_cache_key": None,
}


def build_response(record: ResponseRecord, *, models: tuple[str, ...]) -> dict[str, Any]:
    """Return a response with all that is known of it."""
    problem = find_problem(record)
    options: dict[str, Any] = {
        "model": models[0],
        "instructions": None,
        "previous_response_id": None,
        "background": False,
        "store": True,
        "metadata": {},
        **{name: value for name, value in record.options.items() if name != "deleted"},
    }
    status = find_status(record, problem)
    finished = None if record.turn is None else record.turn.finished_at
    return {
        "id": response_id(record.item.id),
        "object": "response",
        "created_at": unix_seconds(record.item.received_at),
        "completed_at": unix_seconds(finished) if finished and status == "completed" else None,
        "status": status,
        "error": _build_error(problem) if status == "failed" and problem else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "conversation": {"id": record.item.conversation_id},
        "output": build_output(record),
        "usage": None if record.end is None else usage_json(record.usage),
        **_FIXED,
        **options,
    }


def find_problem(record: ResponseRecord) -> Problem | None:
    """Return why a response that has ended has no answer."""
    if record.end is None:
        return None
    told = outcome_mapping.text_or_problem(record.end)
    return told if isinstance(told, Problem) else None


def find_status(record: ResponseRecord, problem: Problem | None) -> str:
    """Return the status of a response."""
    if record.end is None:
        return "queued" if record.turn is None else "in_progress"
    if problem is None:
        return "incomplete" if record.end.cut else "completed"
    turn = record.end.turn
    was_stopped = turn is not None and turn.outcome is TurnOutcome.CANCELLED
    return "cancelled" if was_stopped or record.end.outcome is InboxOutcome.CANCELLED else "failed"


def list_texts(record: ResponseRecord) -> list[str]:
    """Return the texts of the output in order, including what was told instead of an answer."""
    texts = [text for _, text in record.texts]
    told = None if record.end is None else outcome_mapping.text_or_problem(record.end)
    if isinstance(told, str) and told.strip() and (not texts or texts[-1] != told):
        texts.append(told)
    return texts


def build_output(record: ResponseRecord) -> list[dict[str, Any]]:
    return [
        message_item(item_id(record, position), text)
        for position, text in enumerate(list_texts(record))
    ]


def item_id(record: ResponseRecord, position: int) -> str:
    """Return the id of an output item."""
    if record.turn is None:
        return f"{input_id(record.item.id)}_{position}"
    return output_id(record.turn.id, position)


def message_item(id: str, text: str | None, *, status: str = "completed") -> dict[str, Any]:
    """Return a message of the assistant; without a text it has no content yet."""
    content = [] if text is None else [text_part(text)]
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def input_item(item: InboxItem) -> dict[str, Any]:
    """Return the message that began a response."""
    return user_item(input_id(item.id), item.text)


def user_item(id: str, text: str) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "role": "user",
        "status": "completed",
        "content": [{"type": "input_text", "text": text}],
    }


def usage_json(used: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def unix_seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _build_error(problem: Problem) -> dict[str, str]:
    return {"code": _ERROR_CODES.get(problem.code, "server_error"), "message": problem.message}
