"""A key that nobody reads is an error in every table, wherever the settings are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.cli.entry_point import run_command
from clew.config import load_settings
from clew.gateway.channel_settings import find_channel_problems, list_channel_kinds
from clew.gateway.gateway import find_channel_factory
from clew.hooks.manager import PluginManager, load_plugins
from clew.plugin.loading import load_features

PLUGIN = """
from clew.hooks.specs import hookimpl

OPTIONS = ("threshold", "colour")


@hookimpl
def configure(options):
    pass
"""
WITHOUT_SETTINGS = "from clew.hooks.specs import hookimpl\n"
TOKEN = 'token = "123456:abc"\n'
ENABLED = "[plugins]\nenabled = ['garden', 'bare']\n"
TABLES = (
    ("[channels.telegram]\n" + TOKEN + "alow = ['42']", "channels.telegram.alow", "allow"),
    ("[channels.telegram]\n" + TOKEN + "zzz = 1", "channels.telegram.zzz", "telegram] has "),
    ("[channels.telegram]\n" + TOKEN + "retry = { most = 3 }", "channels.telegram.retry", "has"),
    ("[channels.discord]\ntoken = 'a.b.c'\ncomand = '/x'", "channels.discord.comand", "has"),
    (
        "[channels.slack]\napp_tokn = 'xapp-1'",
        "channels.slack.app_tokn",
        "channels.slack.app_token",
    ),
    ("[channels.webhook]\nsecrt = 'x'", "channels.webhook.secrt", "channels.webhook.secret"),
    ("[channels.telegrm]\n" + TOKEN, "channels.telegrm", "did you mean telegram?"),
    ("[channels.second]\n" + TOKEN, "channels.second", "installed are"),
    ("[channels.second]\nkind = 'slak'", "channels.second.kind", "did you mean slack?"),
    ("[channels.telegrm]\nenabled = false", "channels.telegrm", "did you mean telegram?"),
    ("[plugins.gardn]\nthreshold = 3", "plugins.gardn", "did you mean garden?"),
    (
        "[plugins]\nenabled = ['garden']\n[plugins.garden]\ntreshold = 3",
        "plugins.garden.treshold",
        "plugins.garden.threshold",
    ),
    (ENABLED + "[plugins.bare]\nany = 3", "plugins.bare.any", "no settings"),
    ("[tools]\nmodule = ['x']", "tools.module", "tools.modules"),
    ("[model]\nname = 'offline'\nbase_ul = 'http://x'", "model.base_ul", "model.base_url"),
    ("[providers.openai-chat]\nbase_ul = 'http://x'", "providers.openai-chat.base_ul", "base_url"),
    ("[agents.finder]\ntols = ['shell']", "agents.finder.tols", "agents.finder.tools"),
    ("[agents.finder]\ntools = ['shel']", "agents.finder.tools", "'shel'; there are "),
    ("[agents]\nlevel = 'read'", "agents.level", "[agents.NAME] has "),
    ("[sesion]\nidle = '1h'", "sesion", "session"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEW_API__PORT", "0")
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "garden.py").write_text(PLUGIN, encoding="utf-8")
    (plugins / "bare.py").write_text(WITHOUT_SETTINGS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", ["config check", "doctor --offline", "serve"])
@pytest.mark.parametrize(("text", "names", "near"), TABLES, ids=[names for _, names, _ in TABLES])
def test_it_is_named_with_the_nearest_that_there_is(
    home: Path, text: str, names: str, near: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text(text, encoding="utf-8")
    assert run_command(["--home", str(home), *command.split()]) in (1, 2)
    told = "".join(capsys.readouterr())
    assert names in told
    assert near in told
    assert "ready" not in told


def test_a_variable_is_named_as_well(home: Path) -> None:
    environ = {"CLEW_CHANNELS__TELEGRAM__ALOW": "42", "CLEW_MODEL__NAME": "offline"}
    (problem,) = find_channel_problems(load_settings(home=home, environ=environ))
    assert problem.startswith("CLEW_CHANNELS__TELEGRAM__ALOW: there is no setting")
    assert problem.endswith("did you mean channels.telegram.allow?")


def test_known_keys_are_accepted(home: Path) -> None:
    text = (
        "[channels.slack]\napp_token = 'xapp-1'\ncommand = '/c'\n[channels.second]\n"
        "kind = 'webhook'\nsecret = 'x'\nold_secret = 'y'\nlongest = 3\n[channels.telegram]\n"
        "[plugins]\nenabled = ['garden']\n[plugins.garden]\nthreshold = 3\n[plugins.bare]\nx = 1\n"
    )
    (home / "config.toml").write_text(text, encoding="utf-8")
    assert run_command(["--home", str(home), "--set", "model.name=offline", "config", "check"]) == 0


def test_every_channel_of_ours_declares_its_keys() -> None:
    features = load_features(folder=Path())
    for name in ("discord", "slack", "telegram", "webhook"):
        assert name in list_channel_kinds(features)
        factory = find_channel_factory(name, name, features)
        assert factory.__globals__["OPTIONS"] is not None  # type: ignore[attr-defined]


def test_a_plugin_without_a_list_is_handed_whatever_there_is(tmp_path: Path) -> None:
    (tmp_path / "open.py").write_text(PLUGIN.replace("OPTIONS", "_OPTIONS"), encoding="utf-8")
    load_plugins(PluginManager(), tmp_path, ["open"], {"open": {"anything": 1}})
