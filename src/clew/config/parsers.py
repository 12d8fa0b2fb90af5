"""Parsers of values: from TOML, or from the texts of environment and flags."""

from __future__ import annotations

import re
import tomllib
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.config.secret import REFERENCE_FORMS, Secret
from clew.config.setting_type import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config.setting_type import ReadContext

ORIGIN_PATTERN: Final = r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d{1,5})?"
DURATION_PATTERN: Final = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)"
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
CLOCK_PATTERN: Final = r"([01]\d|2[0-3]):([0-5]\d)"
MODEL_PATTERN: Final = r"offline|[\w.-]+(/[\w.-]+)?:\S+"
VARIABLE_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCES = [[form] for form in REFERENCE_FORMS]
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse_text(value: object, _: ReadContext) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise InvalidValue


def number_from_text(text: str) -> object:
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text


def parse_fraction(value: object, _: ReadContext) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1:
        return float(value)
    raise InvalidValue


def parse_flag(value: object, _: ReadContext) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidValue


def flag_from_text(text: str) -> object:
    folded = text.strip().lower()
    return True if folded in _TRUE else False if folded in _FALSE else text


def parse_duration(value: object, _: ReadContext) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidValue
    match = re.fullmatch(DURATION_PATTERN, str(value).strip())
    if match is None:
        raise InvalidValue
    try:
        duration = float(match[1]) * _UNITS[match[2]]
    except OverflowError:
        raise InvalidValue from None
    if not duration:
        raise InvalidValue("it may not be zero")
    return duration


def format_duration(duration: timedelta) -> str:
    """Format a duration as written in settings."""
    for unit in ("h", "m", "s"):
        if duration % _UNITS[unit] == timedelta(0):
            return f"{duration // _UNITS[unit]}{unit}"
    return f"{duration.total_seconds():g}s"


def parse_clock_time(value: object, _: ReadContext) -> time:
    if isinstance(value, time) and not value.second and not value.microsecond:
        return value  # TOML has a time type: at = 04:00:00
    match = re.fullmatch(CLOCK_PATTERN, value) if isinstance(value, str) else None
    if match is None:
        raise InvalidValue
    return time(int(match[1]), int(match[2]))


def parse_timezone(value: object, where: ReadContext) -> str:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  (only where a zone is configured)

    name = parse_text(value, where)
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InvalidValue from None
    return name


def parse_texts(value: object, where: ReadContext) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidValue
    return tuple(parse_text(item, where) for item in cast("list[object]", value))


def parse_ids(value: object, where: ReadContext) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidValue
    items = cast("list[object]", value)
    numbers = [isinstance(item, int) and not isinstance(item, bool) for item in items]
    return tuple(
        str(item) if is_number else parse_text(item, where)
        for item, is_number in zip(items, numbers, strict=True)
    )


def texts_from_text(text: str) -> object:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return toml_or_text(text)


def toml_or_text(text: str) -> object:
    """Parse the text as a TOML value, else return the text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def parse_origins(value: object, where: ReadContext) -> tuple[str, ...]:
    found = parse_texts(value, where)
    for origin in found:
        if not re.fullmatch(ORIGIN_PATTERN, origin):
            raise InvalidValue(
                f"{origin!r} is not an origin: scheme, host and port, without a path"
            )
    return found


def parse_models(value: object, where: ReadContext) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidValue
    items = tuple(parse_text(item, where) for item in cast("list[object]", value))
    if not all(re.fullmatch(MODEL_PATTERN, item) for item in items):
        raise InvalidValue
    return items


def parse_secret(value: object, where: ReadContext) -> Secret:
    if isinstance(value, str) and value.strip():
        return Secret.from_text(value)
    form, text = parse_reference(value)
    if form == "env":
        return Secret.from_env(text, key=where.key, environ=where.environ)
    return Secret.from_file(parse_path(text, where), key=where.key)


def parse_secrets(value: object, where: ReadContext) -> Mapping[str, Secret]:
    """Return a whole table; usually each key is a setting of its own."""
    if not isinstance(value, dict) or not all(cast("dict[str, object]", value)):
        raise InvalidValue
    table = cast("dict[str, object]", value)
    return {name: parse_secret(one, where) for name, one in table.items()}


def parse_variables(value: object, where: ReadContext) -> tuple[tuple[str, Secret], ...]:
    """Return each name, with the host behind it if there is one, and the secret of the name."""
    names = parse_texts(value, where)
    if not all(re.fullmatch(VARIABLE_PATTERN, name.partition("@")[0]) for name in names):
        raise InvalidValue
    if any(name.endswith("@") for name in names):
        raise InvalidValue
    return tuple((name, _read_variable(name.partition("@")[0], where)) for name in names)


def _read_variable(name: str, where: ReadContext) -> Secret:
    return Secret.from_env(name, key=where.key, environ=where.environ, advise="remove it")


def parse_reference(value: object) -> tuple[str, str]:
    """Return the form and the text of ``{ env = "NAME" }`` or ``{ file = "path" }``."""
    if not is_secret_reference(value):
        raise InvalidValue
    [(form, text)] = cast("dict[str, object]", value).items()
    if not isinstance(text, str) or not text.strip():
        raise InvalidValue
    return form, text


def is_secret_reference(value: object) -> bool:
    """Return whether a TOML value refers to the place of a secret."""
    return isinstance(value, dict) and list(cast("dict[str, object]", value)) in _REFERENCES


def parse_path(value: object, where: ReadContext) -> Path:
    return where.home / Path(parse_text(value, where)).expanduser()
