"""Files that a request contains, as data URLs."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from clew.api.problems import invalid_request
from clew.core.client_history import HistoryMessage
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.core.attachments import FetchedFile
    from clew.core.client_history import Speaker
    from clew.engine.request_service import RequestService


class RequestFile(Record):
    """A file that a request contains."""

    name: str
    media_type: str
    content: bytes


class EarlierMessage(Record):
    """A message of a history with its files."""

    speaker: Speaker
    text: str
    files: tuple[RequestFile, ...] = ()


def parse_data_url(url: str | None, param: str, *, name: str) -> RequestFile:
    """
    Return the file in a data URL.

    :raises ProblemError: if it is the address of a file, or not base64
    """
    head, _, data = (url or "").partition(";base64,")
    if not head.startswith("data:"):
        raise invalid_request(
            f"{param}: send the file itself, as a data URL in base64; addresses and file ids are "
            "not fetched",
            param=param,
            code="unsupported_content",
        )
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_request(f"{param}: the data is not base64", param=param) from None
    return RequestFile(name=name, media_type=head.removeprefix("data:"), content=content)


def prepare_files(requests: RequestService, files: Iterable[RequestFile]) -> list[FetchedFile]:
    """
    Return the files as they are attached to a message.

    :raises UsageError: if one is too large
    """
    return [
        requests.prepare_file(name=file.name, media_type=file.media_type, content=file.content)
        for file in files
    ]


def prepare_history(
    requests: RequestService, messages: Iterable[EarlierMessage]
) -> tuple[HistoryMessage, ...]:
    """
    Return a history with its files as they are attached to a conversation.

    :raises UsageError: if one is too large
    """
    return tuple(
        HistoryMessage(one.speaker, one.text, tuple(prepare_files(requests, one.files)))
        for one in messages
    )
