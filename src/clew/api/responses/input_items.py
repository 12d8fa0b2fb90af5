"""Parsing of input items: messages with their texts and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.problems import invalid_request
from clew.api.request_files import EarlierMessage, parse_data_url
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.request_files import RequestFile
    from clew.api.responses.schemas import InputItem, InputPart

_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class InputMessage(Record):
    """One message of an input."""

    role: str
    text: str
    files: tuple[RequestFile, ...]

    @property
    def as_earlier(self) -> EarlierMessage:
        match self.role:
            case "user" | "assistant":
                return EarlierMessage(speaker=self.role, text=self.text, files=self.files)
            case _:
                return EarlierMessage(speaker="system", text=self.text)


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
        case "input_image":
            return parse_data_url(part.image_url, param, name="image")
        case "input_file":
            return parse_data_url(part.file_data, param, name=part.filename or "file")
        case _:
            raise invalid_request(
                f"{param}: parts of type {part.type!r} are not supported",
                param=param,
                code="unsupported_content",
            )
