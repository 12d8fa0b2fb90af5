"""Parsing of chat completion requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.problems import Problem, ProblemError, invalid_request
from clew.api.request_files import EarlierMessage, parse_data_url
from clew.api.schemas import FileData
from clew.core.double_text import DoubleText, parse_rule
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

    from clew.api.request_files import RequestFile
    from clew.api.schemas import ChatMessage, ChatRequest, Part
    from clew.core.client_history import Speaker


class ChatCompletionInput(Record):
    """A parsed chat completion request."""

    #: NAME or id of the conversation; ``None`` for clients that resend the whole history.
    conversation: str | None
    text: str
    files: tuple[RequestFile, ...]
    #: The earlier messages; ignored where the conversation is named.
    history: tuple[EarlierMessage, ...]
    model: str
    double_text: DoubleText
    stream: bool
    with_usage: bool


def parse_chat_request(
    request: ChatRequest, headers: Headers, *, models: Sequence[str], double_text: str
) -> ChatCompletionInput:
    """
    Parse the request; ``double_text`` is the rule unless the client chooses one.

    :raises ProblemError: if it asks for something unsupported
    """
    _reject_unsupported(request)
    options = request.stream_options
    conversation = read_name_header(headers, "x-clew-conversation")
    newest = find_last_user(request.messages)
    text, files = extract_content(request.messages, newest)
    return ChatCompletionInput(
        conversation=conversation,
        text=text,
        files=files,
        history=() if conversation is not None else _parse_history(request.messages, newest),
        model=_select_model(request.model, models),
        double_text=parse_rule(headers.get("x-clew-double-text", double_text), people=False),
        stream=bool(request.stream),
        with_usage=bool(options and options.include_usage),
    )


def _reject_unsupported(request: ChatRequest) -> None:
    for field, value in (("tools", request.tools), ("functions", request.functions)):
        if value:
            raise invalid_request(
                f"{field}: the agent brings its own tools and runs them itself; tools of the "
                "client are not supported, so leave the field out",
                param=field,
                code="unsupported_parameter",
            )
    if request.n not in (None, 1):
        raise invalid_request(
            "n: there is one answer per message", param="n", code="unsupported_parameter"
        )
    if request.response_format is not None and request.response_format.type != "text":
        raise invalid_request(
            "response_format: answers are text; other formats are not supported",
            param="response_format",
            code="unsupported_parameter",
        )


def _select_model(asked: str | None, models: Sequence[str]) -> str:
    if asked is None:
        return models[0]
    if asked not in models:
        raise ProblemError(unknown_model_problem(asked, models))
    return asked


def unknown_model_problem(asked: str, models: Sequence[str]) -> Problem:
    message = f"there is no model {asked!r}: use one of {', '.join(models)}"
    return Problem(status=404, message=message, code="model_not_found", param="model")


def _parse_history(messages: Sequence[ChatMessage], newest: int) -> tuple[EarlierMessage, ...]:
    """
    Return everything but the newest message.

    The system's messages that follow it come behind those at the beginning: clients repeat them
    after each new message, and there they are in the same place every time.
    """
    said = [_parse_earlier(messages, at) for at in range(len(messages)) if at != newest]
    before, after = said[:newest], said[newest:]
    lead = next((at for at, one in enumerate(before) if one.speaker != "system"), len(before))
    return (*before[:lead], *after, *before[lead:])


def _parse_earlier(messages: Sequence[ChatMessage], at: int) -> EarlierMessage:
    speaker = _speaker_of(messages, at)
    text, files = extract_content(messages, at)
    return EarlierMessage(speaker=speaker, text=text, files=files)


def _speaker_of(messages: Sequence[ChatMessage], at: int) -> Speaker:
    message = messages[at]
    if message.tool_calls or message.role in ("tool", "function"):
        param = f"messages[{at}]"
        raise invalid_request(
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


def find_last_user(messages: Sequence[ChatMessage]) -> int:
    """
    Return the index of the new message, the last one, which must be from the user.

    :raises ProblemError: if it is from someone else
    """
    last = len(messages) - 1
    while last > 0 and messages[last].role in ("system", "developer"):
        last -= 1
    if messages[last].role != "user":
        param = f"messages[{last}].role"
        raise invalid_request(f"{param}: the last message must be the user's", param=param)
    return last


def extract_content(
    messages: Sequence[ChatMessage], index: int
) -> tuple[str, tuple[RequestFile, ...]]:
    """
    Return the text and the files of one message.

    :raises ProblemError: if the message contains anything else
    """
    content = messages[index].content
    if content is None or isinstance(content, str):
        return content or "", ()
    texts: list[str] = []
    files: list[RequestFile] = []
    for place, part in enumerate(content):
        param = f"messages[{index}].content[{place}]"
        if part.type == "text" and part.text is not None:
            texts.append(part.text)
        elif messages[index].role == "user":
            files.append(_parse_file(part, param))
        else:
            raise _unsupported_part(part, param, "text")
    return "\n".join(texts), tuple(files)


def _parse_file(part: Part, param: str) -> RequestFile:
    match part.type:
        case "image_url":
            url = None if part.image_url is None else part.image_url.url
            return parse_data_url(url, param, name="image")
        case "file":
            given = part.file or FileData()
            return parse_data_url(given.file_data, param, name=given.filename or "file")
        case _:
            raise _unsupported_part(part, param, "text, image_url and file")


def _unsupported_part(part: Part, param: str, supported: str) -> ProblemError:
    return invalid_request(
        f"{param}: only parts of type {supported} are supported, not {part.type!r}",
        param=param,
        code="unsupported_content",
    )


def read_name_header(headers: Headers, header: str) -> str | None:
    """
    Return the name in a header, which clients send in UTF-8.

    :raises ProblemError: if it is not UTF-8
    """
    value = headers.get(header)
    if value is None:
        return None
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise invalid_request(f"the header {header} is not UTF-8", param=header) from None
