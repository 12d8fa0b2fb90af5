"""Making settings of what was given, with every problem told at once."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from clew.config import slots
from clew.config.kinds import Unfit, Where
from clew.config.reading import is_reference, toml_or_text
from clew.config.secret import REDACTED, Secret
from clew.config.settings import SECTIONS, ChannelSettings, Origin, ProviderSettings
from clew.config.values import SECRET

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from clew.config.slots import Path_, Slot
    from clew.config.sources import Given


class Draft:
    """Values on their way to becoming settings."""

    def __init__(self, *, home: Path, environ: Mapping[str, str]) -> None:
        self._home, self._environ = home, environ
        #: Tables that may be empty: a channel's, a provider's.
        self._tables: list[Path_] = []
        self.problems: list[str] = []
        self.values: dict[Path_, object] = {}
        self.origins: dict[str, Origin] = {}

    def take(self, given: Iterable[Given]) -> None:
        """Read all that was given, in rising precedence."""
        chosen: dict[Path_, tuple[Slot, Given]] = {}
        for one in given:
            slot = slots.find(one.path)
            if one.value == {} and slots.is_table(one.path):
                self._tables.append(one.path)
            elif slot is None:
                self._refuse_unknown(one)
            else:
                chosen[slot.path] = slot, one
        for slot, one in chosen.values():
            if any(slot.path[:end] in chosen for end in range(3, len(slot.path))):
                self.problems.append(f"{one.origin.place}: {slot.name} lies in a value")
            else:
                self._read(slot, one)

    def _refuse_unknown(self, given: Given) -> None:
        name, place = ".".join(given.path), given.origin.place
        if len(given.path) == 1 and given.path[0] in (*SECTIONS, *slots.NAMED):
            self.problems.append(f"{place}: {name} must be a table, [{name}]")
        else:
            self.problems.append(f"{place}: there is no setting {name}; {slots.advice(given.path)}")

    def _read(self, slot: Slot, given: Given) -> None:
        where = Where(key=slot.name, home=self._home, environ=self._environ)
        raw = _untexted(slot, given)
        try:
            self.values[slot.path] = _value(slot, raw, where)
        except Unfit as error:
            kind = slot.kind or SECRET
            found = "" if kind.secret else f", not {_quoted(raw)}"
            more = f" ({error})" if str(error) else ""
            self.problems.append(
                f"{given.origin.place}: {slot.name} must be {kind.expects}{found}{more}"
            )
        else:
            self.origins[slot.name] = given.origin

    def section(self, name: str) -> Any:
        """The finished section."""
        values = {path[1]: value for path, value in self._below(name, depth=2)}
        if name == slots.PLUGINS:
            values["options"] = _frozen(_tree(name, self.values, except_for={"enabled"}))
        return SECTIONS[name](**values)

    def providers(self) -> Mapping[str, ProviderSettings]:
        """The finished tables of providers, by name."""
        tree = cast("dict[str, dict[str, Any]]", _tree(slots.PROVIDERS, self.values))
        names = dict.fromkeys([*self._empty(slots.PROVIDERS), *tree])
        return MappingProxyType({name: ProviderSettings(**tree.get(name, {})) for name in names})

    def channels(self) -> Mapping[str, ChannelSettings]:
        """The finished channels, by name."""
        given = [path[1] for path in self.values if path[0] == slots.CHANNELS]
        names = dict.fromkeys([*self._empty(slots.CHANNELS), *given])
        return MappingProxyType({name: self._channel(name) for name in names})

    def _channel(self, name: str) -> ChannelSettings:
        tree = _tree(slots.CHANNELS, self.values).get(name, {})
        table = cast("dict[str, Any]", tree)
        common = {key: value for key, value in table.items() if key in slots.COMMON}
        own = {key: value for key, value in table.items() if key not in slots.COMMON}
        return ChannelSettings(**common, options=_frozen(own))

    def _empty(self, section: str) -> list[str]:
        return [path[1] for path in self._tables if path[0] == section and len(path) == 2]

    def _below(self, section: str, *, depth: int) -> Iterator[tuple[Path_, object]]:
        for path, value in self.values.items():
            if path[0] == section and len(path) == depth:
                yield path, value


def _untexted(slot: Slot, given: Given) -> object:
    """The TOML value that was given."""
    if slot.form is not None:
        return {slot.form: given.value}
    if not given.is_text:
        return given.value
    text = cast("str", given.value)
    if slot.kind is not None:
        return slot.kind.from_text(text)
    return text if slot.is_secret else toml_or_text(text)


def _value(slot: Slot, raw: object, where: Where) -> object:
    if slot.kind is not None:
        return slot.kind.read(raw, where)
    secret = is_reference(raw) or (slot.is_secret and isinstance(raw, str))
    return SECRET.read(raw, where) if secret else raw


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    _, at, after = repr(value).rpartition("@")
    text = f"'{REDACTED}{at}{after}" if at else after  # what is before it may be a password
    return text if len(text) <= 60 else f"{text[:57]}…"


def _tree(
    section: str, values: Mapping[Path_, object], *, except_for: Iterable[str] = ()
) -> dict[str, object]:
    """The values below an open section as nested tables."""
    root: dict[str, object] = {}
    for path, value in values.items():
        if path[0] != section or path[1] in except_for:
            continue
        table = root
        for name in path[1:-1]:
            table = cast("dict[str, object]", table.setdefault(name, {}))
        table[path[-1]] = value
    return root


def _frozen(table: Mapping[str, object]) -> Mapping[str, Any]:
    return MappingProxyType(
        {
            name: _frozen(cast("dict[str, object]", value)) if isinstance(value, dict) else value
            for name, value in table.items()
        }
    )


def literal_secrets(values: Mapping[Path_, object]) -> list[Path_]:
    """The settings that hold a secret itself."""
    return [path for path, value in values.items() if isinstance(value, Secret) and value.literal]
