"""Forms with files, as fake platforms receive them."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from email.message import EmailMessage

    from clew.testing.provider.http import HttpRequest


class SentBytes(NamedTuple):
    """A file that the agent sent, as people get it."""

    name: str
    content: bytes


def is_multipart(http: HttpRequest) -> bool:
    """Return whether a request is a form with files."""
    return http.headers.get("content-type", "").startswith("multipart/form-data")


def parse_multipart(http: HttpRequest) -> tuple[dict[str, str], dict[str, tuple[str, bytes]]]:
    """Return the fields of a form, and its files by field: name and content."""
    head = f"Content-Type: {http.headers['content-type']}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + http.body)
    fields: dict[str, str] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for part in cast("list[EmailMessage]", list(form.iter_parts())):
        field = str(part.get_param("name", header="content-disposition"))
        content = cast("bytes", part.get_payload(decode=True))
        name = part.get_filename()
        if name is None:
            fields[field] = content.decode()
        else:
            files[field] = (name, content)
    return fields, files
