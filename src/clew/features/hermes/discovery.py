"""Discovery of Hermes plugins: folders with a manifest, and entry points."""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from clew.errors import SettingsError
from clew.features.hermes.manifest import FILE_NAME, Manifest, read_manifest
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.metadata import EntryPoint

#: Both are read: memory providers declare a group of their own.
GROUPS: Final = ("hermes_agent.plugins", "hermes_agent.memory_providers")
#: The package whose modules are the plugins in folders.
PACKAGE: Final = "hermes_plugins"


class FoundPlugin(Record):
    """A plugin that can be loaded."""

    name: str
    manifest: Manifest
    #: Its folder, or its entry point.
    origin: Path | EntryPoint


def find_plugin(folders: Sequence[Path], name: str) -> FoundPlugin:
    """
    Return a plugin by its name; an entry point comes before a folder.

    :raises SettingsError: if there is none, or its manifest cannot be read
    """
    for point in _list_entry_points():
        if point.name == name:
            manifest = read_manifest(
                _find_folder(point) / FILE_NAME, name=name, source="entrypoint"
            )
            return FoundPlugin(name=name, manifest=manifest, origin=point)
    for folder in _list_folders(folders):
        manifest = read_manifest(folder / FILE_NAME, name=folder.name, source="user")
        if name in (folder.name, manifest.name):
            return FoundPlugin(name=name, manifest=manifest, origin=folder)
    raise SettingsError(_explain_missing(folders, name))


def list_names(folders: Sequence[Path]) -> list[str]:
    """Return the names of all plugins that can be enabled; nothing of them is imported."""
    points = {point.name for point in _list_entry_points()}
    return sorted(points | {folder.name for folder in _list_folders(folders)})


def import_register(found: FoundPlugin) -> Callable[[Any], object]:
    """
    Import a plugin and return its function ``register``.

    :raises SettingsError: if it has none
    :raises Exception: whatever its code raises
    """
    if isinstance(found.origin, Path):
        loaded: object = _import_folder(found.origin)
    else:
        loaded = found.origin.load()
    register = loaded if _is_function(loaded) else getattr(loaded, "register", None)
    if not callable(register):
        raise SettingsError(f"hermes.enabled_plugins: {found.name!r} has no function register(ctx)")
    return cast("Callable[[Any], object]", register)


def make_slug(name: str) -> str:
    """Return the name of a plugin as the name of a module."""
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "plugin"


def _is_function(loaded: object) -> bool:
    return callable(loaded) and not isinstance(loaded, (ModuleType, type))


def _list_entry_points() -> Iterator[EntryPoint]:
    for group in GROUPS:
        yield from entry_points(group=group)


def _find_folder(point: EntryPoint) -> Path:
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(point.module)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent
    return Path("/nonexistent")


def _list_folders(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders with a manifest, also those in a folder for their category."""
    for folder in folders:
        for depth in ("*", "*/*"):
            for file in sorted(folder.glob(f"{depth}/{FILE_NAME}")):
                yield file.parent


def _explain_missing(folders: Sequence[Path], name: str) -> str:
    close = difflib.get_close_matches(name, list_names(folders), n=1, cutoff=0.5)
    meant = f"; did you mean {close[0]}?" if close else ""
    places = " or ".join(str(folder) for folder in folders)
    return (
        f"hermes.enabled_plugins: there is no plugin {name!r}: neither an entry point in the group "
        f"{GROUPS[0]} nor a folder with a {FILE_NAME} in {places}{meant}"
    )


def _import_folder(folder: Path) -> ModuleType:
    """Import a folder as a package of ``hermes_plugins``: its imports may be relative."""
    file = folder / "__init__.py"
    name = f"{PACKAGE}.{make_slug(folder.name)}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file):
        return known
    _add_package()
    for stale in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[stale]
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _add_package() -> None:
    if PACKAGE not in sys.modules:
        package = ModuleType(PACKAGE)
        package.__path__ = []
        sys.modules[PACKAGE] = package
