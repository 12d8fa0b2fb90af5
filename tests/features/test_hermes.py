"""Plugins written for Hermes Agent run as they are: through turns, commands and the doctor."""

from __future__ import annotations

import importlib
import json
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.doctor_checks.features import check_features
from clew.cli.entry_point import run_command
from clew.errors import SettingsError
from clew.features.hermes.context import NotOffered
from clew.plugin.declarations import Command, SkillFolder
from clew.plugin.loading import get_features
from clew.plugin.tool_listing import list_tools
from tests.features.delegation_world import do
from tests.features.hermes_world import HermesWorld, open_hermes, read_settings
from tests.waiting import wait_until

if TYPE_CHECKING:
    import threading
    from pathlib import Path

IDS = {"session_id", "task_id", "turn_id"}
SCHEMA = "hermes.observer.v1"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENHOUSE_KEY", "k")


async def told(world: HermesWorld, hook: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait until the plugin was told something; what it was told."""
    diary = world.module("greenhouse.diary")
    await wait_until(lambda: len(diary.find(hook)) >= count, hook)
    return diary.find(hook)


async def test_a_plugin_acts_through_a_turn_as_it_does_in_hermes(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["greenhouse"], trusted=["greenhouse"]) as world:
        result = json.loads(await world.call("water_bed", bed="lillies"))
        assert result == {"wet": "lilies", "home": str(tmp_path / "hermes")}
        [watered] = await told(world, "water")
        assert watered["task_id"] == watered["session_id"] != ""

        [first] = await told(world, "pre_llm_call")
        assert first.keys() >= IDS
        assert (first["is_first_turn"], first["model"]) == (True, "fake-model")
        assert first["conversation_history"] == []
        assert "water_bed" in first["user_message"]
        assert "It rains, and 0 were here before." in str(world.sent[0].raw)
        assert "Plants come first." in str(world.sent[0].raw)

        [call] = await told(world, "post_tool_call")
        assert (call["tool_name"], call["args"], call["status"]) == (
            "water_bed",
            {"bed": "lilies"},
            "ok",
        )
        assert {*IDS, "tool_call_id", "duration_ms", "error_type", "api_request_id"} <= call.keys()

        [answered] = await told(world, "post_llm_call")
        assert answered["assistant_response"].startswith("told: ")
        assert [one["role"] for one in answered["conversation_history"]] == ["user", "assistant"]
        [ended] = await told(world, "on_session_end")
        assert (ended["completed"], ended["interrupted"]) == (True, False)
        assert (await told(world, "on_session_start"))[0]["session_id"] == ended["session_id"]
        requests = await told(world, "pre_api_request", 2)
        responses = await told(world, "post_api_request", 2)
        assert [one["api_request_id"] for one in requests] == [
            one["api_request_id"] for one in responses
        ]
        assert (responses[0]["provider"], responses[0]["model"]) == ("openai-chat", "fake-model")
        assert responses[0]["usage"]["total_tokens"] > 0
        assert {one["telemetry_schema_version"] for one in (call, ended, *requests)} == {SCHEMA}
        await world.say("again")
        assert "It rains, and 2 were here before." in str(world.sent[2].raw)
        await world.command("/new")
        assert (await told(world, "on_session_finalize"))[0]["session_id"] == ended["session_id"]
        assert await told(world, "on_session_reset")
        threads = {thread for _, _, thread in world.module("greenhouse.diary").told}
        assert {one for one in threads if one != "tool"} == {"hermes:greenhouse"}
        assert await world.command("/beds all") == "roses, lilies; all"


async def test_its_memory_provider_recalls_keeps_and_ends(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["greenhouse"], trusted=["greenhouse"]) as world:
        found = json.loads(await world.call("almanac_search"))
        assert found == {"found": "sow in spring"}
        assert "Remembered about " in str(world.sent[0].raw)
        assert "The almanac knows the seasons." in str(world.sent[0].raw)
        [kept] = await told(world, "sync_turn")
        assert kept["assistant"].startswith("told: ")
        diary = world.module("greenhouse.diary")
    assert diary.find("shutdown"), "it could write what it had"


async def test_its_tools_ask_and_its_block_beats_its_approval_in_any_order(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["greenhouse"]) as world:
        await world.engine.submit(do(("water_bed", {"bed": "ferns"})), target=world.home)
        question = await world.question()
        assert (question.tool, question.args) == ("water_bed", '{"bed":"ferns"}')
    async with open_hermes(tmp_path / "trusted", ["greenhouse"], trusted=["greenhouse"]) as world:
        assert (await world.call("water_bed", bed="nettles")).endswith("Nettles want no water.")
        await world.engine.submit(do(("water_bed", {"bed": "roses"})), target=world.home)
        assert "a plugin asks" in str((await world.question()).why)
        [blocked] = await told(world, "post_tool_call")
        assert (blocked["status"], blocked["error_type"]) == ("blocked", None)


@pytest.mark.unequal  # what a plugin asks is stored nowhere
async def test_it_may_ask_the_model_and_call_tools_of_hermes_plugins_only(tmp_path: Path) -> None:
    async with open_hermes(tmp_path, ["greenhouse"], trusted=["greenhouse"]) as world:
        said, parsed, inner, refused = json.loads(await world.call("think"))
        assert said == "done: Which bed is dry?"
        assert parsed == {"dry": 2}
        assert json.loads(inner)["wet"] == "ferns"
        assert "those of Clew run only in turns" in json.loads(refused)["error"]


async def test_what_raises_exits_or_hangs_breaks_no_turn(tmp_path: Path) -> None:
    async with open_hermes(
        tmp_path, ["mischief"], trusted=["mischief"], hook_timeout="300ms", is_patient=False
    ) as world:
        gate: threading.Event = world.module("mischief").gate
        try:
            assert "over a hose" in await world.call("stumble")
            offered = str(world.sent[-1].raw["tools"])
            assert not [name for name in ("no good", "array'", "unreadable") if name in offered]
            # The plugin now hangs in post_llm_call: silence is no consent.
            await wait_until(lambda: _is_blocked(world))
            assert (await world.say("hello")).startswith("done: hello")
            assert "failed: RuntimeError" in await _command_error(world, "/leave")
        finally:
            gate.set()
        await wait_until(lambda: _is_called(world, "escape", "SystemExit"))


async def _is_blocked(world: HermesWorld) -> bool:
    return "did not answer in time" in await world.call("stumble")


async def _is_called(world: HermesWorld, tool: str, answer: str) -> bool:
    return answer in await world.call(tool)


async def _command_error(world: HermesWorld, text: str) -> str:
    try:
        return await world.command(text)
    except Exception as error:  # noqa: BLE001  (the front says it)
        return str(error)


async def test_the_doctor_names_what_is_offered_and_what_is_not_and_why(tmp_path: Path) -> None:
    features = get_features(read_settings(tmp_path, ["greenhouse"]))
    found = [one async for one in check_features(features) if one.what == "hermes greenhouse"]
    details = " / ".join(one.detail for one in found)
    assert "loaded 1.2: tools water_bed" in details
    assert "open_roof is not offered: its check says that it is not available" in details
    assert "ring is not offered: GREENHOUSE_BELL is not set in the environment" in details
    assert "'list_files' is not offered: the feature 'files' and" in details
    assert "the hook 'on_cron_start' is never called" in details
    assert "register_browser_provider was accepted, and what it registers is not used" in details


async def test_its_tools_are_listed_as_its_own_and_its_skills_wait_for_trust(
    tmp_path: Path,
) -> None:
    settings = read_settings(tmp_path, ["greenhouse"])
    owned = {one.tool.name: one for one in list_tools(settings, ())}
    assert (owned["water_bed"].owner, owned["water_bed"].effect) == ("hermes-greenhouse", "once")
    [folder] = get_features(settings).values(SkillFolder)
    assert (folder.path / "pruning" / "SKILL.md").is_file()


def test_probes_find_what_there_is_and_everything_else_says_so(tmp_path: Path) -> None:
    get_features(read_settings(tmp_path, ["greenhouse"])).finish()
    ctx = sys.modules["hermes_plugins.greenhouse"].CONTEXT[-1]
    assert hasattr(ctx, "register_tool")
    assert hasattr(ctx, "register_whatever_comes")
    assert not hasattr(ctx, "register_approval_transport")
    assert getattr(ctx, "gateway", "none") == "none"
    with pytest.raises(NotOffered, match="Clew asks for approvals itself"):
        ctx.register_approval_transport("push", print)
    with pytest.raises(NotOffered, match=r"does not offer ctx\.gateway"):
        ctx.gateway()
    assert (ctx.manifest.name, ctx.manifest.kind, ctx.profile_name) == (
        "greenhouse",
        "standalone",
        "default",
    )
    with pytest.raises(Exception, match="cannot be asked before Clew runs"):
        ctx.llm.complete("now")


def _problems(home: Path, *plugins: str) -> str:
    features = get_features(read_settings(home, plugins))
    features.finish()
    with pytest.raises(SettingsError) as caught:
        features.raise_problems()
    return str(caught.value)


def _write_plugin(home: Path, name: str, code: str) -> None:
    folder = home / "hermes" / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(f"name: {name}\n")
    (folder / "__init__.py").write_text(code)


def test_a_plugin_that_cannot_be_loaded_ends_the_start_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_settings(tmp_path, ["greenhouse"])
    assert "no plugin 'greenhose'" in (said := _problems(tmp_path, "greenhose"))
    assert "did you mean greenhouse?" in said
    _write_plugin(tmp_path, "leaver", "import sys\nsys.exit(3)\n")
    assert "'leaver' cannot be loaded: RuntimeError: the plugin raised SystemExit" in _problems(
        tmp_path, "leaver"
    )
    _write_plugin(tmp_path, "nothing", "")
    assert "'nothing' has no function register(ctx)" in _problems(tmp_path, "nothing")
    monkeypatch.delenv("GREENHOUSE_KEY")
    assert "needs the environment variable GREENHOUSE_KEY" in _problems(tmp_path, "greenhouse")
    (tmp_path / "hermes" / ".env").write_text("export GREENHOUSE_KEY='found'\n")
    with monkeypatch.context() as patch:
        patch.setenv("GREENHOUSE_KEY", "")
        patch.delenv("GREENHOUSE_KEY")
        features = get_features(read_settings(tmp_path, ["greenhouse"]))
        features.finish()
        features.raise_problems()


@pytest.mark.parametrize("value", ["blooming", "blooming:register"])
def test_entry_points_may_name_a_module_or_its_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    package = tmp_path / "site"
    info = package / "blooming-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "blooming.py").write_text(
        "def register(ctx):\n    ctx.register_hook('pre_tool_call', lambda **_: None)\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blooming\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hermes_agent.plugins]\nbloom = {value}\n")
    monkeypatch.setattr(sys, "path", [str(package), *sys.path])
    importlib.invalidate_caches()
    features = get_features(read_settings(tmp_path, ["bloom"]))
    features.finish()
    features.raise_problems()
    assert [name for name, _ in features.make_hook_plugins()] == ["hermes-bloom"]
    sys.modules.pop("blooming")


def test_without_plugins_in_the_settings_nothing_of_the_host_is_imported(tmp_path: Path) -> None:
    before = {name for name in sys.modules if name.startswith("clew.features.hermes.")}
    features = get_features(read_settings(tmp_path, []))
    features.finish()
    assert not [name for name in features.hook_timeouts if name.startswith("hermes")]
    after = {name for name in sys.modules if name.startswith("clew.features.hermes.")}
    assert after == before
    assert not (tmp_path / "hermes").exists()


def test_its_commands_for_the_terminal_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read_settings(tmp_path, ["greenhouse"])
    flags = ["--home", str(tmp_path), "--set", 'hermes.enabled_plugins=["greenhouse"]', "hermes"]
    assert run_command([*flags, "greenhouse", "--bed", "roses"]) == 0
    assert capsys.readouterr().out == "tended roses\n"
    assert run_command(flags) == 0
    assert capsys.readouterr().out.startswith("greenhouse: tools water_bed")
    assert run_command([*flags, "greenhose"]) != 0
    assert "greenhose" in capsys.readouterr().err


def test_plugins_find_the_modules_of_hermes_that_mean_something_here(tmp_path: Path) -> None:
    code = """
        import os
        from agent.memory_provider import MemoryProvider
        from agent.redact import redact_sensitive_text
        from agent.web_search_provider import WebSearchProvider
        from hermes_cli.config import cfg_get, get_env_value, load_config, save_env_value
        from hermes_constants import get_hermes_home
        from tools.registry import registry, tool_error, tool_result

        def register(ctx):
            assert cfg_get(load_config(), "plugins", "seeds", "kind") == "peas"
            assert cfg_get(load_config(), "plugins", "none", default=3) == 3
            save_env_value("SEEDS_KEY", "k1")
            save_env_value("SEEDS_KEY", "k2")
            assert get_env_value("SEEDS_KEY") == os.environ.pop("SEEDS_KEY")
            assert (get_hermes_home() / ".env").read_text() == "SEEDS_KEY=k2\\n"
            assert "k-secret-9" not in redact_sensitive_text("api_key=k-secret-9", force=True)
            assert redact_sensitive_text("the key is under the mat") == "the key is under the mat"
            assert tool_error("no", code=4) == '{"error": "no", "code": 4}'
            assert (tool_result(a=1), registry.get_all_tool_names()) == ('{"a": 1}', [])
            assert issubclass(WebSearchProvider, object)
            ctx.register_memory_provider(type("Seeds", (MemoryProvider,), {}))

            try:
                import hermes_state
            except ImportError:
                ctx.register_command("seeds", lambda raw_args: "sown")
    """
    _write_plugin(tmp_path, "seeds", dedent(code))
    (tmp_path / "hermes" / "config.yaml").write_text("plugins: {seeds: {kind: peas}}\n")
    features = get_features(read_settings(tmp_path, ["seeds"]))
    features.finish()
    features.raise_problems()
    assert "seeds" in [command.name for command in features.values(Command)]
