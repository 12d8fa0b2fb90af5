"""Build settings from raw values, collecting every problem."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from clew.config import lookup
from clew.config.builtin_types import SECRET
from clew.config.parsers import is_secret_reference, toml_or_text
from clew.config.secret import REDACTED, Secret
from clew.config.setting_type import InvalidValue, ReadContext
from clew.config.settings import SECTIONS, ChannelSettings, Origin, ProviderSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from clew.config.lookup import KeyPath, ResolvedSetting, SettingsCatalog
    from clew.config.sources import RawValue

T = TypeVar("T")


class SettingsBuilder:
    """Builder of settings from raw values."""

    def __init__(
        self,
        *,
        home: Path,
        environ: Mapping[str, str],
        catalog: SettingsCatalog = lookup.CORE_CATALOG,
    ) -> None:
        self._home, self._environ, self._catalog = home, environ, catalog
        #: Empty tables: of a channel or a provider.
        self._tables: list[KeyPath] = []
        self.problems: list[str] = []
        self.values: dict[KeyPath, object] = {}
        self.origins: dict[str, Origin] = {}

    def add_values(self, given: Iterable[RawValue]) -> None:
        """Parse all raw values, given in rising precedence."""
        chosen: dict[KeyPath, tuple[ResolvedSetting, RawValue]] = {}
        for one in given:
            slot = self._catalog.find_setting(one.path)
            if one.value == {} and self._catalog.may_be_table(one.path):
                self._tables.append(one.path)
            elif slot is None:
                self._reject_unknown(one)
            else:
                chosen[slot.path] = slot, one
        for slot, one in chosen.values():
            if any(slot.path[:end] in chosen for end in range(3, len(slot.path))):
                self.problems.append(f"{one.origin.place}: {slot.name} lies in a value")
            else:
                self._parse_value(slot, one)

    def _reject_unknown(self, given: RawValue) -> None:
        name, place = ".".join(given.path), given.origin.place
        if len(given.path) == 1 and given.path[0] in (
            *self._catalog.sections,
            *self._catalog.named_fields,
        ):
            self.problems.append(f"{place}: {name} must be a table, [{name}]")
        else:
            self.problems.append(
                f"{place}: there is no setting {name}; {self._catalog.suggest_setting(given.path)}"
            )

    def _parse_value(self, slot: ResolvedSetting, given: RawValue) -> None:
        where = ReadContext(key=slot.name, home=self._home, environ=self._environ)
        raw = _to_toml_value(slot, given)
        try:
            self.values[slot.path] = _convert_value(slot, raw, where)
        except InvalidValue as error:
            kind = slot.kind or SECRET
            found = "" if kind.secret else f", not {_quote_value(raw)}"
            more = f" ({error})" if str(error) else ""
            self.problems.append(
                f"{given.origin.place}: {slot.name} must be {kind.expects}{found}{more}"
            )
        else:
            self.origins[slot.name] = given.origin

    def build_section(self, name: str) -> Any:
        """Return the finished section."""
        values = {path[1]: value for path, value in self._iter_section(name, depth=2)}
        if name == lookup.PLUGINS:
            values["options"] = _freeze_table(
                _nest_values(name, self.values, except_for={"enabled", *self._typed_plugins})
            )
        return SECTIONS[name](**values)

    @property
    def _typed_plugins(self) -> Iterator[str]:
        """Yield the names of the plugins that declare their settings."""
        for table in self._catalog.feature_sections:
            section, _, name = table.partition(".")
            if section == lookup.PLUGINS:
                yield name

    def build_feature_sections(self) -> Mapping[str, object]:
        """Return the finished sections of features, by their table."""
        return MappingProxyType(
            {
                table: kind(
                    **{
                        path[-1]: value
                        for path, value in self.values.items()
                        if path[:-1] == tuple(table.split("."))
                    }
                )
                for table, kind in self._catalog.feature_sections.items()
            }
        )

    def build_providers(self) -> Mapping[str, ProviderSettings]:
        """Return the finished provider tables, by name."""
        return self._build_named(lookup.PROVIDERS, ProviderSettings)

    def build_feature_tables(self) -> Mapping[str, Mapping[str, object]]:
        """Return the finished tables of features that the user names: by section, then name."""
        return MappingProxyType(
            {
                section: self._build_named(section, kind)
                for section, kind in self._catalog.feature_tables.items()
            }
        )

    def _build_named(self, section: str, kind: Callable[..., T]) -> Mapping[str, T]:
        tree = cast("dict[str, dict[str, Any]]", _nest_values(section, self.values))
        names = dict.fromkeys([*self._empty_tables(section), *tree])
        return MappingProxyType({name: kind(**tree.get(name, {})) for name in names})

    def build_channels(self) -> Mapping[str, ChannelSettings]:
        """Return the finished channels, by name."""
        given = [path[1] for path in self.values if path[0] == lookup.CHANNELS]
        names = dict.fromkeys([*self._empty_tables(lookup.CHANNELS), *given])
        return MappingProxyType({name: self._build_channel(name) for name in names})

    def _build_channel(self, name: str) -> ChannelSettings:
        tree = _nest_values(lookup.CHANNELS, self.values).get(name, {})
        table = cast("dict[str, Any]", tree)
        common = {key: value for key, value in table.items() if key in lookup.CHANNEL_FIELDS}
        own = {key: value for key, value in table.items() if key not in lookup.CHANNEL_FIELDS}
        return ChannelSettings(**common, options=_freeze_table(own))

    def _empty_tables(self, section: str) -> list[str]:
        return [path[1] for path in self._tables if path[0] == section and len(path) == 2]

    def _iter_section(self, section: str, *, depth: int) -> Iterator[tuple[KeyPath, object]]:
        for path, value in self.values.items():
            if path[0] == section and len(path) == depth:
                yield path, value


def _to_toml_value(slot: ResolvedSetting, given: RawValue) -> object:
    """Return the raw value as a TOML value."""
    if slot.form is not None:
        return {slot.form: given.value}
    if not given.is_text:
        return given.value
    text = cast("str", given.value)
    if slot.kind is not None:
        return slot.kind.from_text(text)
    return text if slot.is_secret else toml_or_text(text)


def _convert_value(slot: ResolvedSetting, raw: object, where: ReadContext) -> object:
    if slot.kind is not None:
        return slot.kind.read(raw, where)
    secret = is_secret_reference(raw) or (slot.is_secret and isinstance(raw, str))
    return SECRET.read(raw, where) if secret else raw


def _quote_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    _, at, after = repr(value).rpartition("@")
    text = f"'{REDACTED}{at}{after}" if at else after  # what is before it may be a password
    return text if len(text) <= 60 else f"{text[:57]}…"


def _nest_values(
    section: str, values: Mapping[KeyPath, object], *, except_for: Iterable[str] = ()
) -> dict[str, object]:
    """Return the values below an open section as nested tables."""
    root: dict[str, object] = {}
    for path, value in values.items():
        if path[0] != section or path[1] in except_for:
            continue
        table = root
        for name in path[1:-1]:
            table = cast("dict[str, object]", table.setdefault(name, {}))
        table[path[-1]] = value
    return root


def _freeze_table(table: Mapping[str, object]) -> Mapping[str, Any]:
    return MappingProxyType(
        {
            name: _freeze_table(cast("dict[str, object]", value))
            if isinstance(value, dict)
            else value
            for name, value in table.items()
        }
    )


def find_literal_secrets(values: Mapping[KeyPath, object]) -> list[KeyPath]:
    """Return the settings that hold a secret itself."""
    return [path for path, value in values.items() if isinstance(value, Secret) and value.literal]
