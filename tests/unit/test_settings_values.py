"""Formats of the values of settings, and the errors for invalid ones."""

from __future__ import annotations

from datetime import time, timedelta
from pathlib import Path

import pytest

from clew.config import Settings, load_settings
from clew.core.double_text import AUTO, DoubleText
from clew.errors import SettingsError

HOME = Path("/nowhere")


def with_flags(**flags: object) -> Settings:
    """Settings with ``section__key`` set to TOML values."""
    return load_settings(
        home=HOME,
        flags={name.replace("__", "."): value for name, value in flags.items()},
        environ={},
    )


def with_env(**environ: str) -> Settings:
    """Settings with ``SECTION__KEY`` set in the environment."""
    return load_settings(
        home=HOME, environ={f"CLEW_{name}": value for name, value in environ.items()}
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("120s", timedelta(seconds=120)),
        ("24h", timedelta(hours=24)),
        ("15m", timedelta(minutes=15)),
        ("7d", timedelta(days=7)),
        ("500ms", timedelta(milliseconds=500)),
        ("1.5 h", timedelta(minutes=90)),
        ("90", timedelta(seconds=90)),
        (90, timedelta(seconds=90)),
        (0.25, timedelta(seconds=0.25)),
    ],
)
def test_a_duration_has_a_unit_or_counts_seconds(written: object, meant: timedelta) -> None:
    assert with_flags(session__idle=written).session.idle == meant


@pytest.mark.parametrize(
    "written", ["soon", "-5s", "5 weeks", "0s", 0, -1, True, "", [], "9" * 20 + "d"]
)
def test_another_duration_is_refused_with_an_example(written: object) -> None:
    with pytest.raises(SettingsError, match=r'session\.idle must be a duration such as "90s"'):
        with_flags(session__idle=written)


def test_a_time_of_day_is_written_with_hours_and_minutes() -> None:
    assert with_flags(session__at="23:59").session.at == time(23, 59)
    assert with_flags(session__at=time(5)).session.at == time(5)
    for wrong in ("24:00", "4:00", "noon", 4):
        with pytest.raises(SettingsError, match='time of day such as "04:00"'):
            with_flags(session__at=wrong)


def test_a_time_zone_must_exist() -> None:
    assert with_flags(session__timezone="Europe/Berlin").session.timezone == "Europe/Berlin"
    for wrong in ("Europe/Berln", "../etc/passwd", "", 3):
        with pytest.raises(SettingsError, match=r"session\.timezone must be a time zone"):
            with_flags(session__timezone=wrong)


def test_a_whole_number_keeps_to_its_limits() -> None:
    assert with_flags(api__port=65535).api.port == 65535
    assert with_env(API__PORT="0").api.port == 0
    for wrong in (65536, -1, 1.5, "abc", True, "1.5"):
        with pytest.raises(
            SettingsError, match=r"api\.port must be a whole number from 0 to 65535"
        ):
            with_flags(api__port=wrong)


def test_a_share_lies_between_nothing_and_all() -> None:
    assert with_env(COMPACTION__THRESHOLD="0.5").compaction.threshold == 0.5
    for wrong in (0, 1, 75, "75%", True):
        with pytest.raises(SettingsError, match="must be a number between 0 and 1"):
            with_flags(compaction__threshold=wrong)


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("NO", False), ("1", True)])
def test_a_flag_has_several_spellings_in_the_environment(text: str, meant: bool) -> None:
    assert with_env(COMPACTION__ENABLED=text).compaction.enabled is meant


def test_other_flags_are_refused() -> None:
    for wrong in ("perhaps", 1):
        with pytest.raises(SettingsError, match="must be true or false, not"):
            with_flags(compaction__enabled=wrong)


@pytest.mark.parametrize("text", ["a:x,b:y", " a:x , b:y ", '["a:x", "b:y"]'])
def test_a_list_is_written_with_commas_or_brackets_in_the_environment(text: str) -> None:
    assert with_env(MODEL__FALLBACK=text).model.fallback == ("a:x", "b:y")


def test_a_broken_list_is_refused() -> None:
    for wrong in ("[oops", [1], "a:x,b", {"a": 1}):
        with pytest.raises(SettingsError, match=r"model\.fallback must be a list of models"):
            with_flags(model__fallback=wrong)


def test_user_ids_may_be_written_as_numbers() -> None:
    settings = with_flags(channels__telegram__allow=[42, "*", "@me"])
    assert settings.channels["telegram"].allow == ("42", "*", "@me")
    assert with_env(CHANNELS__TELEGRAM__ALLOW="42,43").channels["telegram"].allow == ("42", "43")
    with pytest.raises(SettingsError, match="allow must be a list of ids"):
        with_flags(channels__telegram__allow=[True])


@pytest.mark.parametrize("name", ["offline", "openai-chat:llama3", "gateway/openai:gpt-5", "a:b:c"])
def test_a_model_names_its_provider(name: str) -> None:
    assert with_flags(model__name=name).model.name == name


@pytest.mark.parametrize("name", ["gpt-5", "openai:", ":x", "", "openai: x"])
def test_a_model_without_its_provider_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="PROVIDER:MODEL"):
        with_flags(model__name=name)


def test_a_store_is_sqlite_or_postgresql() -> None:
    assert with_flags(store__url="postgresql://me@db/x").store.url == "postgresql://me@db/x"
    with pytest.raises(SettingsError, match="sqlite:///FILE or postgresql://"):
        with_flags(store__url="clew.db")


def test_a_choice_lists_its_options() -> None:
    with pytest.raises(SettingsError, match="one of none, idle, daily, both, not 'weekly'"):
        with_flags(session__reset="weekly")


def test_the_rules_for_double_text_are_those_that_there_are() -> None:
    for rule in [AUTO, *(rule.value for rule in DoubleText)]:
        assert with_flags(session__double_text=rule).session.double_text == rule
    with pytest.raises(SettingsError) as caught:
        with_flags(session__double_text="x")
    assert str(caught.value).count(",") == len(DoubleText) + 1


def test_paths_are_relative_to_the_home() -> None:
    assert with_flags(agent__instructions_file="a.md").agent.instructions_file == HOME / "a.md"
    absolute = with_flags(agent__instructions_file="/etc/a.md")
    assert absolute.agent.instructions_file == Path("/etc/a.md")


def test_a_python_object_is_a_module_and_a_name() -> None:
    assert with_flags(agent__object="pack.agents:agent").agent.object == "pack.agents:agent"
    with pytest.raises(SettingsError, match="Python object such as"):
        with_flags(agent__object="pack.agents")


def test_a_long_value_is_quoted_in_part() -> None:
    with pytest.raises(SettingsError) as caught:
        with_flags(session__reset="x" * 500)
    assert len(str(caught.value)) < 200
