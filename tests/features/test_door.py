"""The door for features: what one plugin file adds appears everywhere, and goes without a trace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from httpx2 import ASGITransport, AsyncClient

from clew.api.app import create_app
from clew.api.builtin_operations import build_operations
from clew.cli.commands import COMMANDS
from clew.cli.doctor_checks.features import check_features
from clew.cli.entry_point import run_command
from clew.commands.runner import CommandRunner
from clew.config import load_settings
from clew.core.ids import IdGenerator
from clew.core.route import local_route
from clew.core.scope import scope_of
from clew.engine.feature_runner import FeatureRunner
from clew.engine.fsck import StoreChecker
from clew.errors import SettingsError
from clew.gateway.channel_settings import list_channel_kinds
from clew.plugin.declarations import CLI_COMMANDS
from clew.plugin.loading import (
    BUILT_IN,
    get_features,
    load_features,
    load_settings_with_features,
)
from clew.plugin.registry import Features
from clew.runtime import make_feature_context, open_application
from clew.store.backup.create import create_backup
from clew.store.copying.migrate_store import migrate_store
from clew.store.feature_migrations import list_feature_tables
from clew.store.opening import open_store
from clew.store.transactions.conversations import get_conversation
from clew.wire.openrpc import build_openrpc
from tests.waiting import wait_until

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.engine.fsck import FsckReport
    from clew.store.contract import Store, Tx

PLUGIN = Path(__file__).with_name("garden.py")
TALK = local_route("talk")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose settings enable the plugin."""
    folder = tmp_path / "home"
    (folder / "plugins").mkdir(parents=True)
    shutil.copy(PLUGIN, folder / "plugins")
    (folder / "config.toml").write_text(
        '[plugins]\nenabled = ["garden"]\n[plugins.garden]\nlitres = 5\n', encoding="utf-8"
    )
    return folder


def read_settings(home: Path, url: str = "sqlite:///clew.db") -> Settings:
    flags = {"model.name": "offline", "store.url": url}
    return load_settings_with_features(home=home, flags=flags, environ={})


def run(home: Path, capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run_command(["--home", str(home), *args]) == 0
    return capsys.readouterr().out


def test_commands_of_a_feature_appear_on_the_command_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "garden         Show the garden." in run(home, capsys, "--help")
    assert run(home, capsys, "garden") == "two roses\n"
    schema = json.loads(run(home, capsys, "config", "schema"))
    table = schema["properties"]["plugins"]["properties"]["garden"]
    assert (table["properties"]["litres"]["default"], table["additionalProperties"]) == (3, False)
    shown = json.loads(run(home, capsys, "config", "show", "--json"))["settings"]
    assert shown["plugins.garden.litres"]["value"] == 5


def test_its_settings_are_typed_and_come_from_every_source(home: Path) -> None:
    environ = {"CLEW_PLUGINS__GARDEN__LITRES": "7"}
    settings = load_settings_with_features(home=home, flags={}, environ=environ)
    assert (
        get_features(settings).sections["plugins.garden"].get()
        == settings.sections["plugins.garden"]
    )
    assert settings.origins["plugins.garden.litres"].kind == "environment"
    for wrong, told in (
        ({"litres": 0}, "at least 1, not 0"),
        ({"litre": 1}, "plugins.garden.litres"),
    ):
        flags = {f"plugins.garden.{key}": value for key, value in wrong.items()}
        with pytest.raises(SettingsError, match=told):
            load_settings_with_features(home=home, flags=flags, environ={})


@pytest.mark.both_databases
async def test_its_parts_run_and_nothing_is_left_of_a_deleted_conversation(
    home: Path, store_url: str
) -> None:
    settings = read_settings(home, store_url)
    features = get_features(settings)
    async with open_application(settings, role="test") as product:
        engine = product.engine
        accepted = await engine.submit("hello", target=TALK)
        await engine.wait_for_input(accepted)
        await engine.wait_until_idle()
        assert engine.tools[-1] == "water"
        context = await engine.inspect_context(accepted.conversation_id)
        assert "A plant gets 5 litres." in str(context)
        assert "It rains in the garden, after 0 visits." in str(context)
        assert await product.store.read(_count_visits) == 1
        runner = CommandRunner(engine, product.commands)
        said, listed = [
            (await runner.run_command(text, target=TALK, viewer=scope_of(TALK))).text
            for text in ("/harvest figs", "/help")
        ]
        assert said == "figs harvested"
        assert "/harvest: harvest a plant" in listed.splitlines()
        seen = cast("dict[str, int]", vars(features.plugins["garden"])["seen"])
        await wait_until(lambda: seen["service"] > 0 and seen["periodic"] > 0 and seen["hook"] > 0)
        app = create_app(engine, settings)
        async with AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as client:
            assert (await client.get("/api/garden/crop")).json() == {"roses": 2}
            assert "\nclew_garden_guards " in (await client.get("/metrics")).text
            assert "/api/garden/crop" in (await client.get("/openapi.json")).json()["paths"]
        discovered: Any = build_openrpc("1", build_operations(features).methods)
        assert "garden.crop" in [method["name"] for method in discovered["methods"]]
        backup = create_backup(store_url, home=home, file=home / "b", tell=_silent)
        assert backup.counts["garden_visit"] == 1
        await engine.delete_conversation(accepted.conversation_id, at_once=True)
        await engine.run_maintenance()
        assert await product.store.read(_count_visits) == 0
        report = await _check(product.store, settings, features)
        assert (report.is_clean, report.checked["garden_visit"], report.left_alone) == (True, 0, ())
    assert [finding.detail async for finding in check_features(features)] == ["the plants are well"]
    assert list_channel_kinds(features)["gate"].load() is print


async def test_a_check_of_its_own_is_run_by_fsck(home: Path) -> None:
    settings = read_settings(home)
    features = get_features(settings)
    async with await open_store(settings.store.url, home=home, features=features.schemas) as store:
        await store.write(lambda t: t.execute("INSERT INTO garden (id, plant) VALUES ('1', '')"))
        report = await _check(store, settings, features)
    assert [(one.check, one.decide) for one in report.findings] == [("garden-dry", "name it")]


@pytest.mark.both_databases
async def test_without_it_the_store_opens_is_checked_copied_and_deleted_from(
    home: Path, new_store_url: str
) -> None:
    settings = read_settings(home)
    store_url = settings.store.url
    async with open_application(settings, role="test") as product:
        accepted = await product.engine.submit("hello", target=TALK)
        await product.engine.wait_for_input(accepted)
        await product.engine.wait_until_idle()
    flags = {"model.name": "offline", "store.url": store_url}
    bare = load_settings(home=home, flags={**flags, "plugins.enabled": []}, environ={})
    backup = create_backup(store_url, home=home, file=home / "b", tell=_silent)
    moved = migrate_store(store_url, new_store_url, home=home, tell=_silent)
    assert (backup.counts["garden_visit"], moved.counts["garden_visit"]) == (1, 1)
    async with await open_store(new_store_url, home=home) as store:
        tables = [table.name for table in await store.read(list_feature_tables)]
        assert {"garden", "garden_visit"} < set(tables)
    async with open_application(bare, role="test") as product:
        report = await _check(product.store, bare, get_features(bare))
        assert report.is_clean
        assert report.left_alone == (("garden", "garden"), ("garden_visit", "garden"))
        await product.engine.delete_conversation(accepted.conversation_id, at_once=True)
        await product.engine.run_maintenance()
        assert await product.store.read(_count_visits) == 0


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise RuntimeError('no seeds')", "'weeds' cannot be loaded: RuntimeError: no seeds"),
        ("registry.add_channel('gate', print)", "'garden' and the feature 'weeds' both have the"),
        ("registry.add_hook('on_rain', print)", "there is no hook 'on_rain'"),
        (
            (
                "from clew.plugin import CliEntry as C;"
                " registry.add_cli(C(name='chat', module='m', attribute='a', help='h'))"
            ),
            "Clew itself and the feature 'weeds' both have the CLI command 'chat'",
        ),
        (
            (
                "from clew.plugin import Command as C; registry.add_command(C(name='new', help='h',"
                " run=print))"
            ),
            "/new is defined by clew and by the feature 'weeds'",
        ),
        ("registry.add_tool(print, effect='twice')", "'twice' is not a valid Effect"),
    ],
)
async def test_a_feature_that_cannot_be_registered_ends_the_start_with_one_sentence(
    home: Path, code: str, told: str
) -> None:
    (home / "plugins" / "weeds.py").write_text(
        f"from clew.plugin import hookimpl\n\n@hookimpl\ndef register(registry):\n    {code}\n",
        encoding="utf-8",
    )
    flags = {"model.name": "offline", "plugins.enabled": ["garden", "weeds"]}
    settings = load_settings_with_features(home=home, flags=flags, environ={})
    with pytest.raises(SettingsError, match=told) as raised:
        async with open_application(settings, role="test"):
            pass
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize("table", ["entry", "weeds2"])
async def test_it_may_not_touch_the_tables_of_others(tmp_path: Path, table: str) -> None:
    features = Features()
    features.register(
        "weeds",
        lambda registry: registry.add_migrations({"0001_x": f"CREATE TABLE {table} (id TEXT)"}),
    )
    with pytest.raises(SettingsError, match=f"the table '{table}' is not its own"):
        await open_store("sqlite:///clew.db", home=tmp_path, features=features.schemas)


async def test_a_service_that_dies_a_thousand_times_leaves_turns_alone(home: Path) -> None:
    settings = read_settings(home)
    features = get_features(settings)
    seen = cast("dict[str, int]", vars(features.plugins["garden"])["seen"])
    async with open_application(settings, role="test", own_only=True) as product:
        engine = product.engine
        ids = IdGenerator(lambda: 0)
        context = make_feature_context(settings, product.store, ids)
        async with FeatureRunner(features, context, engine.owner_id, longest_pause=0):
            await wait_until(lambda: seen["service"] > 500)
            done = await engine.wait_for_input(await engine.submit("hello", target=TALK))
            assert done.text
            await wait_until(lambda: seen["service"] > 1000)


async def test_a_disabled_feature_is_not_loaded(home: Path) -> None:
    flags = {"model.name": "offline", "features.disabled": ["titles", "garden"]}
    settings = load_settings_with_features(home=home, flags=flags, environ={})
    async with open_application(settings, role="test", own_only=True) as product:
        accepted = await product.engine.submit("hello", target=TALK)
        await product.engine.wait_for_input(accepted)
        await product.engine.wait_until_idle()
        found = await product.store.read(get_conversation, accepted.conversation_id)
        assert found.title is None
    unknown = load_features(folder=home / "plugins", disabled=["title"])
    known = ", ".join(BUILT_IN)
    assert unknown.problems == [
        f"features.disabled: there is no feature 'title'; there are {known}"
    ]


def test_the_names_of_the_commands_of_clew_are_taken() -> None:
    assert set(CLI_COMMANDS) == COMMANDS.keys()


@pytest.mark.parametrize(
    "code",
    [
        "import clew.plugin",
        (
            "from pathlib import Path; from clew.plugin.loading import load_features;"
            " load_features(folder=Path('nowhere')).raise_problems()"
        ),
    ],
    ids=["the door", "all built-in features"],
)
def test_what_every_command_loads_is_cheap_to_import(code: str) -> None:
    code = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "pydantic", "pydantic_ai", "textual", "starlette", "apsw", "psycopg", "asyncio", "mcp",
        "openai", "anthropic", "httpx2", "tree_sitter",
    }  # fmt: skip
    assert set(done.stdout.split()) & heavy == set()


def _count_visits(t: Tx) -> int:
    row = t.fetch_one("SELECT count(*) FROM garden_visit")
    assert row is not None
    return row[0]


async def _check(store: Store, settings: Settings, features: Features) -> FsckReport:
    checker = StoreChecker(
        store,
        url=settings.store.url,
        home=settings.home,
        say=lambda _: None,
        processes=1,
        features=features.schemas,
    )
    return await checker.find_problems()


def _silent(_what: str, _done: int, _total: int) -> None: ...
