"""All settings and their effective values: for ``config show``, schema and reference."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from clew.config.fields import env_name, iter_setting_fields
from clew.config.lookup import CORE_CATALOG
from clew.config.secret import REDACTED, Secret, is_secret_name
from clew.config.settings import SECTIONS, ChannelSettings, Origin, ProviderSettings, Settings
from clew.core.redaction import MIN_LENGTH
from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import DataclassInstance

    from clew.config.fields import SettingField
    from clew.config.lookup import SettingsCatalog

#: Placeholder for the name of a channel or a provider.
NAME_PLACEHOLDER: Final = "NAME"


class SettingDescription(Record):
    """The description of a setting."""

    #: ``section.key``.
    name: str
    #: Its environment variable.
    env: str
    #: The type of the value: ``duration``, ``text``.
    type: str
    #: Completes "must be …".
    expects: str
    #: The default as a plain value, ``None`` if there is none.
    default: object
    #: Describes a default that depends on the machine or on another setting.
    default_doc: str | None
    doc: str
    #: A JSON schema of the value.
    schema: Mapping[str, object]
    #: A change applies to a running gateway.
    live: bool


def describe_settings(catalog: SettingsCatalog = CORE_CATALOG) -> list[SettingDescription]:
    """Return every setting, in the order of declaration."""
    tables: list[tuple[tuple[str, ...], type]] = [
        *((tuple(table.split(".")), kind) for table, kind in _iter_tables(catalog)),
        (("providers", NAME_PLACEHOLDER), ProviderSettings),
        (("channels", NAME_PLACEHOLDER), ChannelSettings),
        *(((name, NAME_PLACEHOLDER), kind) for name, kind in catalog.feature_tables.items()),
    ]
    return [
        _describe_setting((*table, name), key)
        for table, kind in tables
        for name, key in iter_setting_fields(kind)
    ]


def _iter_tables(catalog: SettingsCatalog) -> Iterator[tuple[str, type]]:
    yield from SECTIONS.items()
    yield from catalog.feature_sections.items()


def _describe_setting(path: tuple[str, ...], key: SettingField) -> SettingDescription:
    return SettingDescription(
        name=".".join(path),
        env=env_name(path),
        type=key.kind.name,
        expects=key.kind.expects,
        default=None if key.default is None else key.kind.show(key.default),
        default_doc=key.default_doc,
        doc=key.doc,
        schema=key.kind.schema,
        live=key.live,
    )


class EffectiveValue(Record):
    """A value that may be shown, and its origin."""

    name: str
    value: object
    origin: Origin


def effective_values(settings: Settings) -> list[EffectiveValue]:
    """Return every effective value, with secrets hidden."""
    return [
        EffectiveValue(
            name=name,
            value=value,
            origin=settings.origins.get(name) or _default_origin(settings, name),
        )
        for name, value in _iter_values(settings)
    ]


def _iter_values(settings: Settings) -> Iterator[tuple[str, object]]:
    for section, kind in SECTIONS.items():
        yield from _section_values(section, kind, getattr(settings, section))
    for table, section in settings.sections.items():
        yield from _section_values(table, type(section), section)
    yield from _option_values("plugins", settings.plugins.options)
    for name, provider in settings.providers.items():
        yield from _section_values(f"providers.{name}", ProviderSettings, provider)
    for name, channel in settings.channels.items():
        yield from _section_values(f"channels.{name}", ChannelSettings, channel)
        yield from _option_values(f"channels.{name}", channel.options)
    for table, entry in iter_named_tables(settings):
        yield from _section_values(table, type(entry), entry)


def iter_named_tables(settings: Settings) -> Iterator[tuple[str, object]]:
    """Yield the tables of features that the user has named, as ``section.NAME``."""
    for section, entries in settings.tables.items():
        for name, entry in entries.items():
            yield f"{section}.{name}", entry


def _section_values(table: str, kind: type, section: object) -> Iterator[tuple[str, object]]:
    for name, key in iter_setting_fields(kind):
        value = getattr(section, name)
        yield f"{table}.{name}", None if value is None else key.kind.show(value)


def _option_values(table: str, options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _option_values(f"{table}.{name}", cast("Mapping[str, object]", value))
        else:
            yield f"{table}.{name}", _displayable_value(name, value)


def _displayable_value(name: str, value: object) -> object:
    if isinstance(value, Secret):
        return REDACTED if value.literal else value.source
    if isinstance(value, list) and is_secret_name(name):
        return REDACTED
    plain = isinstance(value, (str, int, float, list))
    return cast("object", value) if plain else str(value)


def _default_origin(settings: Settings, name: str) -> Origin:
    reasons = {
        "model.name": settings.model.chosen_by,
        "model.api_key": settings.model.api_key and settings.model.api_key.source,
        "session.timezone": "the machine's",
    }
    return Origin(kind="default", place=reasons.get(name) or "default")


def iter_secrets(settings: Settings) -> Iterator[tuple[str, Secret]]:
    """Yield every secret in the settings, with the name of its setting."""
    for section in SECTIONS:
        yield from _iter_section_secrets(section, getattr(settings, section))
    for name, table in settings.sections.items():
        yield from _iter_section_secrets(name, cast("DataclassInstance", table))
    for kind, tables in (("providers", settings.providers), ("channels", settings.channels)):
        for name, table in tables.items():
            yield from _iter_section_secrets(f"{kind}.{name}", table)
    for name, table in iter_named_tables(settings):
        yield from _iter_section_secrets(name, cast("DataclassInstance", table))


def iter_secret_texts(settings: Settings) -> Iterator[str]:
    """
    Yield the texts to redact: secrets that can be read now, and passwords in URLs.

    Very short ones are left out: they occur in any text.
    """
    yield from (text for text in _iter_texts(settings) if len(text) >= MIN_LENGTH)


def _iter_texts(settings: Settings) -> Iterator[str]:
    for _, secret in iter_secrets(settings):
        with suppress(SettingsError):
            yield secret.reveal()
    places = (settings.model, *settings.providers.values(), *settings.channels.values())
    for url in (settings.store.url, *(place.base_url or "" for place in places)):
        yield urlsplit(url).password or ""


def _iter_section_secrets(name: str, section: DataclassInstance) -> Iterator[tuple[str, Secret]]:
    for field in fields(section):
        # The keys of ``options`` are written in the table itself.
        where = name if field.name == "options" else f"{name}.{field.name}"
        yield from _iter_nested_secrets(where, getattr(section, field.name))


def _iter_nested_secrets(name: str, value: object) -> Iterator[tuple[str, Secret]]:
    if isinstance(value, Secret):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            yield from _iter_nested_secrets(f"{name}.{key}", inner)
    elif isinstance(value, tuple):
        for inner in cast("tuple[object, ...]", value):
            yield from _iter_nested_secrets(name, inner)
