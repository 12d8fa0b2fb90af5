"""The model that answers when none is configured, and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.config import ModelSettings, load_settings
from clew.config.defaults import choose_default_model
from clew.errors import SettingsError

HOME = Path("/nowhere")


def model(**environ: str) -> ModelSettings:
    return load_settings(home=HOME, environ=environ).model


def test_without_a_key_it_is_offline_and_says_so() -> None:
    made = model(OPENAI_API_KEY="")
    assert (made.name, made.api_key) == ("offline", None)
    assert "no model is configured" in made.chosen_by
    assert "OPENAI_API_KEY nor ANTHROPIC_API_KEY" in made.chosen_by


def test_a_provider_key_in_the_environment_chooses_its_model_and_is_used() -> None:
    made = model(OPENAI_API_KEY="sk-1")
    assert made.name.startswith("openai:")
    assert made.chosen_by == "OPENAI_API_KEY is in the environment"
    assert made.api_key is not None
    assert made.api_key.reveal() == "sk-1"


def test_a_key_whose_package_is_missing_is_reported_instead_of_chosen() -> None:
    name, why = choose_default_model({"ANTHROPIC_API_KEY": "x"}, installed=lambda _: False)
    assert name == "offline"
    assert "pip install 'clew-gateway[anthropic]'" in why


def test_a_key_whose_package_is_missing_does_not_hide_another() -> None:
    environ = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    name, _ = choose_default_model(environ, installed=lambda package: package == "anthropic")
    assert name.startswith("anthropic:")


def test_a_configured_model_says_where_and_gets_its_providers_key() -> None:
    made = model(CLEW_MODEL__NAME="anthropic:claude-sonnet-5", ANTHROPIC_API_KEY="a")
    assert made.chosen_by == "from CLEW_MODEL__NAME"
    assert made.api_key is not None
    assert made.api_key.reveal() == "a"


def test_a_configured_key_beats_the_one_in_the_environment() -> None:
    made = model(CLEW_MODEL__NAME="openai:x", CLEW_MODEL__API_KEY="mine", OPENAI_API_KEY="other")
    assert made.api_key is not None
    assert made.api_key.reveal() == "mine"


def test_a_providers_key_never_goes_to_another_server() -> None:
    made = model(
        CLEW_MODEL__NAME="openai-chat:llama3",
        CLEW_MODEL__BASE_URL="http://127.0.0.1:1/v1",
        OPENAI_API_KEY="sk-1",
    )
    assert made.api_key is None


@pytest.mark.parametrize(
    "environ",
    [{"CLEW_MODEL__BASE_URL": "http://127.0.0.1:1"}, {"CLEW_MODEL__API_KEY": "sk-1"}],
)
def test_how_to_reach_a_model_without_saying_which_is_an_error(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"model.name does not say which: set it"):
        model(OPENAI_API_KEY="sk-2", **environ)
