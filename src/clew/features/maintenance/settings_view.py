"""Settings as the operator sees them: type, value and origin; a secret is only set or not set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from clew.config.introspection import (
    NAME_PLACEHOLDER,
    SettingDescription,
    describe_settings,
    effective_values,
)
from clew.config.load import load_settings
from clew.config.secret import is_secret_name
from clew.errors import SettingsError
from clew.plugin.loading import get_features
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.config.introspection import EffectiveValue
    from clew.config.lookup import SettingsCatalog
    from clew.config.settings import Settings

SET: Final = "set"
NOT_SET: Final = "not set"
#: Types of settings whose values are secrets.
_SECRET_TYPES: Final = ("secret", "table of secrets")


def list_settings(settings: Settings) -> list[dict[str, Any]]:
    """Return every setting, as programs get it: those that exist, then those of new tables."""
    features = get_features(settings)
    descriptions = {one.name: one for one in describe_settings(features.catalog)}
    stored = _read_stored(settings, features.catalog)
    found = [
        _describe_value(one, _find_description(one.name, descriptions), stored)
        for one in effective_values(_with_live_values(settings))
    ]
    return [*found, *(_describe_template(one) for one in _iter_templates(descriptions))]


def _with_live_values(settings: Settings) -> Settings:
    """Return the settings with what was applied since the start."""
    sections = get_features(settings).sections
    return replace(settings, sections={name: one.get() for name, one in sections.items()})


def _read_stored(settings: Settings, catalog: SettingsCatalog) -> Mapping[str, object] | None:
    """Return the values that the next start finds; ``None`` if the file cannot be read."""
    try:
        found = load_settings(home=settings.home, environ=os.environ, catalog=catalog)
    except SettingsError:
        return None
    return {one.name: one.value for one in effective_values(found)}


def _find_description(
    name: str, descriptions: Mapping[str, SettingDescription]
) -> SettingDescription | None:
    """Return the description of a setting; ``None`` for a key that only a channel knows."""
    table, _, key = name.rpartition(".")
    named = f"{table.partition('.')[0]}.{NAME_PLACEHOLDER}.{key}"
    return descriptions.get(name) or descriptions.get(named)


def _describe_value(
    one: EffectiveValue,
    description: SettingDescription | None,
    stored: Mapping[str, object] | None,
) -> dict[str, Any]:
    is_secret = _is_secret(one.name, description)
    # A flag counts at the next start only if it is given again.
    is_pending = (
        stored is not None
        and one.origin.kind != "flag"
        and stored.get(one.name) != one.value
        and not (description is not None and description.live)
    )
    return {
        **_describe(one.name, description, is_secret=is_secret),
        "value": _show(one.value, is_secret=is_secret),
        "source": one.origin.kind,
        "place": one.origin.place,
        "pending": is_pending,
        "template": False,
    }


def _describe_template(one: SettingDescription) -> dict[str, Any]:
    is_secret = _is_secret(one.name, one)
    return {
        **_describe(one.name, one, is_secret=is_secret),
        "value": _show(None, is_secret=is_secret),
        "source": "default",
        "place": "default",
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
