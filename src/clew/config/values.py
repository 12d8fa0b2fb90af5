"""The kinds of values that settings have."""

from __future__ import annotations

import json
import re
from datetime import time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.config.kinds import Kind, Unfit, Where
from clew.config.secret import FORMS, HIDDEN, Secret, without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)")
_UNITS = {
    "ms": timedelta(milliseconds=1),
    "": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MODEL = re.compile(r"offline|[\w.-]+(/[\w.-]+)?:\S+")
_STORE = re.compile(r"sqlite:///.+|postgres(ql)?://.+")
_REFERENCES = [[form] for form in FORMS]
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _text(value: object, _: Where) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise Unfit


def matching(
    pattern: re.Pattern[str],
    *,
    name: str,
    expects: str,
    show: Callable[[str], object] = lambda text: text,
    schema: str | None = None,
) -> Kind[str]:
    """Text of a certain form; ``schema`` is a pattern for editors where it differs."""

    def read(value: object, where: Where) -> str:
        text = _text(value, where)
        if pattern.fullmatch(text):
            return text
        raise Unfit

    return Kind(
        name=name,
        expects=expects,
        read=read,
        schema={"type": "string", "pattern": schema or f"^(?:{pattern.pattern})$"},
        show=show,
    )


def number(*, least: float, most: float | None = None, unit: str = "") -> Kind[int]:
    """A whole number from ``least`` to ``most``."""

    def read(value: object, _: Where) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise Unfit
        if most is not None and value > most:
            raise Unfit
        return value

    limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
    return Kind(
        name="whole number",
        expects=f"a whole number {limits}{unit and f' ({unit})'}",
        read=read,
        schema={"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most}),
        from_text=_number_from_text,
    )


def _number_from_text(text: str) -> object:
    for number_type in (int, float):
        try:
            return number_type(text)
        except ValueError:
            continue
    return text


def _share(value: object, _: Where) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1:
        return float(value)
    raise Unfit


def _flag(value: object, _: Where) -> bool:
    if isinstance(value, bool):
        return value
    raise Unfit


def _flag_from_text(text: str) -> object:
    folded = text.strip().lower()
    return True if folded in _TRUE else False if folded in _FALSE else text


def _duration(value: object, _: Where) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Unfit
    match = _DURATION.fullmatch(str(value).strip())
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
    for unit in ("d", "h", "m", "s"):
        if duration % _UNITS[unit] == timedelta(0):
            return f"{duration // _UNITS[unit]}{unit}"
    return f"{duration.total_seconds():g}s"


def _clock_time(value: object, _: Where) -> time:
    if isinstance(value, time) and not value.second and not value.microsecond:
        return value  # TOML has times of its own: at = 04:00:00
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise Unfit
    return time(int(match[1]), int(match[2]))


def _timezone(value: object, where: Where) -> str:
    from zoneinfo import ZoneInfo  # noqa: PLC0415  (only where a zone is configured)

    name = _text(value, where)
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise Unfit from None
    return name


def _texts(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    return tuple(_text(item, where) for item in cast("list[object]", value))


def _ids(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    items = cast("list[object]", value)
    numbers = [isinstance(item, int) and not isinstance(item, bool) for item in items]
    return tuple(
        str(item) if is_number else _text(item, where)
        for item, is_number in zip(items, numbers, strict=True)
    )


def _texts_from_text(text: str) -> object:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _models(value: object, where: Where) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit
    return tuple(MODEL.read(item, where) for item in cast("list[object]", value))


def _secret(value: object, where: Where) -> Secret:
    if isinstance(value, str) and value.strip():
        return Secret.of(value)
    form, text = _reference(value)
    if form == "env":
        return Secret.from_env(text, key=where.key, environ=where.environ)
    return Secret.from_file(_path(text, where), key=where.key)


def _reference(value: object) -> tuple[str, str]:
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


def _path(value: object, where: Where) -> Path:
    return where.home / Path(_text(value, where)).expanduser()


def choice(options: Collection[str]) -> Kind[str]:
    """One word of several."""

    def read(value: object, _: Where) -> str:
        if isinstance(value, str) and value in options:
            return value
        raise Unfit

    return Kind(
        name="choice",
        expects="one of " + ", ".join(options),
        read=read,
        schema={"type": "string", "enum": [*options]},
    )


def _list(
    name: str, expects: str, read: Callable[[object, Where], tuple[str, ...]], items: object
) -> Kind[tuple[str, ...]]:
    return Kind(
        name=name,
        expects=expects,
        read=read,
        schema={"type": "array", "items": items},
        from_text=_texts_from_text,
        show=list[str],
    )


_STRING: Final = {"type": "string", "minLength": 1}

TEXT: Final = Kind(name="text", expects="text", read=_text, schema=_STRING)
MODEL: Final = matching(
    _MODEL,
    name="model",
    expects='a model such as "openai-chat:llama3" (PROVIDER:MODEL), or "offline"',
)
URL: Final = matching(
    re.compile(r"https?://\S+"),
    name="URL",
    expects="a URL that begins with http:// or https://",
    show=without_password,
)
STORE_URL: Final = matching(
    _STORE,
    name="store URL",
    expects="sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    show=without_password,
)
OBJECT: Final = matching(
    _OBJECT, name="Python object", expects='a Python object such as "my_package.agents:agent"'
)
SHARE: Final = Kind(
    name="share",
    expects="a number between 0 and 1",
    read=_share,
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    from_text=_number_from_text,
)
FLAG: Final = Kind(
    name="flag",
    expects="true or false",
    read=_flag,
    schema={"type": "boolean"},
    from_text=_flag_from_text,
)
DURATION: Final = Kind(
    name="duration",
    expects='a duration such as "90s", "15m" or "24h", or a number of seconds',
    read=_duration,
    schema={
        "anyOf": [
            {"type": "string", "pattern": f"^{_DURATION.pattern}$"},
            {"type": "number", "exclusiveMinimum": 0},
        ]
    },
    show=written,
)
CLOCK_TIME: Final = Kind(
    name="time of day",
    expects='a time of day such as "04:00"',
    read=_clock_time,
    schema={"type": "string", "pattern": f"^{_CLOCK.pattern}$"},
    show=lambda at: f"{at:%H:%M}",
)
TIMEZONE: Final = Kind(
    name="time zone", expects='a time zone such as "Europe/Berlin"', read=_timezone, schema=_STRING
)
PATH: Final = Kind(name="path", expects="the path of a file", read=_path, schema=_STRING, show=str)
TEXTS: Final = _list("list of texts", 'a list of texts such as ["a", "b"]', _texts, _STRING)
IDS: Final = _list(
    "list of ids",
    'a list of ids such as ["42"]',
    _ids,
    {"anyOf": [_STRING, {"type": "integer"}]},
)
MODELS: Final = _list(
    "list of models",
    'a list of models such as ["anthropic:claude-sonnet-5"]',
    _models,
    MODEL.schema,
)
SECRET: Final = Kind(
    name="secret",
    expects='{ env = "NAME" }, { file = "path" } or text',
    read=_secret,
    schema={"$ref": "#/$defs/secret"},
    show=lambda secret: HIDDEN if secret.literal else secret.source,
    secret=True,
)
