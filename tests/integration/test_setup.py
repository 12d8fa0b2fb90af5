"""``clew setup``: what it finds, what it writes, and a sentence for everything that goes wrong."""

from __future__ import annotations

import json
import os
import resource
import socket
import stat
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli import entry_point
from clew.config.toml_edit import edit_toml
from clew.errors import UsageError
from clew.testing import Fail, FakeProvider, Html, Text
from clew.testing.provider import reply_in_sequence

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

SECRET = "sk-very-secret-1"


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.out)


class Setup:
    """Runs the command in a home of its own; nothing it prints may hold the key."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys

    def run(self, *args: str) -> Ran:
        self._capsys.readouterr()
        code = entry_point.run_command(["--home", str(self.home), "setup", *args])
        told = self._capsys.readouterr()
        assert SECRET not in told.out + told.err
        assert "Traceback" not in told.err
        return Ran(code, told.out, told.err)

    @property
    def config(self) -> dict[str, Any]:
        return tomllib.loads((self.home / "config.toml").read_text(encoding="utf-8"))


@pytest.fixture
def setup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Setup:
    for name in [name for name in os.environ if name.endswith("_API_KEY") or "CLEW" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MY_KEY", SECRET)
    return Setup(tmp_path / "home", capsys)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(models=("llama3:8b", "nomic-embed-text")) as provider:
        yield provider


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_server_on_this_machine_is_found_asked_once_and_written_down(
    setup: Setup, provider: FakeProvider
) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}/v1"
    told = setup.run("--look-at", nobody, "--look-at", provider.openai_url, "--json")
    assert told.code == 0, told.err
    assert (told.data["model"], told.data["tested"]) == ("openai-chat:llama3:8b", True)
    assert setup.config == {
        "model": {"name": "openai-chat:llama3:8b", "base_url": provider.openai_url}
    }
    assert len(provider.requests) == 1
    assert stat.S_IMODE((setup.home / "config.toml").stat().st_mode) == 0o600


def test_a_key_is_written_as_the_place_where_it_is(setup: Setup, provider: FakeProvider) -> None:
    at = ("--model", "fake-model", "--base-url", provider.openai_url, "--json")
    assert setup.run(*at, "--key-env", "MY_KEY").data["key"] == {"env": "MY_KEY"}
    assert setup.config["model"]["api_key"] == {"env": "MY_KEY"}
    (setup.home / "the-key").write_text(SECRET)
    assert setup.run(*at, "--replace", "--key-file", str(setup.home / "the-key")).code == 0
    assert setup.config["model"]["api_key"] == {"file": "the-key"}
    assert len(provider.requests) == 2


def test_a_key_in_the_environment_names_its_provider(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    nobody = f"http://127.0.0.1:{closed_port()}/v1"
    told = setup.run("--look-at", nobody, "--no-test", "--json")
    assert told.data["model"] == "openai:gpt-5-mini"
    assert told.data["key"] == {"env": "OPENAI_API_KEY"}


def test_the_other_settings_and_a_copy_stay(setup: Setup, provider: FakeProvider) -> None:
    setup.home.mkdir()
    old = (
        '# mine\n[model]\nname = "openai:gpt-4"\ntimeout = "30s"  # slow\n\n'
        "[api]\nport = 9001\n[session]\nreset = 'idle'\n"
    )
    (setup.home / "config.toml").write_text(old)
    at = ("--model", "fake-model", "--base-url", provider.openai_url)
    refused = setup.run(*at)
    assert (refused.code, provider.requests) == (2, [])
    assert "--replace" in refused.err
    told = setup.run(*at, "--replace", "--port", str(closed_port()), "--json")
    assert told.code == 0, told.err
    assert (setup.home / "config.toml.before").read_text() == old
    new = (setup.home / "config.toml").read_text()
    assert "# mine" in new
    assert setup.config["model"]["timeout"] == "30s"
    assert setup.config["session"] == {"reset": "idle"}
    assert setup.config["api"]["port"] != 9001


def test_a_file_that_cannot_be_changed_without_harm_is_left(setup: Setup) -> None:
    with pytest.raises(UsageError, match=r"model\.name"):
        edit_toml('model = { name = "x" }\n', {("model", "name"): '"offline"'})
    setup.home.mkdir()
    (setup.home / "config.toml").write_text("[model\n")
    told = setup.run("--model", "offline", "--replace")
    assert told.code == 2
    assert "line 1" in told.err
    assert "run setup again" in told.err


@pytest.mark.parametrize(
    ("reply", "args", "told"),
    [
        (Fail("authentication"), (), "requires a key"),
        (Fail("authentication"), ("--key-env", "MY_KEY"), "variable MY_KEY (401"),
        (Fail("authentication", body={"error": {"message": f"bad {SECRET}"}}), (), "--key-env"),
        (Fail("unknown_model"), (), "choose one with --model; it has llama3:8b"),
        (Fail("quota"), (), "credit"),
        (Fail("rate_limit"), (), "limits"),
        (Fail("server"), (), "try again"),
        (Html(), (), "try again"),
        (Html(status=200), (), "check --base-url"),
    ],
)
def test_a_model_that_does_not_answer_is_reported_with_what_to_do(
    setup: Setup, provider: FakeProvider, reply: Any, args: tuple[str, ...], told: str
) -> None:
    provider.script = reply_in_sequence([], default=reply)
    key = () if args or "--key-env" not in told else ("--key-env", "MY_KEY")
    at = ("--model", "fake-model", "--base-url", provider.openai_url)
    ran = setup.run(*at, *args, *key)
    assert ran.code == 1
    assert told in ran.err
    assert ran.err.startswith("asking ")
    assert ran.err.count("\nclew: ") == 1
    assert not (setup.home / "config.toml").exists()


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("--base-url", "http://127.0.0.1:{closed}/v1", "--model", "m"), 1, "start the server"),
        (("--base-url", "http://127.0.0.1:{closed}/v1"), 2, "name one with --model"),
        (("--base-url", "http://nowhere.invalid/v1", "--model", "m"), 1, "check the network"),
        (("--base-url", "localhost:1234"), 2, "begins with http://"),
        (("--look-at", "http://127.0.0.1:{closed}/v1"), 2, "clew setup --model offline"),
        (("--look-at", "http://127.0.0.1:{closed}/v1", "--model", "m"), 2, "PROVIDER:MODEL"),
        (("--look-at", "http://127.0.0.1:{closed}/v1", "--model", "no:m"), 1, "no:m"),
        (("--model", "openai:gpt-5-mini"), 1, "OPENAI_API_KEY"),
        (("--model", "openai:m", "--key-env", "NO_SUCH"), 2, "NO_SUCH, which is not set"),
        (("--model", "openai:m", "--key-file", "no/such"), 2, "cannot be read"),
        (("--key-env", "A", "--key-file", "b"), 2, "either --key-env or --key-file"),
        (("--model", "offline", "--port", "{taken}"), 1, "stop that program, or set api.port"),
    ],
)
def test_whatever_else_is_wrong_ends_in_a_sentence_that_says_what_to_do(
    setup: Setup, args: tuple[str, ...], code: int, told: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        numbers = {"closed": closed_port(), "taken": other.getsockname()[1]}
        ran = setup.run(*(arg.format(**numbers) for arg in args))
    assert ran.code == code, ran.err
    assert told in ran.err
    assert not (setup.home / "config.toml").exists()


@contextmanager
def no_room() -> Generator[None]:
    """No file of this process may grow, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_without_room_nothing_is_written_and_the_sentence_says_so(setup: Setup) -> None:
    with no_room():
        ran = setup.run("--model", "offline")
    assert ran.code == 1
    assert "make room on that disk" in ran.err
    assert [path.name for path in setup.home.iterdir() if path.is_file()] == []


def test_a_folder_that_cannot_be_made_is_named(setup: Setup) -> None:
    setup.home.write_text("a file")
    setup.home /= "inside"
    ran = setup.run("--model", "offline")
    assert ran.code == 2
    assert "name another folder with --home" in ran.err


def test_a_used_port_and_an_overriding_variable_are_reported(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv("CLEW_API__PORT", str(other.getsockname()[1]))
        monkeypatch.setenv("CLEW_MODEL__NAME", "openai:other")
        ran = setup.run("--model", "offline", "--json")
    assert ran.code == 0
    variable, port = ran.data["warnings"]
    assert "CLEW_MODEL__NAME overrides the file" in variable
    assert "clew setup --port" in port


def test_the_chat_works_that_was_set_up(
    setup: Setup, provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.script = reply_in_sequence([Text("ok"), Text("hello from the model")])
    assert setup.run("--look-at", provider.openai_url).code == 0
    assert entry_point.run_command(["--home", str(setup.home), "chat", "hi"]) == 0
    assert capsys.readouterr().out.strip() == "hello from the model"
