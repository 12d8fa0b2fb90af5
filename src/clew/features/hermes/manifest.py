"""Manifest of a plugin: its ``plugin.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.payload import as_object
from clew.errors import SettingsError
from clew.features.hermes.values import is_object
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

FILE_NAME: Final = "plugin.yaml"
#: Kinds that Hermes knows; one that is missing or unknown counts as the first.
KINDS: Final = ("standalone", "backend", "exclusive", "platform", "model-provider")


class Manifest(Record):
    """Description that a plugin gives of itself."""

    name: str
    version: str = ""
    description: str = ""
    author: str = ""
    kind: str = KINDS[0]
    #: Names of environment variables.
    requires_env: Sequence[str] = ()
    provides_tools: Sequence[str] = ()
    provides_hooks: Sequence[str] = ()
    #: Its folder; empty if it is not known.
    path: str = ""
    source: str = ""
    key: str = ""


def read_manifest(file: Path, *, name: str, source: str) -> Manifest:
    """
    Return the manifest in a file, or the least one if there is no such file.

    :raises SettingsError: if it cannot be read
    """
    if not file.is_file():
        return Manifest(name=name, source=source, key=name, path=str(file.parent))
    import yaml  # noqa: PLC0415  (only where there are plugins)

    try:
        found: object = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(f"hermes.enabled_plugins: {file} cannot be read: {error}") from error
    given = as_object(found)
    kind = _text(given, "kind")
    return Manifest(
        name=_text(given, "name") or name,
        version=_text(given, "version"),
        description=_text(given, "description"),
        author=_text(given, "author"),
        kind=kind if kind in KINDS else KINDS[0],
        requires_env=_names(given.get("requires_env")),
        provides_tools=_names(given.get("provides_tools")),
        provides_hooks=_names(given.get("provides_hooks") or given.get("hooks")),
        path=str(file.parent),
        source=source,
        key=name,
    )


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key)
    return str(value).strip() if isinstance(value, (str, int, float)) else ""


def _names(value: object) -> tuple[str, ...]:
    """Return the names in a list of names, or of mappings that have one."""
    if not isinstance(value, list):
        return ()
    found: list[Any] = cast("list[Any]", value)
    names = (as_object(one).get("name") if is_object(one) else one for one in found)
    return tuple(str(name) for name in names if name)
