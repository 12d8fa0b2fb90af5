"""``clew`` as a person starts it: on a terminal, alone and beside a server."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.terminal import Terminal

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals"),
]
CTRL_Q = "\x11"


def test_clew_without_a_command_opens_the_terminal_ui_over_an_engine_of_its_own(clew: Clew) -> None:
    with Terminal(clew) as terminal:
        # Typed before there is a screen: nothing of it is lost.
        terminal.type("hello ")
        terminal.see("? keys")
        terminal.type("there\r")
        terminal.see("You said: hello there")
        terminal.type(CTRL_Q)
        assert terminal.ended() == 0
    assert clew.said()[0] == ("user", "hello there")


def test_beside_a_server_it_is_a_client_of_that(clew: Clew) -> None:
    with clew.serving(), Terminal(clew) as terminal:
        terminal.see("Type a message")
        # As quick as a paste: each key takes effect after the one before it.
        terminal.type("gone\x15help\x7flo there\r")
        terminal.see("You said: hello there")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.ended() == 0
        # The terminal is as it was.
        assert "\x1b[?1049l" in terminal.screen
        owners = clew.data("doctor", "--offline")["findings"]
        assert not any("tui" in each["detail"] for each in owners)


def test_ctrl_z_stops_it_and_its_conversation_continues_afterwards(clew: Clew) -> None:
    with Terminal(clew) as terminal:
        terminal.see("? keys")
        terminal.type("be\x1a")
        terminal.see("\x1b[?1049l")
        terminal.stopped()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.see("\x1b[?1049h")
        # Drawn once the terminal is raw again: before, Enter would arrive as a newline.
        terminal.see("? keys")
        terminal.type("fore and after\r")
        terminal.see("You said: before and after")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_without_a_terminal_clew_prints_its_help(clew: Clew) -> None:
    assert "Commands:" in clew.ok()
