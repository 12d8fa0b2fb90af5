"""Secrets of the settings never stand in an export, wherever they were said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.exported.shapes import CONTENT, SHAPES
from clew.core.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: What a message could not be read without.
_STRUCTURE: Final = frozenset({"kind", "part_kind", "timestamp", "tool_call_id"})
_CONTENT: Final = {
    kind: {"base"} | {field.name for field in fields if field.kind in CONTENT}
    for kind, fields in SHAPES.items()
}


class Redaction:
    """Takes secrets out of what people, models and tools said; ids and hashes stay."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._redactor = Redactor(secrets)

    def clean(self, kind: str, line: Mapping[str, Any]) -> dict[str, Any]:
        """
        The line of a record without secrets.

        An entry from which something was taken is marked as ``withheld``: its hash is that of what
        was said.
        """
        if not self._redactor:
            return dict(line)
        content = _CONTENT[kind]
        cleaned = {
            name: self._cleaned(value) if name in content else value for name, value in line.items()
        }
        if kind == "entry" and cleaned != line:
            cleaned["withheld"] = True
        return cleaned

    def text(self, text: str) -> str:
        return self._redactor.text(text)

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
