"""Settings as the operator sees them: type, value and origin; a secret is only set or not set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from clew.config.introspection import (
    NAME_PLACEHOLDER,
    EffectiveValue,
    SettingDescription,
    describe_settings,
    effective_values,
)
from clew.config.load import load_settings
from clew.config.secret import is_secret_name
from clew.config.settings import Origin
from clew.config.sources import read_config_file
from clew.errors import SettingsError
from clew.plugin.loading import get_features
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from clew.config.lookup import SettingsCatalog
    from clew.config.settings import Settings

SET: Final = "set"
NOT_SET: Final = "not set"
#: Types of settings whose values are secrets.
_SECRET_TYPES: Final = ("secret", "table of secrets")


class _Stored(Record):
    """The settings that the next start finds."""

    #: By name; ``None`` if the settings could not be loaded.
    values: Mapping[str, EffectiveValue] | None
    #: Settings that the file has.
    in_file: Collection[str]


def list_settings(settings: Settings) -> list[dict[str, Any]]:
    """Return every setting, as programs get it: those that exist, then those of new tables."""
    features = get_features(settings)
    descriptions = {one.name: one for one in describe_settings(features.catalog)}
    stored = _read_stored(settings, features.catalog)
    now = effective_values(_with_live_values(settings))
    found = [
        _describe_value(one, _find_description(one.name, descriptions), stored)
        for one in (*now, *_iter_new(now, stored))
    ]
    return [*found, *(_describe_template(one) for one in _iter_templates(descriptions))]


def _iter_new(now: Sequence[EffectiveValue], stored: _Stored) -> Iterator[EffectiveValue]:
    """Yield the settings of tables that are new in the file, without a value."""
    known = {one.name for one in now}
    for name in stored.values or ():
        if name not in known:
            yield EffectiveValue(
                name=name, value=None, origin=Origin(kind="default", place="default")
            )


def _with_live_values(settings: Settings) -> Settings:
    """Return the settings with what was applied since the start."""
    sections = get_features(settings).sections
    return replace(settings, sections={name: one.get() for name, one in sections.items()})


def _read_stored(settings: Settings, catalog: SettingsCatalog) -> _Stored:
    try:
        raw = read_config_file(
            settings.config_file, sections=catalog.sections.keys(), named=catalog.named_fields
        )
    except SettingsError:
        return _Stored(values=None, in_file=())
    resolved = [catalog.find_setting(one.path) for one in raw]
    in_file = {one.name for one in resolved if one is not None}
    try:
        found = load_settings(home=settings.home, environ=os.environ, catalog=catalog)
    except SettingsError:
        return _Stored(values=None, in_file=in_file)
    return _Stored(values={one.name: one for one in effective_values(found)}, in_file=in_file)


def _find_description(
    name: str, descriptions: Mapping[str, SettingDescription]
) -> SettingDescription | None:
    """Return the description of a setting; ``None`` for a key that only a channel knows."""
    table, _, key = name.rpartition(".")
    named = f"{table.partition('.')[0]}.{NAME_PLACEHOLDER}.{key}"
    return descriptions.get(name) or descriptions.get(named)


def _describe_value(
    one: EffectiveValue, description: SettingDescription | None, stored: _Stored
) -> dict[str, Any]:
    is_secret = _is_secret(one.name, description)
    is_live = description is not None and description.live
    newer = None if stored.values is None else stored.values.get(one.name)
    # A flag counts at the next start only if it is given again.
    counts = stored.values is not None and one.origin.kind != "flag"
    # What was applied since the start comes from where the next start finds it.
    origin = newer.origin if counts and is_live and newer is not None else one.origin
    newer_value = one.value if not counts else None if newer is None else newer.value
    return {
        **_describe(one.name, description, is_secret=is_secret),
        "value": _show(one.value, is_secret=is_secret),
        "next": _show(newer_value, is_secret=is_secret),
        "source": origin.kind,
        "place": origin.place,
        "in_file": one.name in stored.in_file,
        "pending": not is_live and newer_value != one.value,
        "template": False,
    }


def _describe_template(one: SettingDescription) -> dict[str, Any]:
    is_secret = _is_secret(one.name, one)
    return {
        **_describe(one.name, one, is_secret=is_secret),
        "value": _show(None, is_secret=is_secret),
        "next": _show(None, is_secret=is_secret),
        "source": "default",
        "place": "default",
        "in_file": False,
        "pending": False,
        "template": True,
    }


def _iter_templates(descriptions: Mapping[str, SettingDescription]) -> Iterator[SettingDescription]:
    """Yield the settings of tables that the user names."""
    for name, one in descriptions.items():
        if NAME_PLACEHOLDER in name.split("."):
            yield one


def _is_secret(name: str, description: SettingDescription | None) -> bool:
    if description is None:
        return is_secret_name(name.rpartition(".")[2])
    return description.type in _SECRET_TYPES


def _show(value: object, *, is_secret: bool) -> object:
    if is_secret:
        return SET if value else NOT_SET
    return value


def _describe(
    name: str, description: SettingDescription | None, *, is_secret: bool
) -> dict[str, Any]:
    schema: Mapping[str, Any] = {} if description is None else description.schema
    return {
        "name": name,
        "section": name.rpartition(".")[0],
        "type": "any" if description is None else description.type,
        "expects": "" if description is None else description.expects,
        "choices": schema.get("enum"),
        "minimum": schema.get("minimum", schema.get("exclusiveMinimum")),
        "maximum": schema.get("maximum", schema.get("exclusiveMaximum")),
        "is_list": "items" in schema,
        "secret": is_secret,
        "default": None if description is None else description.default,
        "default_note": None if description is None else description.default_doc,
        "help": "" if description is None else description.doc,
        "environment": None if description is None else description.env,
        "restart": description is None or not description.live,
    }
