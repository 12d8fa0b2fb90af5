"""The emulator that the terminal UI is judged by."""

from __future__ import annotations

from tests.tui.terminal_emulator import Emulator


def test_a_mark_stays_when_the_shape_of_the_pointer_follows_it() -> None:
    emulator = Emulator(20, 2)
    emulator.feed(b"\x1b]2;mark 3\x07\x1b]22;default\x07text")
    assert emulator.title == "mark 3"
    assert emulator.rows[0] == "text"
