"""Catalog of the settings: which one a path names, with suggestions for unknown ones."""

from __future__ import annotations

import difflib
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.config.builtin_types import SECRET, SECRETS
from clew.config.fields import iter_setting_fields
from clew.config.secret import REFERENCE_FORMS, is_secret_name
from clew.config.settings import SECTIONS, ChannelSettings, ProviderSettings
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.config.fields import SettingField
    from clew.config.setting_type import SettingType

KeyPath = tuple[str, ...]

CHANNELS: Final = "channels"
PLUGINS: Final = "plugins"
PROVIDERS: Final = "providers"
CHANNEL_FIELDS: Final = dict(iter_setting_fields(ChannelSettings))
PROVIDER_FIELDS: Final = dict(iter_setting_fields(ProviderSettings))


class ResolvedSetting(Record):
    """The setting that a path resolves to."""

    path: KeyPath
    #: ``None`` for a channel's or plugin's own key.
    kind: SettingType[object] | None
    #: Set if the last part of the path was the form of a secret reference.
    form: str | None = None

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_secret(self) -> bool:
        """Return whether text of this setting is a secret."""
        return self.kind is SECRET or (self.kind is None and is_secret_name(self.path[-1]))


class SettingsCatalog:
    """The sections of the core and of the features, and the settings in them."""

    def __init__(
        self,
        feature_sections: Mapping[str, type] = MappingProxyType({}),
        feature_tables: Mapping[str, type] = MappingProxyType({}),
    ) -> None:
        """
        Combine the sections of the core with those of features.

        ``feature_sections`` are named by their table: ``schedule``, or ``plugins.NAME``. The
        ``feature_tables`` hold tables that the user names: ``agents`` has ``agents.NAME``.
        """
        self.feature_sections, self.feature_tables = feature_sections, feature_tables
        #: The fields of tables that the user names, by what they are in.
        self.named_fields: Mapping[str, Mapping[str, SettingField]] = {
            CHANNELS: CHANNEL_FIELDS,
            PROVIDERS: PROVIDER_FIELDS,
            **{table: dict(iter_setting_fields(kind)) for table, kind in feature_tables.items()},
        }
        tables = [*SECTIONS.items(), *feature_sections.items()]
        self.sections: Mapping[str, type] = {
            table: kind for table, kind in tables if "." not in table
        }
        self.fields: Mapping[KeyPath, SettingField] = {
            (*table.split("."), name): key
            for table, kind in tables
            for name, key in iter_setting_fields(kind)
        }

    def find_setting(self, path: KeyPath) -> ResolvedSetting | None:
        """Return the setting that a path names."""
        if path[-1] in REFERENCE_FORMS:
            secret = self._find_exact(path[:-1])
            if secret is not None and secret.is_secret:
                return ResolvedSetting(path=secret.path, kind=SECRET, form=path[-1])
        return self._find_exact(path)

    def _find_exact(self, path: KeyPath) -> ResolvedSetting | None:
        if not all(path):
            return None
        if key := self.find_field(path):
            return ResolvedSetting(path=_restore_hyphens(path), kind=key.kind)
        table = self.find_field(path[:-1]) if len(path) == 4 else None
        if table is not None and table.kind is SECRETS:
            return ResolvedSetting(path=path, kind=SECRET)
        if len(path) > 2 and path[0] in (CHANNELS, PLUGINS) and self._is_open(path):
            return ResolvedSetting(path=path, kind=None)
        return None

    def _is_open(self, path: KeyPath) -> bool:
        """Return whether undeclared keys are allowed at a path."""
        declared = ".".join(path[:2]) in self.feature_sections
        return not declared and not self._is_below_value(path)

    def may_be_table(self, path: KeyPath) -> bool:
        """Return whether a path may name a table without keys."""
        section, depth = path[0], len(path)
        if section in (CHANNELS, PLUGINS) and depth > 1:
            return self.find_field(path) is None and not self._is_below_value(path)
        if section in self.named_fields:
            return depth <= 2
        return depth == 1 and section in self.sections

    def find_field(self, path: KeyPath) -> SettingField | None:
        """Return the declared setting at a path."""
        if path[0] in self.named_fields:
            return self.named_fields[path[0]].get(path[2]) if len(path) == 3 else None
        return self.fields.get(path)

    def _is_below_value(self, path: KeyPath) -> bool:
        """Return whether a path continues below a value."""
        return any(self.find_field(path[:end]) for end in range(2, len(path)))

    def suggest_setting(self, path: KeyPath) -> str:
        """Return a hint at what to write instead of an unknown path."""
        section = path[0]
        if section == CHANNELS and len(path) < 3:
            return "write channels.NAME.KEY, for example channels.telegram.token"
        if section in self.named_fields and section != CHANNELS:
            return self._suggest_named(path)
        if near := self._find_nearest(path):
            return f"did you mean {near}?"
        for table in (".".join(path[:2]), section):
            if kind := self.feature_sections.get(table) or self.sections.get(table):
                known = ", ".join(name for name, _ in iter_setting_fields(kind))
                return f"[{table}] has {known}"
        return f"the sections are {', '.join(sorted([*self.sections, *self.named_fields]))}"

    def _suggest_named(self, path: KeyPath) -> str:
        known = self.named_fields[path[0]]
        near = _closest_match(path[2], list(known), cutoff=0.5) if len(path) == 3 else None
        if near is not None and path[0] != PROVIDERS:
            return f"did you mean {'.'.join([*path[:2], near])}?"
        return f"[{path[0]}.NAME] has {', '.join(known)}"

    def _find_nearest(self, path: KeyPath) -> str | None:
        if near := _closest_match(
            ".".join(path), (".".join(known) for known in self.fields), cutoff=0.75
        ):
            return near
        if path[0] not in self.sections and len(path) == 1:
            return _closest_match(path[0], [*self.sections, *self.named_fields], cutoff=0.6)
        return self._find_same_name(path[-1]) or self._find_in_section(path)

    def _find_same_name(self, name: str) -> str | None:
        """Return the setting of that name in another section, if there is only one."""
        same = [".".join(known) for known in self.fields if known[-1] == name]
        return same[0] if len(same) == 1 else None

    def _find_in_section(self, path: KeyPath) -> str | None:
        section = self.sections.get(path[0])
        if section is None or len(path) < 2:
            return None
        near = _closest_match(
            path[1], (name for name, _ in iter_setting_fields(section)), cutoff=0.5
        )
        return f"{path[0]}.{near}" if near else None


CORE_CATALOG: Final = SettingsCatalog()


def _restore_hyphens(path: KeyPath) -> KeyPath:
    """Restore the hyphens of a provider's name, which environment variables cannot hold."""
    if path[0] != PROVIDERS:
        return path
    return (path[0], path[1].replace("_", "-"), *path[2:])


def _closest_match(word: str, known: Iterator[str] | list[str], *, cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)), None)
