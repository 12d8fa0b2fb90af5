"""``clew setup`` as a person meets it: questions on a terminal, and a chat in the end."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from clew.testing import Fail, FakeProvider, Text
from clew.testing.provider import reply_in_sequence
from tests.acceptance.program import Clew
from tests.acceptance.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


def test_a_person_chooses_types_a_key_and_is_in_a_chat(tmp_path: Path) -> None:
    refused = Fail("authentication")
    with (
        FakeProvider(reply_in_sequence([refused, Text("ok"), Text("here I am")])) as provider,
        Terminal(
            Clew(tmp_path), "setup", "--base-url", provider.openai_url, "--model", "fake-model"
        ) as terminal,
    ):
        terminal.see("requires a key")
        terminal.see("Number")
        terminal.type("1\n")
        terminal.see("not shown")
        terminal.type("sk-typed\n")
        terminal.see("fake-model answers")
        terminal.see("Type a message")
        terminal.type("hello\r")
        terminal.see("here I am")
        terminal.type("\x11")
        assert terminal.ended() == 0
        assert "sk-typed" not in terminal.screen
    assert (tmp_path / "keys" / "model").read_text() == "sk-typed\n"
    assert stat.S_IMODE((tmp_path / "keys" / "model").stat().st_mode) == 0o600
    assert "sk-typed" not in (tmp_path / "config.toml").read_text()


def test_declining_is_not_a_failure(tmp_path: Path) -> None:
    """``make setup`` ends in an error of make otherwise."""
    (tmp_path / "config.toml").write_text('[model]\nname = "offline"\n')
    with Terminal(Clew(tmp_path), "setup", "--model", "offline") as terminal:
        terminal.see("Change its model?")
        terminal.type("n\n")
        terminal.see("was not changed")
        assert terminal.ended() == 0
