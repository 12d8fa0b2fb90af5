"""Reading of text: decoded, by lines, and limited to what fits into a result."""

from __future__ import annotations

import asyncio
import codecs
from typing import TYPE_CHECKING, Final

from clew.agent.known_secrets import redact_secrets
from clew.documents.document_text import DocumentRefused, may_be_document, read_document
from clew.record import Record
from clew.sandbox.errors import FileRefused

if TYPE_CHECKING:
    from clew.features.files.turn_workspace import LocatedPath

#: Characters of one result: a longer one would be shortened in the middle.
MAX_CHARS: Final = 50_000
#: Characters of one line.
MAX_LINE_CHARS: Final = 10_000
#: Bytes in which a NUL makes a file binary.
_HEAD: Final = 8_192
#: Share of bytes that are not UTF-8 above which a file counts as binary.
_BROKEN: Final = 0.1
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class DecodedText(Record):
    """The text of a file, with LF at the end of lines, and remarks about it."""

    text: str
    #: Remarks for the model: line ends, encoding.
    remarks: tuple[str, ...] = ()


async def read_lines(place: LocatedPath, *, line: int, lines: int) -> str:
    """
    Return lines of a text file or of a document, from ``line`` on.

    :raises FileRefused: if it cannot be read as text, or has no such line
    """
    path = place.path
    content = await asyncio.to_thread(place.workspace.read_file, path)
    decoded = await _read_document(path, content) or await asyncio.to_thread(
        decode_text, path, content
    )
    return _show_lines(path, decoded, line=line, lines=lines)


async def _read_document(path: str, content: bytes) -> DecodedText | None:
    """Return the text of a document; ``None`` if it is something else."""
    if not may_be_document(content):
        return None
    try:
        found = await read_document(content)
    except DocumentRefused as refused:
        raise FileRefused(f"{path!r} {refused}") from None
    return None if found is None else DecodedText(text=found.text, remarks=(found.remark,))


def _show_lines(path: str, decoded: DecodedText, *, line: int, lines: int) -> str:
    # Only at LF: a form feed, for example, is part of a line.
    found = decoded.text.split("\n")
    if found[-1] == "":
        found.pop()
    if not found:
        return f"[{path!r} is empty]"
    first = max(1, line)
    if first > len(found):
        raise FileRefused(f"{path!r} has {len(found):,} lines, there is no line {first:,}")
    shown = _take_lines(found[first - 1 : first - 1 + max(1, lines)])
    return "\n".join([*shown, *_make_remarks(decoded, first, len(shown), len(found))])


def _take_lines(lines: list[str]) -> list[str]:
    """Return as many lines as fit, at least one; long ones are cut."""
    taken: list[str] = []
    room = MAX_CHARS
    for one in lines:
        if len(one) > MAX_LINE_CHARS:
            one = redact_secrets(one)  # before it is cut: nobody recognises half of a secret
        if len(one) > MAX_LINE_CHARS:
            one = f"{one[:MAX_LINE_CHARS]} [… {len(one) - MAX_LINE_CHARS:,} more characters]"
        room -= len(one) + 1
        if room < 0 and taken:
            break
        taken.append(one)
    return taken


def _make_remarks(decoded: DecodedText, first: int, shown: int, total: int) -> list[str]:
    remarks = list(decoded.remarks)
    last = first + shown - 1
    if last < total:
        remarks.append(f"lines {first:,} to {last:,} of {total:,}; go on with line={last + 1}")
    elif first > 1:
        remarks.append(f"lines {first:,} to {total:,}, the end")
    return [f"[{'; '.join(remarks)}]"] if remarks else []


def decode_text(path: str, content: bytes) -> DecodedText:
    """
    Return the content of a file as text.

    :raises FileRefused: if it is binary
    """
    if content.startswith(_UTF_16):
        return _tidy_lines(content.decode("utf-16", "replace"), ["UTF-16"])
    if b"\0" in content[:_HEAD]:
        raise _refuse_binary(path, content)
    remarks: list[str] = []
    if content.startswith(codecs.BOM_UTF8):
        content = content.removeprefix(codecs.BOM_UTF8)
        remarks.append("begins with a byte order mark")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
        broken = text.count("\N{REPLACEMENT CHARACTER}")
        if broken > len(content) * _BROKEN:
            raise _refuse_binary(path, content) from None
        remarks.append(f"{broken:,} places are not UTF-8, shown as \N{REPLACEMENT CHARACTER}")
    return _tidy_lines(text.replace("\0", "\N{REPLACEMENT CHARACTER}"), remarks)


def _tidy_lines(text: str, remarks: list[str]) -> DecodedText:
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        remarks.append("lines end with CRLF")
    return DecodedText(text=text, remarks=tuple(remarks))


def _refuse_binary(path: str, content: bytes) -> FileRefused:
    return FileRefused(f"{path!r} is binary ({len(content):,} bytes), not text")
