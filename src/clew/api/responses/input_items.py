"""Parsing of input items: messages with their texts and files."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from clew.api.problems import invalid_request
from clew.core.client_history import HistoryMessage
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.responses.schemas import InputItem, InputPart

_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class RequestFile(Record):
    """A file that a request contains."""

    name: str
    media_type: str
    content: bytes


class InputMessage(Record):
    """One message of an input."""

    role: str
    text: str
    files: tuple[RequestFile, ...]

    @property
    def as_history(self) -> HistoryMessage:
        match self.role:
            case "user" | "assistant":
                return HistoryMessage(self.role, self.text)
            case _:
                return HistoryMessage("system", self.text)


def parse_input(given: str | Sequence[InputItem], *, param: str = "input") -> list[InputMessage]:
    """
    Return the messages of an input.

    :raises ProblemError: if it contains anything else
    """
    if isinstance(given, str):
        return [InputMessage(role="user", text=given, files=())]
    return [_parse_item(item, f"{param}[{place}]") for place, item in enumerate(given)]


def _parse_item(item: InputItem, param: str) -> InputMessage:
    if item.type != "message" or item.role is None:
        raise invalid_request(
            f"{param}: only items of type message are taken over, not {item.type!r}: the agent "
            "runs its own tools, and the conversation holds what they returned",
            param=param,
            code="unsupported_content",
        )
    content = item.content or ""
    if isinstance(content, str):
        return InputMessage(role=item.role, text=content, files=())
    places = [f"{param}.content[{place}]" for place in range(len(content))]
    texts = [part.text or "" for part in content if part.type in _TEXT_PARTS]
    files = [
        _parse_file(part, place)
        for part, place in zip(content, places, strict=True)
        if part.type not in _TEXT_PARTS
    ]
    if files and item.role != "user":
        raise invalid_request(f"{param}: only a user's message has files", param=param)
    return InputMessage(role=item.role, text="\n".join(texts), files=tuple(files))


def _parse_file(part: InputPart, param: str) -> RequestFile:
    match part.type:
        case "input_image" if part.image_url is not None:
            media_type, content = _decode_url(part.image_url, param)
            return RequestFile(name="image", media_type=media_type, content=content)
        case "input_file" if part.file_data is not None:
            media_type, content = _decode_url(part.file_data, param)
            return RequestFile(name=part.filename or "file", media_type=media_type, content=content)
        case "input_image" | "input_file":
            raise _not_inline(param)
        case _:
            raise invalid_request(
                f"{param}: parts of type {part.type!r} are not supported",
                param=param,
                code="unsupported_content",
            )


def _decode_url(url: str, param: str) -> tuple[str, bytes]:
    """Return the media type and the content of a data URL."""
    head, _, data = url.partition(";base64,")
    if not head.startswith("data:"):
        raise _not_inline(param)
    try:
        return head.removeprefix("data:"), base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_request(f"{param}: the data is not base64", param=param) from None


def _not_inline(param: str) -> Exception:
    return invalid_request(
        f"{param}: send the file itself, as a data URL in base64; addresses and file ids are not "
        "fetched",
        param=param,
        code="unsupported_content",
    )
