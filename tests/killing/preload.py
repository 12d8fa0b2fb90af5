"""Imports of the process from which the others are forked: all that a program needs, no thread."""

from __future__ import annotations

import gc
import io
import os
import sys
import tempfile
import threading
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pkgutil import walk_packages

# Imported by name when the first loop runs.
import anyio.from_thread  # noqa: F401  # pyright: ignore[reportUnusedImport]

import clew.acp
import clew.api
import clew.cli
import clew.features
import clew.gateway
import clew.tui
from clew.cli.entry_point import run_command
from clew.testing import FakeProvider
from tests import tool_schemas
from tests.channels import serving
from tests.features import killed_tasks
from tests.killing import child, gateways

__all__ = ["child", "gateways", "killed_tasks", "serving"]

#: They look at the terminal as they are imported, and there is none yet.
_OF_A_TERMINAL = {"clew.cli.line_chat", "clew.cli.line_editor"}

for package in (clew.acp, clew.api, clew.cli, clew.features, clew.gateway, clew.tui):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        if module.name not in _OF_A_TERMINAL:
            import_module(module.name)
assert "readline" not in sys.modules


def _take_turn() -> None:
    """Let the first turn make what is made once in a process."""
    tool_schemas.keep()
    settings = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("CLEW_")}
    with (
        tempfile.TemporaryDirectory() as home,
        FakeProvider() as provider,
        redirect_stdout(io.StringIO()),
        suppress(SystemExit),
    ):
        model = {"name": "openai-chat:fake-model", "base_url": provider.openai_url}
        flags = [part for name in model for part in ("--set", f"model.{name}={model[name]}")]
        run_command(["--home", home, *flags, "chat", "hello"])
    os.environ.update(settings)
    assert threading.active_count() == 1, threading.enumerate()


_take_turn()
# A child never frees these objects: its collector need not visit, and so copy, them.
gc.collect()
gc.freeze()
