"""Discovery of plugins: entry points of installed packages, and files in a folder."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from types import ModuleType

ENTRY_POINT_GROUP = "clew.plugins"


def load_plugin_object(folder: Path, name: str) -> object:
    """
    Load a plugin by name.

    :raises SettingsError: if there is no such plugin
    """
    found = find_plugin(folder, name)
    return _import_file(found, name) if isinstance(found, Path) else found.load()


def find_plugin(folder: Path, name: str) -> EntryPoint | Path:
    """
    Return the entry point or the file of a plugin.

    :raises SettingsError: if there is no such plugin
    """
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name == name:
            return point
    for path in (folder / f"{name}.py", folder / name / "__init__.py"):
        if path.is_file():
            return path
    known = [point.name for point in entry_points(group=ENTRY_POINT_GROUP)]
    known += [path.stem for path in folder.glob("*.py")]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise SettingsError(
        f"plugins.enabled: there is no plugin {name!r}: neither an installed package offers it "
        f"nor is there a file {name}.py in {folder}{meant}"
    )


def _import_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"clew_plugins.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
