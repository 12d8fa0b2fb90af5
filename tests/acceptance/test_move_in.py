"""``clew import``: moving in, as people do it."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing import FakeProvider
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import Clew, until
from tests.foreign.folders import copy_sample

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = 3


def _story(number: int, length: int) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said: list[dict[str, Any]] = []
    for step in range(length):
        said.append({"role": "user", "content": f"What is place {number} {step}?"})
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": "c", "content": f"seen {step}"})
        said.append({"role": "assistant", "content": f"It is {step}.", "model": "gpt-x"})
    return json.dumps({"id": f"place-{number}", "created_at": 1_767_600_000, "messages": said})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Thirty conversations, one of them long, and a line that is none."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    lines = [_story(number, 200 if number == 7 else 5) for number in range(30)]
    folder.joinpath("all.jsonl").write_text("\n".join([*lines, "{broken", ""]))
    return folder


def test_an_import_that_is_killed_again_and_again_takes_everything_once(
    durable: Clew, source: Path, tmp_path: Path
) -> None:
    """The store has the same bytes as after one that was left alone; again it adds nothing."""
    shown = durable.data("import", "generic", str(source), "--dry-run")
    assert (shown["conversations"], shown["messages"], shown["taken"]) == (30, 1380, None)
    assert [one["place"] for one in shown["problems"]] == ["all.jsonl, line 31"]
    assert durable.data("sessions", "list")["items"] == [], "a dry run writes nothing"
    dice = random.Random(5)
    for _ in range(KILLS):
        with durable.started("import", "generic", str(source), "--json"):
            time.sleep(dice.uniform(0.3, 1.5))
    ran = durable.run("import", "generic", str(source))
    assert ran.code == 0, ran
    again = durable.data("import", "generic", str(source))["taken"]
    assert (again["conversations"], again["entries"]) == ({"known": 30}, 0)
    other = Clew(tmp_path / "other", {"CLEW_MODEL__NAME": "offline"})
    other.ok("import", "generic", str(source))
    assert durable.ok("sessions", "export", "--all") == other.ok("sessions", "export", "--all")
    assert durable.data("fsck")["clean"]
    (found, *_) = durable.data("sessions", "search", "place 7 3")["items"]
    assert "What is place 7 3?" in str(found)


def test_what_was_taken_over_leaves_again_as_it_came(clew: Clew, source: Path) -> None:
    """As ChatML and as ShareGPT, for whoever reads those."""
    clew.ok("import", "generic", str(source))
    for form in ("chatml", "sharegpt"):
        out = source.parent / f"{form}.jsonl"
        clew.ok("export", form, str(out))
        back = Clew(source.parent / form, {"CLEW_MODEL__NAME": "offline"})
        taken = back.data("import", "generic", str(out))
        assert (taken["conversations"], taken["messages"]) == (30, 1380)
        (found, *_) = back.data("sessions", "search", "place 7 3")["items"]
        assert "What is place 7 3?" in str(found)


def test_a_folder_of_markdown_has_a_file_for_each_conversation(clew: Clew, source: Path) -> None:
    """Exporting again writes what has changed, and leaves what a person has written beside it."""
    clew.ok("import", "generic", str(source))
    vault = source.parent / "vault"
    clew.ok("export", "markdown", str(vault))
    files = sorted(vault.glob("*.md"))
    assert len(files) == 30
    text = "\n".join(file.read_text() for file in files)
    assert "What is place 7 199?" in text
    vault.joinpath("mine.md").write_text("mine")
    clew.ok("export", "markdown", str(vault))
    assert vault.joinpath("mine.md").read_text() == "mine"
    assert sorted(vault.glob("*.md")) == [*files, vault / "mine.md"] or len(files) == 30


def test_what_is_not_there_or_of_another_kind_is_said(clew: Clew, tmp_path: Path) -> None:
    ran = clew.run("import", "generic")
    assert ran.code == 2
    assert "clew import generic PATH" in ran.err
    ran = clew.run("import", "generic", str(tmp_path), "--into", "nobody")
    assert "is not a scope" in ran.err
    tmp_path.joinpath("empty").mkdir()
    ran = clew.run("import", "generic", str(tmp_path / "empty"))
    assert ran.code == 2
    assert "no .json or .jsonl file" in ran.err
    assert clew.run("import", "letters", str(tmp_path)).code == 2


def test_the_chats_of_hermes_go_on_in_their_conversations(clew: Clew, tmp_path: Path) -> None:
    """The next message on Telegram is answered with what was said there; another starts anew."""
    source = copy_sample("hermes", tmp_path)
    with FakeProvider() as provider, FakeTelegram() as telegram:
        settings = {
            "CLEW_CHANNELS__TELEGRAM__TOKEN": telegram.token,
            "CLEW_CHANNELS__TELEGRAM__BASE_URL": telegram.base_url,
            "CLEW_CHANNELS__TELEGRAM__ALLOW": "*",
        }
        program = clew.asking(provider).with_env(settings)
        taken = program.data("import", "hermes", str(source), "--people")["taken"]
        assert taken["people"]["added"] == 2
        (before,) = [
            one
            for one in program.data("sessions", "list", "--limit", "100")["items"]
            if one["routes"] == ["agent:main:telegram:dm:1007"]
        ]
        *_, last = program.data("sessions", "show", before["id"])["items"]
        origin = before["imported_from"]
        assert origin.startswith("hermes:")
        assert f"imported from {origin}" in program.ok("sessions", "show", before["id"])
        assert f"imported from: {origin}" in program.ok("chat", "-c", before["id"], "/status")
        with program.serving():
            for chat in (1007, 55):
                telegram.post_message("What did we talk about?", user=chat)
                until(lambda chat=chat: "echo:" in str(telegram.list_texts(chat)))
        shown = program.data("sessions", "show", before["id"])
        said = [one["text"] for one in shown["items"] if one["kind"] == "message"]
        assert said[before["entries"] :] == [
            "What did we talk about?",
            "echo: What did we talk about?",
        ]
        went_on, new = ((request.json or {})["messages"] for request in provider.requests[-2:])
        assert len(went_on) > len(new)
        assert last["text"] in str(went_on)
        assert last["text"] not in str(new)
