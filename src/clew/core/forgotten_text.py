"""Messages without texts that a person has had forgotten."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from clew.record import Record

#: What stands in the place of a text.
FORGOTTEN: Final = "[forgotten]"


class Redaction(Record):
    """Texts that contexts go on without."""

    texts: tuple[str, ...]
    #: Each line with one of these goes: they name entries that are quoted.
    marks: tuple[str, ...] = ()
    #: Entries of the conversation whose whole text goes.
    entries: tuple[int, ...] = ()


def redact_message(message: str, wanted: Redaction, *, whole: bool) -> str:
    """
    Return a stored message without the texts, unchanged to the byte if it has none of them.

    ``whole``: nothing of what a person wrote in it stays.
    """
    given = json.loads(message)
    made = _redact_value(given, wanted, whole=whole)
    if made == given:
        return message
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def redact_text(value: str, wanted: Redaction) -> str:
    """Return a text without the texts, and without the lines that are marked."""
    for text in wanted.texts:
        value = value.replace(text, FORGOTTEN)
    if any(mark in value for mark in wanted.marks):
        lines = value.split("\n")
        value = "\n".join(
            FORGOTTEN if any(mark in line for mark in wanted.marks) else line for line in lines
        )
    if value[:1] not in ("{", "["):
        return value
    # Arguments of calls are stored as JSON in a string.
    try:
        inner = json.loads(value)
    except ValueError:
        return value
    made = _redact_value(inner, wanted, whole=False)
    return value if made == inner else json.dumps(made, ensure_ascii=False)


def _redact_value(value: Any, wanted: Redaction, *, whole: bool) -> Any:
    if isinstance(value, str):
        return redact_text(value, wanted)
    if isinstance(value, list):
        return [_redact_value(one, wanted, whole=whole) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if whole and fields.get("part_kind") == "user-prompt":
            return {**fields, "content": FORGOTTEN}
        return {key: _redact_value(one, wanted, whole=whole) for key, one in fields.items()}
    return value
