"""The kinds of values that settings have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.config import reading
from clew.config.kinds import Kind, Unfit, Where
from clew.config.secret import REDACTED, without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_OBJECT = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_STORE = r"sqlite:///.+|postgres(ql)?://.+"


def matching(
    pattern: str,
    *,
    name: str,
    expects: str,
    show: Callable[[str], object] = lambda text: text,
) -> Kind[str]:
    """Text of a certain form."""

    def read(value: object, where: Where) -> str:
        text = reading.text(value, where)
        if re.fullmatch(pattern, text):
            return text
        raise Unfit

    return Kind(
        name=name,
        expects=expects,
        read=read,
        schema={"type": "string", "pattern": f"^(?:{pattern})$"},
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
        from_text=reading.number_from_text,
    )


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
        from_text=reading.texts_from_text,
        show=list[str],
    )


_STRING: Final = {"type": "string", "minLength": 1}

TEXT: Final = Kind(name="text", expects="text", read=reading.text, schema=_STRING)
MODEL: Final = matching(
    reading.MODEL,
    name="model",
    expects='a model such as "openai-chat:llama3" (PROVIDER:MODEL), or "offline"',
)
URL: Final = matching(
    r"https?://\S+",
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
    read=reading.share,
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    from_text=reading.number_from_text,
)
FLAG: Final = Kind(
    name="flag",
    expects="true or false",
    read=reading.flag,
    schema={"type": "boolean"},
    from_text=reading.flag_from_text,
)
DURATION: Final = Kind(
    name="duration",
    expects='a duration such as "90s", "15m" or "24h", or a number of seconds',
    read=reading.duration,
    schema={
        "anyOf": [
            {"type": "string", "pattern": f"^{reading.DURATION}$"},
            {"type": "number", "exclusiveMinimum": 0},
        ]
    },
    show=reading.written,
)
CLOCK_TIME: Final = Kind(
    name="time of day",
    expects='a time of day such as "04:00"',
    read=reading.clock_time,
    schema={"type": "string", "pattern": f"^{reading.CLOCK}$"},
    show=lambda at: f"{at:%H:%M}",
)
TIMEZONE: Final = Kind(
    name="time zone",
    expects='a time zone such as "Europe/Berlin"',
    read=reading.timezone,
    schema=_STRING,
)
PATH: Final = Kind(
    name="path", expects="the path of a file", read=reading.path, schema=_STRING, show=str
)
TEXTS: Final = _list("list of texts", 'a list of texts such as ["a", "b"]', reading.texts, _STRING)
IDS: Final = _list(
    "list of ids",
    'a list of ids such as ["42"]',
    reading.ids,
    {"anyOf": [_STRING, {"type": "integer"}]},
)
MODELS: Final = _list(
    "list of models",
    'a list of models such as ["anthropic:claude-sonnet-5"]',
    reading.models,
    MODEL.schema,
)
ORIGINS: Final = _list(
    "list of origins",
    'a list of origins such as ["http://localhost:5173"]',
    reading.origins,
    {"type": "string", "pattern": f"^{reading.ORIGIN}$"},
)
SECRET: Final = Kind(
    name="secret",
    expects='{ env = "NAME" }, { file = "path" } or text',
    read=reading.secret,
    schema={"$ref": "#/$defs/secret"},
    show=lambda secret: REDACTED if secret.literal else secret.source,
    secret=True,
)
