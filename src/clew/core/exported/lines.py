"""
The lines of an export, each numbered and sealed.

A line is one JSON object: ``{"n": 7, "type": "entry", …, "sum": "…"}``. ``n`` counts the lines from
1, ``sum`` is the sha256 of the line's bytes before ``,"sum"``: what was changed, lost or moved is
seen at the line itself.
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

as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Unreadable(Exception):
    """A line says something else than what was written; the text says how that shows."""


class Sealer:
    """Writes the lines of one export."""

    def __init__(self) -> None:
        self._n = 0
        self._sums = hashlib.sha256()

    def line(self, kind: str, fields: Mapping[str, object]) -> bytes:
        """The next line, with its line end."""
        self._n += 1
        body = as_json({"n": self._n, "type": kind, **fields})[:-1].encode()
        seal = hashlib.sha256(body).hexdigest()
        self._sums.update(seal.encode())
        return body + f',"sum":"{seal}"}}\n'.encode()

    @property
    def sums(self) -> str:
        """sha256 over the sums of all lines so far."""
        return self._sums.hexdigest()


def check_seal(line: bytes) -> str:
    """
    The sum of a line, which is right.

    :raises Unreadable: if the line was changed
    """
    seal = _SEAL.fullmatch(line[-_SEAL_LENGTH:])
    if seal is None:
        raise Unreadable("it does not end as a line of an export does")
    stated = seal[1].decode()
    if hashlib.sha256(line[:-_SEAL_LENGTH]).hexdigest() != stated:
        raise Unreadable("it does not have the sum that it states")
    return stated


def said_by(line: bytes) -> dict[str, Any]:
    """
    What a line says, whether or not it was changed.

    :raises Unreadable: if it is no JSON object
    """
    return parsed(line[:-_SEAL_LENGTH] + b"}")


def parsed(text: bytes | str) -> dict[str, Any]:
    """:raises Unreadable: if it is no JSON object"""
    value = from_json(text)
    if not isinstance(value, dict):
        raise Unreadable("it is no JSON object")
    return cast("dict[str, Any]", value)


def from_json(text: bytes | str) -> Any:
    """:raises Unreadable: if it is no JSON by the letter of the standard, or nested too deep"""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise Unreadable("it is no JSON") from None


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)
