"""Redaction of configured secrets in exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.export_format.schema import CONTENT_TYPES, LINE_FIELDS
from clew.core.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Keys that are needed to parse a message.
_STRUCTURE: Final = frozenset({"kind", "part_kind", "timestamp", "tool_call_id"})
_CONTENT: Final = {
    kind: {"base"} | {field.name for field in fields if field.kind in CONTENT_TYPES}
    for kind, fields in LINE_FIELDS.items()
}


class ExportRedactor:
    """Redactor of text by people, models and tools; ids and hashes stay."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._redactor = Redactor(secrets)

    def redact_line(self, kind: str, line: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the line of a record without secrets.

        A changed entry is marked as ``withheld``: its hash is that of the original text.
        """
        if not self._redactor:
            return dict(line)
        content = _CONTENT[kind]
        cleaned = {
            name: self._redact_value(value) if name in content else value
            for name, value in line.items()
        }
        if kind == "entry" and cleaned != line:
            cleaned["withheld"] = True
        return cleaned

    def redact_text(self, text: str) -> str:
        return self._redactor.redact_text(text)

    def _redact_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self._redact_value(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {
                name if name in _STRUCTURE else self.redact_text(name): (
                    one if name in _STRUCTURE else self._redact_value(one)
                )
                for name, one in fields.items()
            }
        return value
