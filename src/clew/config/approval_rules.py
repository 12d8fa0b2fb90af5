"""The type of ``[[approvals.rule]]``: rules about tool calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.config import parsers
from clew.config.setting_type import InvalidValue, ReadContext, SettingType
from clew.core.policy_rule import PolicyRule, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

_THEN: Final = "then"
#: The keys of a rule, and the fields that they fill.
_FIELDS: Final = {
    "tool": "tools",
    "command": "commands",
    "host": "hosts",
    "path": "paths",
    "who": "who",
}
_TEXTS_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}},
    ]
}
_VERDICTS: Final = [one.value for one in Verdict]


def _parse_rules(value: object, where: ReadContext) -> tuple[PolicyRule, ...]:
    if not isinstance(value, list):
        raise InvalidValue
    tables = cast("list[object]", value)
    return tuple(_parse_rule(table, number, where) for number, table in enumerate(tables, 1))


def _parse_rule(value: object, number: int, where: ReadContext) -> PolicyRule:
    if not isinstance(value, dict):
        raise InvalidValue(f"rule {number} is not a table")
    table = cast("dict[str, object]", value)
    if unknown := sorted(table.keys() - {*_FIELDS, _THEN}):
        known = ", ".join([*_FIELDS, _THEN])
        raise InvalidValue(f"rule {number} has {unknown[0]!r}, which is none of {known}")
    if table.get(_THEN) not in _VERDICTS:
        raise InvalidValue(f"rule {number} needs then = one of {', '.join(_VERDICTS)}")
    given = {
        field: _parse_patterns(table[key], key, number, where)
        for key, field in _FIELDS.items()
        if key in table
    }
    return PolicyRule(then=Verdict(table[_THEN]), **given)


def _parse_patterns(value: object, key: str, number: int, where: ReadContext) -> tuple[str, ...]:
    try:
        one_or_more = cast("object", value if isinstance(value, list) else [value])
        found = parsers.parse_texts(one_or_more, where)
        if not found:
            raise InvalidValue
        if key == "command":
            # Few settings have rules about commands.
            from clew.core.command_shape import CommandPattern  # noqa: PLC0415

            for one in found:
                CommandPattern.parse(one)
    except ValueError as error:
        detail = f": {error}" if str(error) else ""
        raise InvalidValue(
            f"{key} of rule {number} is not text or a list of texts{detail}"
        ) from None
    return tuple(map(_tidy_path, found)) if key == "path" else found


def _tidy_path(pattern: str) -> str:
    """Return a pattern as paths are written: without ``~``, ``./`` and a slash at the end."""
    full = str(Path(pattern).expanduser()) if pattern.startswith("~") else pattern
    return full.removeprefix("./").rstrip("/") or full


def _show_rule(rule: PolicyRule) -> Mapping[str, object]:
    shown = {
        key: list(cast("tuple[str, ...]", getattr(rule, name))) for key, name in _FIELDS.items()
    }
    return {key: texts for key, texts in shown.items() if texts} | {_THEN: rule.then.value}


RULES: Final = SettingType(
    name="list of rules",
    expects='a list of rules such as [{ tool = "shell", then = "ask" }]',
    read=_parse_rules,
    schema={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                **dict.fromkeys(_FIELDS, _TEXTS_SCHEMA),
                _THEN: {"type": "string", "enum": _VERDICTS},
            },
            "required": [_THEN],
            "additionalProperties": False,
        },
    },
    from_text=parsers.toml_or_text,
    show=lambda rules: [_show_rule(rule) for rule in rules],
)
