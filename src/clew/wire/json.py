"""JSON from untrusted sources: parsed, with unstorable characters replaced."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from clew.core.text import sanitize_text

# Escapes of NUL and of surrogates, paired or not: only they can yield unstorable text.
_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def parse_json(raw: bytes) -> object:
    """
    Parse ``raw``; NUL and lone surrogates become U+FFFD.

    :raises ValueError: if it is not JSON, or nested too deeply; the message says which
    """
    try:
        found: object = json.loads(raw, parse_constant=_reject_constant)
        return _sanitize_value(found) if _UNSTORABLE_ESCAPE.search(raw) else found
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def dump_json(value: object) -> str:
    """Return a value as JSON on one line; lone surrogates become U+FFFD."""
    return sanitize_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _sanitize_value(value: object) -> object:
    if isinstance(value, str):
        return sanitize_text(value)
    if isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
        return [_sanitize_value(item) for item in items]
    if isinstance(value, dict):
        fields: dict[str, object] = value  # pyright: ignore[reportUnknownVariableType]
        return {sanitize_text(name): _sanitize_value(field) for name, field in fields.items()}
    return value
