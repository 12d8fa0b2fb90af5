"""``clew setup`` lists what a server has, instead of asking for a name to type."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from clew.cli.output import get_outputs
from clew.cli.setup_wizard.flow import SetupCancelled, run_setup
from clew.cli.setup_wizard.model_selection import ModelSelector
from clew.cli.setup_wizard.options import SetupOptions
from clew.cli.setup_wizard.prompts import Prompter
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

OPENAI = {"object": "list", "data": [{"id": "one"}, {"id": "two"}, {"id": "text-embed"}]}
LISTS = (
    OPENAI,
    {"data": [{"id": "models/one"}, {"id": "two"}]},
    {"models": [{"name": "one"}, {"name": "two"}]},
    {"models": [{"model": "one"}, {"model": "two"}]},
    [{"id": "one"}, {"id": "two"}],
    ["one", "two"],
)


class Answering(Prompter):
    """Answers as the test says, and remembers what there was to choose from."""

    asked: list[str] = field(default_factory=list[str])
    offered: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    texts: list[str] = field(default_factory=list[str])
    choices: list[int] = field(default_factory=list[int])

    def choose_option(self, question: str, options: Sequence[str]) -> int:
        self.offered.append(tuple(options))
        return self.choices.pop(0) if self.choices else 0

    def ask_text(self, question: str, *, default: str | None = None, secret: bool = False) -> str:
        self.asked.append(question)
        return self.texts.pop(0)

    def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return False


def answering(*texts: str, choices: Sequence[int] = (), is_there: bool = True) -> Answering:
    return Answering(get_outputs()[1], is_there, texts=list(texts), choices=list(choices))


@contextmanager
def server(listed: object, *, path: str = "/v1/models", key: str = "") -> Generator[str]:
    """A server that names models at one path, perhaps only with a key; its root."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = not key or self.headers["Authorization"] == f"Bearer {key}"
            status = 404 if self.path != path else 200 if known else 401
            body = json.dumps(listed if status == 200 else {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{made.server_port}"
        finally:
            made.shutdown()


def chosen(home: Path, url: str, person: Answering) -> tuple[str, str | None]:
    found = ModelSelector(home, SetupOptions(base_url=url), {}, person).select_model()
    return found.name, found.base_url


@pytest.mark.parametrize("listed", LISTS, ids=json.dumps)
def test_every_form_of_a_list_is_read(tmp_path: Path, listed: object) -> None:
    person = answering(choices=[1])
    with server(listed) as root:
        assert chosen(tmp_path, f"{root}/v1", person) == ("openai-chat:two", f"{root}/v1")
    assert list(person.offered[0]) == ["one", "two"]
    assert person.asked == []


def test_an_address_without_its_version_is_completed(tmp_path: Path) -> None:
    with server(OPENAI) as root:
        assert chosen(tmp_path, root, answering())[1] == f"{root}/v1"
        assert chosen(tmp_path, f"{root}/", answering())[1] == f"{root}/v1"


def test_a_server_that_requires_a_key_is_asked_again_with_one(tmp_path: Path) -> None:
    with server(OPENAI, key="sk-mine") as root:
        person = answering("sk-mine")
        assert chosen(tmp_path, root, person)[0] == "openai-chat:one"
        assert list(person.offered[0]) == ["one", "two"]
        with pytest.raises(UsageError, match="--key-env"):
            chosen(tmp_path, root, answering(is_there=False))


def test_of_very_many_a_part_of_the_name_is_enough(tmp_path: Path) -> None:
    many = {"data": [{"id": f"maker/model-{number}"} for number in range(300)]}
    person = answering("nothing like it", "MODEL-29", choices=[3])
    with server(many) as root:
        assert chosen(tmp_path, root, person)[0] == "openai-chat:maker/model-292"
    assert "300 models" in person.asked[0]
    with server(many) as root:
        assert chosen(tmp_path, root, answering(""))[0] == "openai-chat:maker/model-0"


def test_names_that_all_look_mute_are_offered_all_the_same(tmp_path: Path) -> None:
    person = answering()
    with server(["qwen-image", "tts"]) as root:
        chosen(tmp_path, root, person)
    assert list(person.offered[0]) == ["qwen-image", "tts"]


def test_a_server_that_names_nothing_is_asked_for_by_name(tmp_path: Path) -> None:
    with server({"data": []}) as root:
        assert chosen(tmp_path, root, answering("typed"))[0] == "openai-chat:typed"


def test_keeping_the_settings_is_not_a_failure(tmp_path: Path) -> None:
    before = '[model]\nname = "offline"\n'
    (tmp_path / "config.toml").write_text(before, encoding="utf-8")
    with pytest.raises(SetupCancelled, match="was not changed"):
        run_setup(tmp_path, SetupOptions(model="offline"), {}, answering())
    with pytest.raises(UsageError, match="--replace"):
        run_setup(tmp_path, SetupOptions(model="offline"), {}, answering(is_there=False))
    assert (tmp_path / "config.toml").read_text(encoding="utf-8") == before
