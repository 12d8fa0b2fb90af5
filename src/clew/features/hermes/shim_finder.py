"""Import hook that finds the modules of Hermes Agent which plugins import."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_FOLDER: Final = Path(__file__).with_name("shims")
_PACKAGES: Final = ("hermes_cli", "agent", "tools")
#: The files by the names under which plugins import them.
_MODULES: Final = {
    "hermes_constants": "hermes_constants.py",
    "hermes_cli.config": "config.py",
    "agent.memory_provider": "memory_provider.py",
    "agent.web_search_provider": "web_search_provider.py",
    "agent.redact": "redact.py",
    "tools.registry": "registry.py",
    "tools.interrupt": "interrupt.py",
}


class ShimFinder(MetaPathFinder):
    """The last finder of all: a module that is installed comes first."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of Hermes Agent is found; ``None`` for any other."""
        if fullname in _PACKAGES:
            return spec_from_file_location(
                fullname, _FOLDER / "empty.py", submodule_search_locations=[]
            )
        if fullname in _MODULES:
            return spec_from_file_location(fullname, _FOLDER / _MODULES[fullname])
        return None


def install_shims() -> None:
    """Have imports of these modules find them from now on, in this process."""
    if not any(isinstance(one, ShimFinder) for one in sys.meta_path):
        sys.meta_path.append(ShimFinder())
