"""What a provider refuses: histories in which calls and results do not belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.testing.provider.request import Message, Request


def complaint(request: Request) -> str | None:
    """The provider's sentence about a request that breaks its protocol, if it does."""
    return next(CHECKS[request.format](request.messages, request.raw), None)


def _chat(messages: Sequence[Message], body: Mapping[str, Any]) -> Iterator[str]:
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
            yield _unanswered(due)
        due |= {call.id for call in message.calls}
    if due:
        yield _unanswered(due)


def _unanswered(due: set[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        + ", ".join(sorted(due))
    )


def _responses(messages: Sequence[Message], body: Mapping[str, Any]) -> Iterator[str]:
    if not body.get("model"):
        yield "Missing required parameter: 'model'."
    called = {call.id for message in messages for call in message.calls}
    answered = {result.call_id for message in messages for result in message.results}
    if not body.get("previous_response_id"):
        for missing in sorted(answered - called):
            yield f"No tool call found for function call output with call_id {missing}."
    for missing in sorted(called - answered):
        yield f"No tool output found for function call {missing}."


def _messages(messages: Sequence[Message], body: Mapping[str, Any]) -> Iterator[str]:
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            yield f"{name}: Field required"
    if not body.get("messages"):
        yield "messages: at least one message is required"
    due: set[str] = set()
    seen: set[str] = set()
    for index, message in enumerate(m for m in messages if m.role != "system"):
        answered = {result.call_id for result in message.results}
        yield from _pairing(index, due, answered)
        if any(not text.strip() for text in message.texts):
            yield "messages: text content blocks must contain non-whitespace text"
        due = {call.id for call in message.calls}
        if due & seen or len(due) < len(message.calls):
            yield f"messages.{index}: `tool_use` ids must be unique"
        seen |= due
    if due:
        yield _without_result(len(messages) - 1, due)


def _pairing(index: int, due: set[str], answered: set[str]) -> Iterator[str]:
    if missing := due - answered:
        yield _without_result(index - 1, missing)
    if extra := answered - due:
        yield (
            f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{', '.join(sorted(extra))}. Each `tool_result` block must have a corresponding "
            "`tool_use` block in the previous message."
        )


def _without_result(index: int, missing: set[str]) -> str:
    return (
        f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(sorted(missing))}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


CHECKS = {"chat": _chat, "responses": _responses, "messages": _messages}
