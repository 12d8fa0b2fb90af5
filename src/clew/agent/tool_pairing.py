"""
Pairing of tool calls with results: each call has one result, right after it.

Stored contexts are paired already. Imported or damaged ones may not be, and providers would
refuse them with every later request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from pydantic_ai.messages import BaseToolReturnPart, ModelRequest, ModelResponse

from clew.agent.messages import extract_answered_ids, extract_call_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic_ai.messages import ModelMessage, ModelRequestPart

log = structlog.get_logger(__name__)


def pair_calls_with_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """
    Return the messages with results right after their calls, without results of no call.

    A call without a result gets none: the library tells the model that it was interrupted.
    """
    if all(
        _is_exchange_paired(response, requests) for response, requests in _iter_exchanges(messages)
    ):
        return list(messages)
    mended: list[ModelMessage] = []
    for response, requests in _iter_exchanges(messages):
        if response is not None:
            mended.append(response)
        mended += _repair_requests(() if response is None else extract_call_ids(response), requests)
    return mended


def _iter_exchanges(
    messages: Sequence[ModelMessage],
) -> Iterator[tuple[ModelResponse | None, list[ModelRequest]]]:
    """Yield each response with the requests up to the next; ``None`` for those before any."""
    response: ModelResponse | None = None
    requests: list[ModelRequest] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            yield response, requests
            response, requests = message, []
        else:
            requests.append(message)
    yield response, requests


def _is_exchange_paired(response: ModelResponse | None, requests: Sequence[ModelRequest]) -> bool:
    calls = () if response is None else extract_call_ids(response)
    if any(extract_answered_ids(request) for request in requests[1:]):
        return False
    if not requests:
        return True
    answered = extract_answered_ids(requests[0])
    leading = [isinstance(part, BaseToolReturnPart) for part in requests[0].parts[: len(answered)]]
    return sorted(answered) == sorted(calls) and all(leading)


def _repair_requests(
    calls: Sequence[str], requests: Iterable[ModelRequest]
) -> Iterator[ModelRequest]:
    results: dict[str, ModelRequestPart] = {}
    others: list[ModelRequest] = []
    strays: list[str] = []
    for request in requests:
        kept = [part for part in request.parts if not isinstance(part, BaseToolReturnPart)]
        for part in request.parts:
            if not isinstance(part, BaseToolReturnPart):
                continue
            if part.tool_call_id in calls and part.tool_call_id not in results:
                results[part.tool_call_id] = part
            else:
                strays.append(part.tool_call_id)
        if kept:
            others.append(replace(request, parts=kept))
    missing = [call for call in calls if call not in results]
    if strays or missing:
        log.warning("history_mended", results_left_out=strays, calls_without_result=missing)
    if results:
        yield ModelRequest(parts=[results[call] for call in calls if call in results])
    yield from others
