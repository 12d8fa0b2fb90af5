"""The types that settings have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.config import parsers
from clew.config.secret import REDACTED, redact_password
from clew.config.setting_type import InvalidValue, ReadContext, SettingType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_OBJECT_PATTERN = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_STORE_URL_PATTERN = r"sqlite:///.+|postgres(ql)?://.+"


def pattern_type(
    pattern: str,
    *,
    name: str,
    expects: str,
    show: Callable[[str], object] = lambda text: text,
) -> SettingType[str]:
    """Return a type for text that matches a pattern."""

    def parse_match(value: object, where: ReadContext) -> str:
        text = parsers.parse_text(value, where)
        if re.fullmatch(pattern, text):
            return text
        raise InvalidValue

    return SettingType(
        name=name,
        expects=expects,
        read=parse_match,
        schema={"type": "string", "pattern": f"^(?:{pattern})$"},
        show=show,
    )


def integer_type(*, least: float, most: float | None = None, unit: str = "") -> SettingType[int]:
    """Return a type for whole numbers from ``least`` to ``most``."""

    def parse_integer(value: object, _: ReadContext) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidValue
        if most is not None and value > most:
            raise InvalidValue
        return value

    limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
    return SettingType(
        name="whole number",
        expects=f"a whole number {limits}{unit and f' ({unit})'}",
        read=parse_integer,
        schema={"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most}),
        from_text=parsers.number_from_text,
    )


def choice_type(options: Collection[str]) -> SettingType[str]:
    """Return a type for one of several words."""

    def parse_choice(value: object, _: ReadContext) -> str:
        if isinstance(value, str) and value in options:
            return value
        raise InvalidValue

    return SettingType(
        name="choice",
        expects="one of " + ", ".join(options),
        read=parse_choice,
        schema={"type": "string", "enum": [*options]},
    )


def _list_type(
    name: str, expects: str, read: Callable[[object, ReadContext], tuple[str, ...]], items: object
) -> SettingType[tuple[str, ...]]:
    return SettingType(
        name=name,
        expects=expects,
        read=read,
        schema={"type": "array", "items": items},
        from_text=parsers.texts_from_text,
        show=list[str],
    )


_STRING_SCHEMA: Final = {"type": "string", "minLength": 1}

TEXT: Final = SettingType(
    name="text", expects="text", read=parsers.parse_text, schema=_STRING_SCHEMA
)
MODEL: Final = pattern_type(
    parsers.MODEL_PATTERN,
    name="model",
    expects='a model such as "openai-chat:llama3" (PROVIDER:MODEL), or "offline"',
)
URL: Final = pattern_type(
    r"https?://\S+",
    name="URL",
    expects="a URL that begins with http:// or https://",
    show=redact_password,
)
STORE_URL: Final = pattern_type(
    _STORE_URL_PATTERN,
    name="store URL",
    expects="sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    show=redact_password,
)
OBJECT: Final = pattern_type(
    _OBJECT_PATTERN,
    name="Python object",
    expects='a Python object such as "my_package.agents:agent"',
)
SHARE: Final = SettingType(
    name="share",
    expects="a number between 0 and 1",
    read=parsers.parse_fraction,
    schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    from_text=parsers.number_from_text,
)
FLAG: Final = SettingType(
    name="flag",
    expects="true or false",
    read=parsers.parse_flag,
    schema={"type": "boolean"},
    from_text=parsers.flag_from_text,
)
DURATION: Final = SettingType(
    name="duration",
    expects='a duration such as "90s", "15m" or "24h", or a number of seconds',
    read=parsers.parse_duration,
    schema={
        "anyOf": [
            {"type": "string", "pattern": f"^{parsers.DURATION_PATTERN}$"},
            {"type": "number", "exclusiveMinimum": 0},
        ]
    },
    show=parsers.format_duration,
)
CLOCK_TIME: Final = SettingType(
    name="time of day",
    expects='a time of day such as "04:00"',
    read=parsers.parse_clock_time,
    schema={"type": "string", "pattern": f"^{parsers.CLOCK_PATTERN}$"},
    show=lambda at: f"{at:%H:%M}",
)
TIMEZONE: Final = SettingType(
    name="time zone",
    expects='a time zone such as "Europe/Berlin"',
    read=parsers.parse_timezone,
    schema=_STRING_SCHEMA,
)
PATH: Final = SettingType(
    name="path",
    expects="the path of a file",
    read=parsers.parse_path,
    schema=_STRING_SCHEMA,
    show=str,
)
TEXTS: Final = _list_type(
    "list of texts", 'a list of texts such as ["a", "b"]', parsers.parse_texts, _STRING_SCHEMA
)
IDS: Final = _list_type(
    "list of ids",
    'a list of ids such as ["42"]',
    parsers.parse_ids,
    {"anyOf": [_STRING_SCHEMA, {"type": "integer"}]},
)
MODELS: Final = _list_type(
    "list of models",
    'a list of models such as ["anthropic:claude-sonnet-5"]',
    parsers.parse_models,
    MODEL.schema,
)
ORIGINS: Final = _list_type(
    "list of origins",
    'a list of origins such as ["http://localhost:5173"]',
    parsers.parse_origins,
    {"type": "string", "pattern": f"^{parsers.ORIGIN_PATTERN}$"},
)
SECRET: Final = SettingType(
    name="secret",
    expects='{ env = "NAME" }, { file = "path" } or text',
    read=parsers.parse_secret,
    schema={"$ref": "#/$defs/secret"},
    show=lambda secret: REDACTED if secret.literal else secret.source,
    secret=True,
)
SECRETS: Final = SettingType(
    name="table of secrets",
    expects='a table such as { NAME = { env = "VARIABLE" }, OTHER = "text" }',
    read=parsers.parse_secrets,
    schema={"type": "object", "additionalProperties": {"$ref": "#/$defs/secret"}},
    show=lambda table: {name: SECRET.show(secret) for name, secret in table.items()},
    secret=True,
)
VARIABLES: Final = SettingType(
    name="list of variables",
    expects='a list of names of environment variables such as ["GITHUB_TOKEN"]',
    read=parsers.parse_variables,
    schema={
        "type": "array",
        "items": {"type": "string", "pattern": f"^{parsers.VARIABLE_PATTERN}(@.+)?$"},
    },
    from_text=parsers.texts_from_text,
    show=lambda pairs: [name for name, _ in pairs],
)
