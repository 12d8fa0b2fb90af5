"""JSON from strangers: parsed, with what no database can hold replaced."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from clew.core.text import sanitize_text

# Escapes of NUL and of surrogates, paired or not: only they can make text that cannot be stored.
_SUSPICIOUS = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def read_json(raw: bytes) -> object:
    """
    The value that is written in ``raw``; NUL and lone surrogates are U+FFFD in it.

    :raises ValueError: if it is no JSON, or nested too deeply; the text says what is wrong
    """
    try:
        found: object = json.loads(raw, parse_constant=_no_number)
        return _storable(found) if _SUSPICIOUS.search(raw) else found
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(value: object) -> str:
    """Return a value as JSON on one line; lone surrogates, which UTF-8 has not, are U+FFFD."""
    return sanitize_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _storable(value: object) -> object:
    if isinstance(value, str):
        return sanitize_text(value)
    if isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
        return [_storable(item) for item in items]
    if isinstance(value, dict):
        fields: dict[str, object] = value  # pyright: ignore[reportUnknownVariableType]
        return {sanitize_text(name): _storable(field) for name, field in fields.items()}
    return value
