"""
Numbered and sealed lines of an export.

A line is one JSON object: ``{"n": 7, "type": "entry", …, "sum": "…"}``. ``n`` counts the
lines from 1, ``sum`` is the sha256 of the line's bytes before ``,"sum"``: every change,
loss or move is visible at the line itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The format that this version writes, and the newest one that it reads.
VERSION: Final = 1
FORMAT: Final = "clew-export"

_SEAL: Final = re.compile(rb',"sum":"([0-9a-f]{64})"\}')
_SEAL_LENGTH: Final = len(',"sum":"') + 64 + len('"}')

encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class MalformedLine(Exception):
    """Line that differs from the original; the message says how this was detected."""


class LineSealer:
    """Writer of the lines of one export."""

    def __init__(self) -> None:
        self._n = 0
        self._sums = hashlib.sha256()

    def seal_line(self, kind: str, fields: Mapping[str, object]) -> bytes:
        """Return the next line, including its line end."""
        self._n += 1
        body = encode_json({"n": self._n, "type": kind, **fields})[:-1].encode()
        seal = hashlib.sha256(body).hexdigest()
        self._sums.update(seal.encode())
        return body + f',"sum":"{seal}"}}\n'.encode()

    @property
    def sums_digest(self) -> str:
        """Return the sha256 of the sums of all lines so far."""
        return self._sums.hexdigest()


def check_seal(line: bytes) -> str:
    """
    Return the verified sum of a line.

    :raises MalformedLine: if the line was changed
    """
    seal = _SEAL.fullmatch(line[-_SEAL_LENGTH:])
    if seal is None:
        raise MalformedLine("its end is not that of an export line")
    stated = seal[1].decode()
    if hashlib.sha256(line[:-_SEAL_LENGTH]).hexdigest() != stated:
        raise MalformedLine("its checksum does not match")
    return stated


def parse_line(line: bytes) -> dict[str, Any]:
    """
    Return the fields of a line without checking its seal.

    :raises MalformedLine: if it is not a JSON object
    """
    return parse_object(line[:-_SEAL_LENGTH] + b"}")


def parse_object(text: bytes | str) -> dict[str, Any]:
    """
    Parse a JSON object.

    :raises MalformedLine: if it is not one
    """
    value = decode_json(text)
    if not isinstance(value, dict):
        raise MalformedLine("it is not a JSON object")
    return cast("dict[str, Any]", value)


def decode_json(text: bytes | str) -> Any:
    """
    Decode JSON strictly.

    :raises MalformedLine: if it is not standard JSON, or is nested too deeply
    """
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise MalformedLine("it is not valid JSON") from None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
