"""Secrets are read at use and never shown."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.config import Secret, load_settings
from clew.config.introspection import effective_values
from clew.config.secret import is_secret_name, redact_password
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = "sk-do-not-show-me"
ENVIRON = {"TOKEN_HERE": VALUE}


def from_env(name: str = "TOKEN_HERE") -> Secret:
    return Secret.from_env(name, key="api.token", environ=ENVIRON)


@pytest.mark.parametrize("show", [repr, str, "{}".format, "%s".__mod__, ascii])
def test_no_way_of_printing_a_secret_shows_it(show: Callable[[object], str]) -> None:
    for secret in (Secret.from_text(VALUE), from_env()):
        assert VALUE not in show(secret)
        assert VALUE not in show([secret])


def test_a_shown_secret_says_only_where_it_is_kept() -> None:
    assert repr(from_env()) == "Secret(environment variable TOKEN_HERE)"


def test_a_secret_cannot_be_pickled_or_made_json() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Secret.from_text(VALUE))
    with pytest.raises(TypeError):
        json.dumps({"token": Secret.from_text(VALUE)})


def test_copying_settings_keeps_their_secrets() -> None:
    settings = load_settings(home=Path("/nowhere"), environ={"CLEW_API__TOKEN": VALUE})
    assert copy.deepcopy(settings.api).token is settings.api.token
    assert VALUE not in repr(dataclasses.asdict(settings.api))


def test_a_secret_is_revealed_only_on_request() -> None:
    assert (Secret.from_text(VALUE).reveal(), from_env().reveal()) == (VALUE, VALUE)


def test_a_variable_is_read_at_use() -> None:
    environ: dict[str, str] = {}
    secret = Secret.from_env("LATER", key="api.token", environ=environ)
    environ["LATER"] = VALUE
    assert secret.reveal() == VALUE


@pytest.mark.parametrize("environ", [{}, {"MISSING": ""}])
def test_a_variable_that_is_not_set_is_named_with_its_setting(environ: dict[str, str]) -> None:
    secret = Secret.from_env("MISSING", key="channels.telegram.token", environ=environ)
    with pytest.raises(SettingsError, match=r"channels\.telegram\.token .* MISSING, .*not set"):
        secret.reveal()


def test_a_file_is_read_at_use_without_its_last_line_end(tmp_path: Path) -> None:
    file = tmp_path / "token"
    secret = Secret.from_file(file, key="api.token")
    file.write_text(f"{VALUE}\n", encoding="utf-8")
    assert secret.reveal() == VALUE
    file.write_text(" rotated \r\n", encoding="utf-8")
    assert secret.reveal() == " rotated "


def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name, reason in {
        "absent": "No such file",
        "empty": "which is empty",
        "bytes": "not text",
    }.items():
        with pytest.raises(SettingsError, match=f"api.token .*{name}.*{reason}"):
            Secret.from_file(tmp_path / name, key="api.token").reveal()


@pytest.mark.parametrize("name", ["token", "app_token", "webhook-secret", "PASSWORD", "api_key"])
def test_names_that_speak_of_a_secret_are_recognised(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["monkey", "tokenizer", "host", "secretary"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_a_url_is_shown_without_its_password() -> None:
    assert redact_password("postgresql://me:pw@db/x") == "postgresql://me:********@db/x"
    assert redact_password("postgresql://me@db/x") == "postgresql://me@db/x"
    assert redact_password("http://127.0.0.1:1/v1") == "http://127.0.0.1:1/v1"


def test_nothing_that_settings_show_holds_a_secret() -> None:
    environ = {
        "CLEW_MODEL__NAME": "openai-chat:x",
        "CLEW_MODEL__API_KEY": VALUE,
        "CLEW_MODEL__BASE_URL": f"http://me:{VALUE}@host/v1",
        "CLEW_STORE__URL": f"postgresql://me:{VALUE}@host/db",
        "CLEW_CHANNELS__SLACK__TOKEN": VALUE,
        "CLEW_CHANNELS__SLACK__APP_TOKEN": VALUE,
        "CLEW_CHANNELS__SLACK__DEEP__TOKENS": f'["{VALUE}"]',
        "CLEW_PLUGINS__WEATHER__API_KEY": VALUE,
    }
    settings = load_settings(home=Path("/nowhere"), environ=environ)
    assert VALUE not in repr(settings)
    assert VALUE not in str(
        [(one.name, one.value, one.origin) for one in effective_values(settings)]
    )


@pytest.mark.parametrize(
    "environ",
    [
        {"CLEW_MODEL__API_KEY": " "},
        {"CLEW_MODEL__APIKEY": VALUE},
        {"CLEW_STORE__URL": f"mysql://me:{VALUE}@host/db"},
        {"CLEW_STORE__URL": f"postgresql:/me:{VALUE}@host/db"},
    ],
)
def test_no_message_holds_a_secret(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(home=Path("/nowhere"), environ=environ)
    assert VALUE not in str(caught.value)
