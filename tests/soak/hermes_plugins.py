"""
Plugins for Hermes Agent from PyPI, as they are published, each in a turn of its own process.

They are downloaded with at most what they import at once, and reach none of their services: what is
shown is that the host loads them, what they register, and what they do to a turn. Needs PyPI. Then
plugins that do harm, each beside a turn of the real program.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

from structlog.testing import capture_logs

from clew.record import Record
from tests.soak import Table
from tests.soak._hostile_plugins import make_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.hermes.context import PluginContext
    from clew.features.hermes.loaded import LoadedPlugin

#: Seconds for the process of one plugin.
_LIMIT: Final = 120


class Package(Record, kw_only=False):
    """A package of PyPI with a plugin."""

    name: str
    version: str
    #: As it is enabled: an entry point, or the folder that is copied into ``plugins``.
    plugin: str
    folder: str = ""
    #: Without them the plugin does not register, or registers nothing; each is set to some text.
    environment: tuple[str, ...] = ()
    #: What it imports at once and Clew does not have.
    needs: tuple[str, ...] = ()
    #: The file that its own installer makes the module of the folder.
    module: str = "__init__.py"
    #: A file below the home of the user without which the plugin registers nothing.
    file: tuple[str, str] | None = None


PACKAGES: Final = (
    Package("agento11y-hermes", "0.21.0", "agento11y", needs=("agento11y", "grpcio")),
    Package("hermes-plugin-otel-tracing", "0.1.1", "otel_tracing"),
    Package("agentmetrics-hermes", "0.2.2", "agentmetrics", environment=("AGENTMETRICS_API_KEY",)),
    Package(
        "agentguard-hermes-plugin", "0.4.0", "agentguard", "agentguard_hermes", module="plugin.py"
    ),
    Package("agentguard-hermes", "0.1.0", "agentguard", "agentguard_hermes", module="plugin.py"),
    Package("acp-hermes", "0.3.2", "acp"),
    Package(
        "aarvion-guard-hermes",
        "0.1.0",
        "aarvion",
        "aarvion_guard_hermes",
        file=(".aarvion/guard.json", '{"govern": {"socket": {"path": "/nowhere", "token": "t"}}}'),
    ),
    Package("atbash-hermes-plugin", "0.10.0", "atbash-hermes-plugin"),
    Package("agentsfence", "0.2.0a9", "agentsfence", needs=("python-dotenv",)),
    Package(
        "a2a-dm-hermes",
        "0.1.5",
        "a2a-dm",
        environment=("AGORADIGEST_TOKEN", "AGORADIGEST_BOT_ID"),
        needs=("a2a-dm", "agoradm"),
    ),
    Package("agentchatme-hermes", "0.2.3", "agentchat", needs=("agentchatme",)),
    Package(
        "apify-hermes-agent-plugin",
        "0.1.5",
        "apify",
        environment=("APIFY_API_TOKEN",),
        needs=("apify-client", "apify-shared", "more-itertools", "impit", "colorama"),
    ),
    Package("hermes-session-titler", "1.2.3", "session-titler"),
    Package("hermes-plugin-pushary", "0.9.2", "pushary", environment=("PUSHARY_API_KEY",)),
    Package("hermes-memory-pgvector", "1.0.0", "pgvector", needs=("psycopg-pool",)),
    Package(
        "hermes-onebot-adapter",
        "1.9.0",
        "onebot",
        "onebot_adapter/hermes_plugin",
        environment=("ONEBOT_ADAPTER_URL", "ONEBOT_ADAPTER_TOKEN"),
    ),
    Package("hermes-irc-extras", "0.2.0", "irc_extras"),
)


class Row(Record):
    """What one plugin did."""

    loaded: str
    registers: str = ""
    called: str = ""
    turn: str = ""
    #: What it changed in the process.
    changed: str = ""
    failures: str = ""


def run() -> tuple[Table, ...]:
    return _run_published(), make_table()


def _run_published() -> Table:
    with tempfile.TemporaryDirectory() as folder:
        rows = [(one, _try(one, Path(folder) / one.name)) for one in PACKAGES]
    return Table(
        title="Hermes plugins",
        columns=(
            "plugin",
            "version",
            "loaded",
            "registers",
            "hooks called",
            "turn",
            "changed in the process",
            "its failures",
        ),
        rows=tuple(
            (
                one.name,
                one.version,
                row.loaded,
                row.registers,
                row.called,
                row.turn,
                row.changed,
                row.failures,
            )
            for one, row in rows
        ),
        passed=all(row.loaded != "broke the host" for _, row in rows)
        and sum(row.loaded == "yes" for _, row in rows) >= len(PACKAGES) - 3,
    )


def _try(package: Package, folder: Path) -> Row:
    """Run one package in a process of its own."""
    site, home = folder / "site", folder / "home"
    try:
        _download(package, site)
    except subprocess.CalledProcessError as error:
        return Row(loaded="not downloaded", failures=error.stderr.strip().splitlines()[-1][:80])
    (home / "hermes" / "plugins").mkdir(parents=True)
    if package.folder:
        target = home / "hermes" / "plugins" / package.plugin
        shutil.copytree(site / package.folder, target)
        if package.module != "__init__.py":
            shutil.copy(target / package.module, target / "__init__.py")
    if package.file is not None:
        path = folder / package.file[0]
        path.parent.mkdir()
        path.write_text(package.file[1])
    environ = {name: value for name, value in os.environ.items() if name != "HERMES_HOME"}
    environ |= {"HOME": str(folder), "PYTHONPATH": f"{site}{os.pathsep}{Path.cwd()}"}
    environ |= dict.fromkeys(package.environment, "of-the-soak")
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(home), package.plugin],
        env=environ, capture_output=True, text=True, timeout=_LIMIT, check=False,
    )  # fmt: skip
    try:
        return Row(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return Row(loaded="broke the host", failures=done.stderr.strip()[-200:])


def _download(package: Package, site: Path) -> None:
    """Download and unpack a package, without what it depends on."""
    site.mkdir(parents=True)
    wanted = (f"{package.name}=={package.version}", *package.needs)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(site))
    subprocess.run([*pip, *wanted], check=True, capture_output=True, text=True)
    for wheel in site.glob("*.whl"):
        ZipFile(wheel).extractall(site)


def main() -> None:
    """Run a turn with one plugin, and print what it did, as JSON."""
    home, plugin = Path(sys.argv[1]), sys.argv[2]
    real = sys.stdout
    sys.stdout = sys.stderr
    with capture_logs() as logs:
        row = asyncio.run(_run_turn(home, plugin))
    found = [f"{line.get('error', '')}" for line in logs if str(line["event"]).startswith("herm")]
    failures = "; ".join(dict.fromkeys(one[:80] for one in found if one))
    print(json.dumps({**row, "failures": row.get("failures") or failures[:160]}), file=real)
    real.flush()
    os._exit(0)  # threads of plugins may be in the way


async def _run_turn(home: Path, plugin: str) -> dict[str, str]:
    from clew.errors import SettingsError  # noqa: PLC0415  (only in the process of a plugin)
    from clew.features.hermes import host  # noqa: PLC0415
    from tests.features.delegation_world import do  # noqa: PLC0415
    from tests.features.hermes_world import open_hermes  # noqa: PLC0415

    loaded: list[LoadedPlugin] = []
    declare = host.declare_plugin

    def keep(registry: Any, state: Any, one: LoadedPlugin) -> None:
        loaded.append(one)
        declare(registry, state, one)

    host.declare_plugin = keep
    calls = _count_calls()
    try:
        async with open_hermes(home, [plugin], hook_timeout="5s", is_patient=False) as world:
            answer = await world.say(do(("list_files", {"path": "."})))
            await world.settle()
            await world.command("/new")
            await asyncio.sleep(1)
    except SettingsError as error:
        return {"loaded": "no", "failures": _shorten(str(error))}
    called = ", ".join(f"{name} {count}" for name, count in sorted(calls.items()))
    turn = "answered" if "not approved" not in answer else f"blocked: {_shorten(answer)}"
    return {
        "loaded": "yes",
        "registers": _count(loaded[0]),
        "called": called,
        "turn": turn,
        "changed": _shorten("; ".join(loaded[0].watch.changes)),
    }


def _count_calls() -> Counter[str]:
    """Count the calls of the callbacks that are registered from now on."""
    from clew.features.hermes.context import PluginContext  # noqa: PLC0415

    calls: Counter[str] = Counter()
    register = PluginContext.register_hook

    def count(context: PluginContext, hook_name: str, callback: Callable[..., Any]) -> None:
        @functools.wraps(callback)
        def call(*args: Any, **more: Any) -> Any:
            calls[hook_name] += 1
            return callback(*args, **more)

        register(context, hook_name, call)

    setattr(PluginContext, "register_hook", count)  # noqa: B010  (a method of another class)
    return calls


def _count(plugin: LoadedPlugin) -> str:
    """Return what a plugin registers, as numbers: ``12 tools, 4 hooks``."""
    parts = {
        "tools": plugin.tools,
        "hooks": plugin.hooks,
        "commands": plugin.commands,
        "CLI commands": plugin.cli_commands,
        "skills": plugin.skills,
    }
    counts = [f"{len(found)} {kind}" for kind, found in parts.items() if found]
    memory = ["a memory provider"] if plugin.memory_provider is not None else []
    return ", ".join([*counts, *memory])


def _shorten(text: str) -> str:
    return " ".join(text.split())[:160].replace("|", "/")


if __name__ == "__main__":
    main()
