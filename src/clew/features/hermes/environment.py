"""The environment that plugins read: the folder ``HERMES_HOME`` and its ``.env``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from clew.config import find_home as find_clew_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.features.hermes.state import HostState

VARIABLE: Final = "HERMES_HOME"
#: The folder in ``CLEW_HOME``.
FOLDER: Final = "hermes"
_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")


def find_home(state: HostState) -> Path:
    """Return the folder that plugins find as ``HERMES_HOME``."""
    return state.section.get().home or find_own(state)


def list_folders(state: HostState) -> list[Path]:
    """Return the folders that hold plugins, without doubles."""
    homes = dict.fromkeys((find_home(state), find_own(state)))
    return [home / "plugins" for home in homes]


def prepare(home: Path) -> None:
    """Make the folder, name it in the environment, and add what its ``.env`` has."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.environ[VARIABLE] = str(home)
    for name, value in _read_variables(home / ".env"):
        os.environ.setdefault(name, value)


def find_own(state: HostState) -> Path:
    """Return the folder of Hermes plugins in ``CLEW_HOME``."""
    home = find_clew_home(None, os.environ) if state.settings is None else state.settings.home
    return home.absolute() / FOLDER


def _read_variables(file: Path) -> Iterator[tuple[str, str]]:
    if not file.is_file():
        return
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if (found := _LINE.fullmatch(line)) is not None:
            name, value = found.groups()
            is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            yield name, value[1:-1] if is_quoted else value
