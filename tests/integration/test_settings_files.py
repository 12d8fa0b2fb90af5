"""Settings from ``config.toml``, in order with the other sources, and the folders around it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from clew.config import Secret, Settings, ensure_home, find_home, load_settings
from clew.config.introspection import effective_values, iter_secrets
from clew.config.validation import find_problems, find_unmasked_secrets
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

posix = pytest.mark.skipif(os.name != "posix", reason="file modes")


def written(home: Path, text: str, *, mode: int = 0o600) -> Path:
    file = home / "config.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return home


def read(home: Path, text: str, **environ: str) -> Settings:
    return load_settings(home=written(home, text), environ=environ)


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_flags_come_before_the_environment_before_the_file_before_defaults(tmp_path: Path) -> None:
    written(
        tmp_path, "[api]\nport = 1\nhost = 'file'\n[lease]\nseconds = 3\n[agent]\nmax_steps = 5"
    )
    environ = {"CLEW_API__PORT": "2", "CLEW_API__HOST": "environment", "CLEW_LEASE__SECONDS": "4"}
    settings = load_settings(home=tmp_path, environ=environ, flags={"api.port": "7"})
    assert (settings.api.port, settings.api.host) == (7, "environment")
    assert (settings.lease.seconds, settings.agent.max_steps) == (4, 5)
    assert settings.compaction.threshold == 0.75
    origins = {name: settings.origins[name].kind for name in ("api.port", "api.host")}
    assert origins == {"api.port": "flag", "api.host": "environment"}
    assert settings.origins["agent.max_steps"].place == f"{tmp_path / 'config.toml'}, line 7"
    assert "compaction.threshold" not in settings.origins


def test_a_problem_names_file_and_line(tmp_path: Path) -> None:
    text = (
        "[model]\nname = 'offline'\n\ntimeoutt = 3\n[channels.telegram]\nallow = 3\n[modle]\nx = 1"
    )
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    file = tmp_path / "config.toml"
    assert sorted(caught.value.problems) == [
        f"{file}, line 4: there is no setting model.timeoutt; did you mean model.timeout?",
        f'{file}, line 6: channels.telegram.allow must be a list of ids such as ["42"], not 3',
        f"{file}, line 7: there is no setting modle; did you mean model?",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[model\n", "is not TOML: .*line 1"),
        ("model = 'x'\n", r"line 1: model must be a table, \[model\]"),
        ("channels = 3\n", r"line 1: channels must be a table, \[channels\]"),
        ("[channels]\ntelegram = 'x'\n", "line 2: .*write channels.NAME.KEY"),
        ("[[model]]\nname = 'x'\n", "line 1: model must be a table"),
        ("[model.name]\nx = 1\n", "line 1: model.name must be a model .*, not a table"),
        ("[api]\ntoken = { env = 3 }\n", "line 2: api.token must be { env ="),
        ("[api]\ntoken = { path = 'x' }\n", "line 2: api.token must be { env ="),
        ("[api]\nhost = { env = 'X' }\n", "line 2: api.host must be text, not a table"),
    ],
)
def test_a_file_of_the_wrong_form_is_refused_with_its_place(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        read(tmp_path, text)


def test_a_broken_file_does_not_hide_other_problems(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, "[", CLEW_API__PORT="abc")
    assert len(caught.value.problems) == 2


def test_files_may_begin_as_windows_begins_them(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k", encoding="utf-8-sig")
    text = '\ufeff[model]\nname = "openai-chat:a"\napi_key = { file = "key" }'
    settings = read(tmp_path, text)
    assert settings.model.api_key is not None
    assert (settings.model.name, settings.model.api_key.reveal()) == ("openai-chat:a", "k")


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(home=tmp_path, environ={})
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not valid UTF-8"):
        load_settings(home=other, environ={})


def test_empty_tables_say_nothing_but_the_name_of_a_channel(tmp_path: Path) -> None:
    settings = read(tmp_path, "[model]\n[channels.local]\n[plugins.x]\n[tools]\n")
    assert settings.channels["local"].enabled
    assert settings.plugins.options == {}
    assert read(tmp_path, "[channels]\n").channels == {}


def test_channels_and_plugins_keep_keys_of_their_own(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        [channels.slack]
        token = "xoxb-1"
        app_token = { env = "SLACK_APP" }
        max_tokens = 5
        [channels.slack.retry]
        times = [1, 2]
        password = "deep"
        [plugins]
        enabled = ["weather"]
        [plugins.weather]
        city = "Berlin"
        api_key = { file = "weather.key" }
        """,
        CLEW_CHANNELS__SLACK__RETRY__MOST="9",
        CLEW_CHANNELS__SLACK__SIGNING_SECRET="12345",
        SLACK_APP="xapp-1",
    )
    slack = settings.channels["slack"]
    assert slack.options["max_tokens"] == 5
    retry = cast("Mapping[str, object]", slack.options["retry"])
    assert (retry["times"], retry["most"]) == ([1, 2], 9)
    revealed = [slack.options["app_token"], slack.options["signing_secret"], retry["password"]]
    assert [one.reveal() for one in revealed if isinstance(one, Secret)] == [
        "xapp-1",
        "12345",
        "deep",
    ]
    assert settings.plugins.enabled == ("weather",)
    assert [name for name, _ in iter_secrets(settings)] == [
        "plugins.weather.api_key",
        "channels.slack.token",
        "channels.slack.app_token",
        "channels.slack.retry.password",
        "channels.slack.signing_secret",
    ]
    assert [one.partition(" ")[0] for one in find_unmasked_secrets(settings)] == [
        "channels.slack.retry.password",
        "channels.slack.signing_secret",
    ]
    shown = {one.name: one.value for one in effective_values(settings)}
    assert shown["channels.slack.retry.most"] == 9
    assert shown["plugins.weather.city"] == "Berlin"
    assert shown["plugins.weather.api_key"] == f"file {tmp_path / 'weather.key'}"
    assert shown["channels.slack.token"] == "********"


def test_the_environment_may_say_where_a_secret_is_kept(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n", encoding="utf-8")
    settings = read(tmp_path, "[api]\ntoken = 'old'", CLEW_API__TOKEN__FILE="key")
    assert settings.api.token is not None
    assert settings.api.token.reveal() == "from a file"


@posix
def test_a_file_with_secrets_that_others_may_read_gets_a_warning(tmp_path: Path) -> None:
    written(tmp_path, "[api]\ntoken = 'x'", mode=0o644)
    [warning] = load_settings(home=tmp_path, environ={}).warnings
    assert "holds a secret (api.token) and others may read it: chmod 600" in warning
    written(tmp_path, "[api]\ntoken = { env = 'X' }", mode=0o644)
    assert load_settings(home=tmp_path, environ={}).warnings == ()


@posix
def test_the_home_is_made_for_its_owner_alone_and_only_on_request(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "a" / "home", environ={})
    assert not settings.home.exists()
    ensure_home(settings)
    ensure_home(settings)
    made = sorted(settings.home.iterdir())
    assert [path.name for path in made] == ["logs", "memory", "plugins", "run", "skills"]
    assert {mode_of(path) for path in (settings.home, *made)} == {"0o700"}


@posix
def test_a_home_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    written(home, "[api]\ntoken = 'x'", mode=0o644)
    ensure_home(load_settings(home=home, environ={}))
    assert (mode_of(home), mode_of(home / "config.toml")) == ("0o700", "0o600")


def test_a_home_that_cannot_be_made_is_reported_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    settings = load_settings(home=tmp_path / "file" / "home", environ={})
    with pytest.raises(SettingsError, match=r"cannot be made.*--home or CLEW_HOME"):
        ensure_home(settings)


def test_the_home_is_the_one_asked_for_or_named_or_the_platforms(tmp_path: Path) -> None:
    environ = {"CLEW_HOME": str(tmp_path / "named")}
    assert find_home(tmp_path / "asked", environ) == tmp_path / "asked"
    assert find_home(None, environ) == tmp_path / "named"
    assert find_home(Path("relative"), {}) == Path.cwd() / "relative"
    assert find_home(None, {"CLEW_HOME": ""}).name == "clew"


def test_checking_finds_what_would_fail_later(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        """
        [agent]
        instructions_file = "absent.md"
        [api]
        host = "0.0.0.0"
        [channels.telegram]
        token = { env = "ABSENT_TOKEN" }
        """,
    )
    found = find_problems(settings)
    assert len(found) == 3
    for part in ("api.host", "absent.md", "ABSENT_TOKEN"):
        assert any(part in one for one in found)


def test_instructions_come_from_the_text_or_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Be kind.", encoding="utf-8")
    agent = read(tmp_path, "[agent]\ninstructions_file = 'a.md'").agent
    assert agent.read_instructions() == "Be kind."
    assert read(tmp_path, "[agent]\ninstructions = 'x'").agent.read_instructions() == "x"


def test_settings_import_no_library_for_models_or_servers() -> None:
    code = "import sys, clew.config; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"pydantic", "pydantic_ai", "starlette", "psycopg", "apsw", "click", "asyncio"}
    assert heavy & set(loaded) == set()
