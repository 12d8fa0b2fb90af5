"""Every setting there is, and every value that holds: for ``config show``, schema and reference."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from clew.config.keys import env_name, keys_of
from clew.config.secret import REDACTED, Secret, named_like_a_secret
from clew.config.settings import SECTIONS, ChannelSettings, Origin, ProviderSettings, Settings
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import DataclassInstance

    from clew.config.keys import Key

#: Stands for the name of a channel or a provider.
ANY: Final = "NAME"
#: Characters of the shortest secret that stands out from a text.
_SHORTEST: Final = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """What there is to know about a setting."""

    #: ``section.key``.
    name: str
    #: Its environment variable.
    env: str
    #: The kind of value: ``duration``, ``text``.
    type: str
    #: Completes "must be …".
    expects: str
    #: The default as a plain value, ``None`` if there is none.
    default: object
    #: Says the default where it depends on the machine or on another setting.
    default_doc: str | None
    doc: str
    #: A JSON schema of the value.
    schema: Mapping[str, object]


def describe() -> list[Description]:
    """Every setting, in the order in which they are declared."""
    tables = [
        *_TABLES,
        (("providers", ANY), ProviderSettings),
        (("channels", ANY), ChannelSettings),
    ]
    return [
        _description((*table, name), key) for table, kind in tables for name, key in keys_of(kind)
    ]


_TABLES: Final[list[tuple[tuple[str, ...], type]]] = [
    ((name,), kind) for name, kind in SECTIONS.items()
]


def _description(path: tuple[str, ...], key: Key) -> Description:
    return Description(
        name=".".join(path),
        env=env_name(path),
        type=key.kind.name,
        expects=key.kind.expects,
        default=None if key.default is None else key.kind.show(key.default),
        default_doc=key.default_doc,
        doc=key.doc,
        schema=key.kind.schema,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A value as it may be shown, and where it comes from."""

    name: str
    value: object
    origin: Origin


def held(settings: Settings) -> list[Held]:
    """Every value that holds, with secrets hidden."""
    return [
        Held(name=name, value=value, origin=settings.origins.get(name) or _default(settings, name))
        for name, value in _values(settings)
    ]


def _values(settings: Settings) -> Iterator[tuple[str, object]]:
    for section, kind in SECTIONS.items():
        yield from _of(section, kind, getattr(settings, section))
    yield from _options("plugins", settings.plugins.options)
    for name, provider in settings.providers.items():
        yield from _of(f"providers.{name}", ProviderSettings, provider)
    for name, channel in settings.channels.items():
        yield from _of(f"channels.{name}", ChannelSettings, channel)
        yield from _options(f"channels.{name}", channel.options)


def _of(table: str, kind: type, section: object) -> Iterator[tuple[str, object]]:
    for name, key in keys_of(kind):
        value = getattr(section, name)
        yield f"{table}.{name}", None if value is None else key.kind.show(value)


def _options(table: str, options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _options(f"{table}.{name}", cast("Mapping[str, object]", value))
        else:
            yield f"{table}.{name}", _showable(name, value)


def _showable(name: str, value: object) -> object:
    if isinstance(value, Secret):
        return REDACTED if value.literal else value.source
    if isinstance(value, list) and named_like_a_secret(name):
        return REDACTED
    plain = isinstance(value, (str, int, float, list))
    return cast("object", value) if plain else str(value)


def _default(settings: Settings, name: str) -> Origin:
    reasons = {
        "model.name": settings.model.chosen_by,
        "model.api_key": settings.model.api_key and settings.model.api_key.source,
        "session.timezone": "the machine's",
    }
    return Origin(kind="default", place=reasons.get(name) or "default")


def secrets(settings: Settings) -> Iterator[Secret]:
    """Every secret that the settings hold."""
    for section in SECTIONS:
        yield from _secrets_in(getattr(settings, section))
    for table in (*settings.providers.values(), *settings.channels.values()):
        yield from _secrets_in(table)


def secret_texts(settings: Settings) -> Iterator[str]:
    """
    What must be shown nowhere: secrets that can be read now, and passwords in addresses.

    Very short ones are left out: they are words that stand in any text.
    """
    yield from (text for text in _texts(settings) if len(text) >= _SHORTEST)


def _texts(settings: Settings) -> Iterator[str]:
    for secret in secrets(settings):
        with suppress(SettingsError):
            yield secret.reveal()
    places = (settings.model, *settings.providers.values(), *settings.channels.values())
    for url in (settings.store.url, *(place.base_url or "" for place in places)):
        yield urlsplit(url).password or ""


def _secrets_in(section: DataclassInstance) -> Iterator[Secret]:
    for field in fields(section):
        yield from _nested_secrets(getattr(section, field.name))


def _nested_secrets(value: object) -> Iterator[Secret]:
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _nested_secrets(inner)
