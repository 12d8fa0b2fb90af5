"""The systems that people can move from."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from clew.foreign.homes import ForeignReader

#: Name on the command line, and its module in ``clew.foreign.readers``.
SYSTEMS: Final = {
    "hermes": "hermes",
    "openclaw": "openclaw",
    "nanobot": "nanobot",
    "claude": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "open-webui": "open_webui",
    "chatgpt": "chatgpt",
    "generic": "generic",
}


def load_reader(system: str) -> ForeignReader:
    """Return the module that reads a system; loaded now, since most are never needed."""
    return cast("ForeignReader", importlib.import_module(f"clew.foreign.readers.{SYSTEMS[system]}"))
