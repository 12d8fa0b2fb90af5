"""Reading values: from TOML, or from the texts of environment and flags."""

from __future__ import annotations

import re
import tomllib
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.config.kinds import Unfit
from clew.config.secret import FORMS, Secret

if TYPE_CHECKING:
    from clew.config.kinds import Where

ORIGIN: Final = r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d{1,5})?"
DURATION: Final = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)"
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
CLOCK: Final = r"([01]\d|2[0-3]):([0-5]\d)"
MODEL: Final = r"offline|[\w.-]+(/[\w.-]+)?:\S+"
_REFERENCES = [[form] for form in FORMS]
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def text(value: object, _: Where) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise Unfit


def number_from_text(text: str) -> object:
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text


def share(value: object, _: Where) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1:
        return float(value)
    raise Unfit


def flag(value: object, _: Where) -> bool:
    if isinstance(value, bool):
        return value
    raise Unfit


def flag_from_text(text: str) -> object:
    folded = text.strip().lower()
    return True if folded in _TRUE else False if folded in _FALSE else text


def duration(value: object, _: Where) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Unfit
    match = re.fullmatch(DURATION, str(value).strip())
    if match is None:
        raise Unfit
    try:
        duration = float(match[1]) * _UNITS[match[2]]
    except OverflowError:
        raise Unfit from None
    if not duration:
        raise Unfit("it may not be zero")
    return duration


def written(duration: timedelta) -> str:
    """A duration as it is written in settings."""
    for unit in ("h", "m", "s"):
        if duration % _UNITS[unit] == timedelta(0):
            return f"{duration // _UNITS[unit]}{unit}"
    return f"{duration.total_seconds():g}s"


def clock_time(value: object, _: Where) -> time:
    if isinstance(value, time) and not value.second and not value.microsecond:
        return value  # TOML has times of its own: at = 04:00:00
    match = re.fullmatch(CLOCK, value) if isinstance(value, str) else None
    if match is None:
        raise Unfit
    return time(int(match[1]), int(match[2]))


def timezone(value: object, where: Where) -> str:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  (only where a zone is configured)

    name = text(value, where)
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Unfit from None
    return name


def texts(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    return tuple(text(item, where) for item in cast("list[object]", value))


def ids(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    items = cast("list[object]", value)
    numbers = [isinstance(item, int) and not isinstance(item, bool) for item in items]
    return tuple(
        str(item) if is_number else text(item, where)
        for item, is_number in zip(items, numbers, strict=True)
    )


def texts_from_text(text: str) -> object:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return toml_or_text(text)


def toml_or_text(text: str) -> object:
    """The TOML value that a text spells, else the text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def origins(value: object, where: Where) -> tuple[str, ...]:
    found = texts(value, where)
    for origin in found:
        if not re.fullmatch(ORIGIN, origin):
            raise Unfit(f"{origin!r} is not an origin: scheme, host and port, without a path")
    return found


def models(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    items = tuple(text(item, where) for item in cast("list[object]", value))
    if not all(re.fullmatch(MODEL, item) for item in items):
        raise Unfit
    return items


def secret(value: object, where: Where) -> Secret:
    if isinstance(value, str) and value.strip():
        return Secret.of(value)
    form, text = reference(value)
    if form == "env":
        return Secret.from_env(text, key=where.key, environ=where.environ)
    return Secret.from_file(path(text, where), key=where.key)


def reference(value: object) -> tuple[str, str]:
    """The form and the text of ``{ env = "NAME" }`` or ``{ file = "path" }``."""
    if not is_reference(value):
        raise Unfit
    [(form, text)] = cast("dict[str, object]", value).items()
    if not isinstance(text, str) or not text.strip():
        raise Unfit
    return form, text


def is_reference(value: object) -> bool:
    """Whether a TOML value says where a secret is kept."""
    return isinstance(value, dict) and list(cast("dict[str, object]", value)) in _REFERENCES


def path(value: object, where: Where) -> Path:
    return where.home / Path(text(value, where)).expanduser()
