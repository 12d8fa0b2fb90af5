"""What hostile Hermes plugins do to the process is put back, named, and outlived."""

from __future__ import annotations

import builtins
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from clew.cli.doctor_checks.features import check_features
from clew.features.hermes.deaths import MAX_DEATHS, DeathLog
from clew.plugin.loading import get_features
from tests.features.hermes_world import open_hermes, read_settings

#: What the plugin changes, as its findings say it.
CHANGES = (
    "replaced builtins.open, which was put back",
    "replaced json.dumps, which was put back",
    "replaced socket.socket.connect, which was put back",
    "replaced threading.excepthook, which was put back",
    "replaced the module json, which was put back",
    "put something of its own in place of the module antigravity, which was taken out",
    "changed the environment variable VANDAL_TARGET, which was put back",
    "changed the environment variable VANDAL_VICTIM, which was put back",
    "changed the beginning of sys.path, to whose end its own folders were moved",
    "changed the working directory, which was put back",
    "changed the umask, which was put back",
    "changed the filters of warnings, which was put back",
    "changed the handlers of the root logger, which was put back",
    "changed which levels are logged at all, which was put back",
    "changed sys.excepthook, which was put back",
    "started the thread 'vandal', which would keep the process running",
)


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANDAL_TARGET", "as it was")
    monkeypatch.setenv("VANDAL_VICTIM", "there")


def _describe_process() -> list[object]:
    return [
        builtins.open, json.dumps, json.loads, socket.socket.connect, threading.excepthook,
        sys.modules["json"], os.environ["VANDAL_TARGET"], os.environ["VANDAL_VICTIM"],
        Path.cwd(), list(warnings.filters), list(logging.getLogger().handlers), sys.excepthook,
        logging.root.manager.disable, signal.getsignal(signal.SIGTERM), sys.path[:1],
    ]  # fmt: skip


async def test_what_a_plugin_changes_in_the_process_is_put_back_and_named(tmp_path: Path) -> None:
    before = _describe_process()
    async with open_hermes(tmp_path, ["vandal"], trusted=["vandal"]) as world:
        vandal = world.module("vandal")
        try:
            assert _describe_process() == before
            (plugin,) = world.plugins
            assert set(CHANGES) <= set(plugin.watch.changes)
            assert vandal.TOOLS == ["no signals"]
            assert await world.call("smash") == "smashed"
            assert await world.say("hello") == "done: hello"
            assert "replaced json.loads, which was put back" in plugin.watch.changes
            ours = "subprocess.Popen.__init__"
            assert ours not in str(plugin.watch.changes), "Clew names the session to processes"
            assert _describe_process() == before
        finally:
            vandal.stop.set()


def test_what_an_import_of_python_itself_leaves_is_no_change() -> None:
    script = (
        "from clew.features.hermes.process_guard import ProcessGuard\n"
        "guard = ProcessGuard()\n"
        "import decimal, xml.etree.ElementTree, xml.parsers.expat, zoneinfo, multiprocessing\n"
        "assert guard.restore() == [] == guard.look_again()\n"
        "import xml.parsers.expat.errors\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_the_doctor_names_what_a_plugin_changes(tmp_path: Path) -> None:
    features = get_features(read_settings(tmp_path, ["vandal"]))
    found = [one async for one in check_features(features) if one.what == "hermes vandal"]
    sys.modules["hermes_plugins.vandal"].stop.set()
    assert "it replaced builtins.open, which was put back" in [one.detail for one in found]


def _die(folder: Path, code: str) -> None:
    """Run code in a process of its own, as that of a plugin."""
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from clew.features.hermes.deaths import DeathLog\n"
        f"log = DeathLog(Path({str(folder)!r}), 'vandal')\n"
        f"log.open()\n{code}\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)


async def test_a_plugin_that_ends_the_process_again_and_again_is_left_out_and_guards_no_more(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "hermes" / "running"
    log = DeathLog(folder, "vandal")
    _die(folder, "log.begin(); log.end(); os._exit(1)")
    _die(folder, "log.begin()")
    _die(folder, "log.begin(); sys.exit(3)")
    assert log.count() == 0, "it ended by itself, or not in code of the plugin"
    for ending in ("os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.abort()"):
        _die(folder, f"log.begin(); {ending}")
    assert log.count() == MAX_DEATHS
    async with open_hermes(tmp_path, ["vandal"], trusted=["vandal"]) as world:
        (plugin,) = world.plugins
        assert plugin.failure is not None
        assert str(log.file) in plugin.failure
        assert "a plugin that decides about tool calls is gone" in await world.call(
            "list_files", path="."
        )
        assert await world.say("hello") == "done: hello"
    log.file.unlink()
    features = get_features(read_settings(tmp_path, ["vandal"]))
    features.finish()
    features.raise_problems()
    sys.modules["hermes_plugins.vandal"].stop.set()
