"""What a chat completion request asks for, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.api.problems import Declined, Problem, invalid
from clew.core.double_text import DoubleText, resolve_rule
from clew.core.history import HistoryMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

    from clew.api.schemas import ChatMessage, ChatRequest
    from clew.core.history import Speaker


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatOrder:
    """A request for an answer, as far as it is understood."""

    #: NAME or id of the conversation; ``None`` for clients that resend all history.
    conversation: str | None
    text: str
    #: What came before it; not looked at where the conversation is named.
    history: tuple[HistoryMessage, ...]
    model: str
    double_text: DoubleText
    stream: bool
    with_usage: bool


def order_of(
    request: ChatRequest, headers: Headers, *, models: Sequence[str], double_text: str
) -> ChatOrder:
    """
    What the request asks for; ``double_text`` is the rule where the client chooses none.

    :raises Declined: if it asks for what cannot be
    """
    _refuse_unsupported(request)
    options = request.stream_options
    conversation = name_in(headers, "x-clew-conversation")
    newest = last_user(request.messages)
    return ChatOrder(
        conversation=conversation,
        text=text_of(request.messages, newest),
        history=() if conversation is not None else _history(request.messages, newest),
        model=_model(request.model, models),
        double_text=resolve_rule(headers.get("x-clew-double-text", double_text), people=False),
        stream=bool(request.stream),
        with_usage=bool(options and options.include_usage),
    )


def _refuse_unsupported(request: ChatRequest) -> None:
    for field, value in (("tools", request.tools), ("functions", request.functions)):
        if value:
            raise invalid(
                f"{field}: the agent brings its own tools and runs them itself; tools of the "
                "client are not supported, so leave the field out",
                param=field,
                code="unsupported_parameter",
            )
    if request.n not in (None, 1):
        raise invalid("n: there is one answer per message", param="n", code="unsupported_parameter")
    if request.response_format is not None and request.response_format.type != "text":
        raise invalid(
            "response_format: answers are text; other formats are not supported",
            param="response_format",
            code="unsupported_parameter",
        )


def _model(asked: str | None, models: Sequence[str]) -> str:
    if asked is None:
        return models[0]
    if asked not in models:
        raise Declined(unknown_model(asked, models))
    return asked


def unknown_model(asked: str, models: Sequence[str]) -> Problem:
    message = f"there is no model {asked!r}: use one of {', '.join(models)}"
    return Problem(status=404, message=message, code="model_not_found", param="model")


def _history(messages: Sequence[ChatMessage], newest: int) -> tuple[HistoryMessage, ...]:
    """Everything but the newest message; what follows it (the system's) comes before it."""
    others = [*range(newest), *range(newest + 1, len(messages))]
    return tuple(HistoryMessage(_speaker(messages, at), text_of(messages, at)) for at in others)


def _speaker(messages: Sequence[ChatMessage], at: int) -> Speaker:
    message = messages[at]
    if message.tool_calls or message.role in ("tool", "function"):
        param = f"messages[{at}]"
        raise invalid(
            f"{param}: tool calls of the client cannot be taken over; name the conversation in "
            "X-Clew-Conversation instead of sending its history",
            param=param,
            code="unsupported_content",
        )
    match message.role:
        case "user" | "assistant":
            return message.role
        case _:
            return "system"


def last_user(messages: Sequence[ChatMessage]) -> int:
    """
    Which message is the new one: the last, which must be the user's.

    :raises Declined: if it is another's
    """
    last = len(messages) - 1
    while last > 0 and messages[last].role in ("system", "developer"):
        last -= 1
    if messages[last].role != "user":
        param = f"messages[{last}].role"
        raise invalid(f"{param}: the last message must be the user's", param=param)
    return last


def text_of(messages: Sequence[ChatMessage], index: int) -> str:
    """
    The text of one message.

    :raises Declined: if it holds anything else
    """
    content = messages[index].content
    if content is None or isinstance(content, str):
        return content or ""
    for place, part in enumerate(content):
        if part.type != "text" or part.text is None:
            param = f"messages[{index}].content[{place}]"
            raise invalid(
                f"{param}: only parts of type text are supported, not {part.type!r}",
                param=param,
                code="unsupported_content",
            )
    return "\n".join(part.text or "" for part in content)


def name_in(headers: Headers, header: str) -> str | None:
    """
    A name in a header, which clients send in UTF-8.

    :raises Declined: if it is not
    """
    value = headers.get(header)
    if value is None:
        return None
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise invalid(f"the header {header} is not UTF-8", param=header) from None
