"""Secrets of the settings never stand in an export, wherever they were said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.exported.lines import as_json
from clew.core.exported.shapes import CONTENT, SHAPES
from clew.core.text import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: What a message could not be read without.
_STRUCTURE: Final = frozenset({"kind", "part_kind", "timestamp", "tool_call_id"})
_CONTENT: Final = {
    kind: {"base"} | {field.name for field in fields if field.kind in CONTENT}
    for kind, fields in SHAPES.items()
}
#: How deep JSON texts stand in JSON texts: the arguments of a call, and a call quoted in a text.
_QUOTED: Final = 3


class Redaction:
    """Takes secrets out of what people, models and tools said; ids and hashes stay."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first: one may be a part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    def clean(self, kind: str, line: Mapping[str, Any]) -> dict[str, Any]:
        """
        The line of a record without secrets.

        An entry from which something was taken is marked as ``withheld``: its hash is that of what
        was said.
        """
        if not self._forms:
            return dict(line)
        content = _CONTENT[kind]
        cleaned = {
            name: self._cleaned(value) if name in content else value for name, value in line.items()
        }
        if kind == "entry" and cleaned != line:
            cleaned["withheld"] = True
        return cleaned

    def text(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._cleaned(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {
                name if name in _STRUCTURE else self.text(name): (
                    one if name in _STRUCTURE else self._cleaned(one)
                )
                for name, one in fields.items()
            }
        return value


def _forms(secret: str) -> set[str]:
    """The secret, and how it is written in messages of Python and inside of JSON texts."""
    forms = {secret, repr(secret)[1:-1]}
    for _ in range(_QUOTED):
        forms |= {as_json(form)[1:-1] for form in forms}
        forms |= {ascii_form for form in forms if (ascii_form := _ascii(form)) != form}
    return forms


def _ascii(text: str) -> str:
    """With everything else as the escapes of JSON."""
    units = text.encode("utf-16-be")
    pairs = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(unit) if unit < 0x80 else f"\\u{unit:04x}" for unit in pairs)
