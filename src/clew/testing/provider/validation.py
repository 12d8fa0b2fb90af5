"""Validation of requests as real providers do it: calls and results must match."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.testing.provider.request import ProviderMessage, ProviderRequest, WireFormat


def find_violation(request: ProviderRequest, *, templates: bool = True) -> str | None:
    """
    Return the provider's message if the request violates its protocol.

    With ``templates`` it also has the strictest chat template: user and assistant must
    alternate.
    """
    broken = next(FORMAT_CHECKS[request.format](request.messages, request.raw), None)
    if broken is not None or not templates:
        return broken
    return next(_check_alternation(request.messages, request.format), None)


def _check_alternation(messages: Sequence[ProviderMessage], form: WireFormat) -> Iterator[str]:
    said = [message for message in messages if form != "responses" or _has_content(message)]
    if said and said[0].role == "system":
        said = said[1:]
    if any(message.role == "system" for message in said):
        yield "Only the first message of a conversation may be a system message."
    roles = [_speaker_of(message) for message in said]
    if roles and roles[0] != "user":
        yield f"Conversation roles must begin with user, not with {roles[0]}."
    if roles and roles[-1] not in ("user", "tool"):
        yield f"Expected last role to be user or tool, but got {roles[-1]}."
    for before, after in itertools.pairwise(roles):
        # An assistant reply in the Responses format consists of several items.
        several = after == "tool" or (form == "responses" and after == "assistant")
        if before == after and not several:
            yield f"Conversation roles must alternate: two messages of {after} in a row."
        if after == "tool" and before == "user":
            yield "Conversation roles must alternate: a result after a message of user."


def _has_content(message: ProviderMessage) -> bool:
    return bool(message.texts or message.calls or message.results)


def _speaker_of(message: ProviderMessage) -> str:
    """Return the role that speaks: in the Messages format, results come in user messages."""
    return "tool" if message.results and not message.texts else message.role


def _check_chat(messages: Sequence[ProviderMessage], body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("messages"):
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
    if not body.get("model"):
        yield "you must provide a model parameter"
    due: set[str] = set()
    for message in messages:
        for result in message.results:
            if result.call_id not in due:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            due.discard(result.call_id)
        if due and message.role != "tool":
            yield _unanswered_calls_error(due)
        due |= {call.id for call in message.calls}
    if due:
        yield _unanswered_calls_error(due)


def _unanswered_calls_error(due: set[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(sorted(due))
    )


def _check_responses(messages: Sequence[ProviderMessage], body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("model"):
        yield "Missing required parameter: 'model'."
    called = {call.id for message in messages for call in message.calls}
    answered = {result.call_id for message in messages for result in message.results}
    if not body.get("previous_response_id"):
        for missing in sorted(answered - called):
            yield f"No tool call found for function call output with call_id {missing}."
    for missing in sorted(called - answered):
        yield f"No tool output found for function call {missing}."


def _check_messages(messages: Sequence[ProviderMessage], body: Mapping[str, Any]) -> Iterator[str]:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield f"{name}: Field required"
    if not body.get("messages"):
        yield "messages: at least one message is required"
    due: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(m for m in messages if m.role != "system"):
        answered = {result.call_id for result in message.results}
        yield from _check_pairing(index, due, answered)
        if any(not text.strip() for text in message.texts):
            yield "messages: text content blocks must contain non-whitespace text"
        due = {call.id for call in message.calls}
        if due & seen or len(due) < len(message.calls):
            yield f"messages.{index}: `tool_use` ids must be unique"
        seen |= due
    if due:
        yield _missing_result_error(len(messages) - 1, due)


def _check_pairing(index: int, due: set[str], answered: set[str]) -> Iterator[str]:
    if missing := due - answered:
        yield _missing_result_error(index - 1, missing)
    if extra := answered - due:
        yield (
            f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{', '.join(sorted(extra))}. Each `tool_result` block must have a corresponding "
            "`tool_use` block in the previous message."
        )


def _missing_result_error(index: int, missing: set[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(sorted(missing))}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


FORMAT_CHECKS = {"chat": _check_chat, "responses": _check_responses, "messages": _check_messages}
