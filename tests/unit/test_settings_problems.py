"""Unknown and wrong settings are told all at once, each with its place and what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.config import load_settings
from clew.config.sources import find_line_numbers
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = Path("/nowhere")


def problems(
    flags: Mapping[str, object] | None = None, *, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings(home=HOME, flags=flags or {}, environ=environ or {})
    return caught.value.problems


@pytest.mark.parametrize(
    ("unknown", "near"),
    [
        ("model.nam", "model.name"),
        ("model.apikey", "model.api_key"),
        ("api.tokn", "api.token"),
        ("compaction.treshold", "compaction.threshold"),
        ("agent.max_step", "agent.max_steps"),
        ("modle.name", "model.name"),
        ("sessions.idle", "session.idle"),
        ("model.threshold", "compaction.threshold"),
        ("plugins.enabld", "plugins.enabled"),
    ],
)
def test_an_unknown_setting_suggests_the_intended_one(unknown: str, near: str) -> None:
    [problem] = problems({unknown: "x"})
    assert f"--set {unknown}: there is no setting {unknown}; did you mean {near}?" == problem


def test_an_unknown_setting_lists_those_of_its_section() -> None:
    [problem] = problems({"lease.qqqq": 1})
    assert problem.endswith("[lease] has seconds")


def test_an_unknown_section_lists_the_known_ones() -> None:
    [problem] = problems({"qqqq.wwww": 1})
    assert "the sections are agent, api, approvals, channels" in problem


def test_a_variable_is_reported_by_its_name() -> None:
    [problem] = problems(environ={"CLEW_MODEL__NAM": "x"})
    assert problem.startswith("CLEW_MODEL__NAM: there is no setting model.nam; did you mean")


def test_variables_without_a_section_are_not_ours_to_judge() -> None:
    environ = {"CLEW_TOKEN": "x", "CLEW_SESSION_ID": "x", "CLEW_DEBUG": "1", "OTHER__X": "1"}
    assert load_settings(home=HOME, environ=environ).warnings == ()


def test_a_variable_that_misses_an_underscore_gets_a_warning() -> None:
    [warning] = load_settings(home=HOME, environ={"CLEW_MODEL_NAME": "x"}).warnings
    assert "CLEW_MODEL_NAME is not read: model.name is CLEW_MODEL__NAME" in warning


def test_all_problems_are_reported_together() -> None:
    environ = {"CLEW_API__PORT": "abc", "CLEW_LEASE__SECONDS": "0"}
    found = problems({"model.nam": "x", "session.idle": "soon"}, environ=environ)
    assert len(found) == 4
    error = SettingsError(*found)
    assert str(error).startswith("the settings are wrong:\n  - ")
    assert all(problem in str(error) for problem in found)


def test_a_value_that_a_stronger_source_replaces_is_not_judged() -> None:
    settings = load_settings(home=HOME, flags={"api.port": 1}, environ={"CLEW_API__PORT": "abc"})
    assert settings.api.port == 1


@pytest.mark.parametrize("unknown", ["model.api_key.path", "model.name.env", "api.token.env.x"])
def test_only_a_secret_has_forms_and_only_two(unknown: str) -> None:
    [problem] = problems({unknown: "x"})
    assert f"there is no setting {unknown}" in problem


def test_a_channel_needs_a_name_and_a_key() -> None:
    for unknown in ("channels.telegram", "channels", "channels..token"):
        [problem] = problems({unknown: "x"})
        assert problem.startswith(f"--set {unknown}: ")


def test_a_value_cannot_lie_within_another() -> None:
    found = problems(environ={"CLEW_CHANNELS__X__A": "1", "CLEW_CHANNELS__X__A__B": "2"})
    assert found == ("CLEW_CHANNELS__X__A__B: channels.x.a.b lies in a value",)


def test_settings_that_contradict_each_other_are_refused() -> None:
    [problem] = problems({"agent.instructions": "x", "agent.instructions_file": "y"})
    assert "are both set: keep one" in problem
    [problem] = problems({"compaction.keep_recent": 0.8})
    assert "compaction.keep_recent (0.8) must be less than compaction.threshold (0.75)" in problem


def test_an_api_beyond_loopback_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.2", "myhost"):
        exposed = load_settings(home=HOME, flags={"api.host": host}, environ={}).api
        with pytest.raises(SettingsError, match=r"there is no api\.token"):
            exposed.require_token_beyond_loopback()
    for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"):
        load_settings(
            home=HOME, flags={"api.host": host}, environ={}
        ).api.require_token_beyond_loopback()
    guarded = {"api.host": "0.0.0.0", "api.token": "x"}
    load_settings(home=HOME, flags=guarded, environ={}).api.require_token_beyond_loopback()


def test_lines_are_found_in_any_form_of_table() -> None:
    text = '''# a comment with key = 1
[model]
name = "x"
"base_url" = "y"
[ channels . telegram ]  # the bot
allow = [
  "1",
]
[agent]
instructions = """
name = "not a key"
[not.a.table]
"""
max_steps = 1
api.port = 2
'''
    assert find_line_numbers(text) == {
        ("model",): 2,
        ("model", "name"): 3,
        ("model", "base_url"): 4,
        ("channels", "telegram"): 5,
        ("channels", "telegram", "allow"): 6,
        ("agent",): 9,
        ("agent", "instructions"): 10,
        ("agent", "max_steps"): 14,
        ("agent", "api", "port"): 15,
    }
