"""Pastes: whatever bytes stand between their marks, the text and its order are kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser
from textual.events import Key, Paste

from clew.tui.terminal_input import PASTE_END, PASTE_START, PASTE_TIMEOUT, TerminalInput
from clew.tui.text.pasted import decode_paste


class Terminal:
    """Feeds a reader, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self._reader = TerminalInput(XTermParser(), lambda: self.now)
        self.told: list[str] = []

    def send(self, *pieces: str) -> list[str]:
        for piece in pieces:
            self._note(self._reader.feed(piece))
        return self.told

    def wait(self, seconds: float) -> list[str]:
        self.now += seconds
        self._note(self._reader.tick())
        return self.told

    def _note(self, messages: object) -> None:
        for message in messages:  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
            if isinstance(message, Paste):
                self.told.append(f"paste {message.text!r}")
            elif isinstance(message, Key):
                self.told.append(message.key)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("one\x1b[13;1utwo\x1b[13utwo", "one\ntwo\ntwo"),
        ("one\x1b[27;1;13~two\x1b[27;5;13~", "one\ntwo\n"),
        ("a\x1b[9;1ub\x1b[98;;99u", "a\tbc"),
        ("a\x1b[97;5ub\x1b[57358u\x1b[97;1:3u", "ab"),
        ("\x1b[31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"),
        ("\x1b]8;;https://clew.test\x1b\\link\x1b]8;;\x07 \x9b1mbold", "link bold"),
        ("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b7c", "abc"),
        ("one\r\ntwo\rthree\n\tend\x00\x07", "one\ntwo\nthree\n\tend"),
        ("half \x1b and \x1b[3", "half  and [3"),
        ("\x1b[1;5H\x1b[2Kx\x1b[A", "x"),
    ],
)
def test_a_paste_is_the_text_without_what_encodes_or_colours_it(raw: str, text: str) -> None:
    assert decode_paste(raw) == text
    assert Terminal().send(PASTE_START + raw + PASTE_END, "q") == [f"paste {text!r}", "q"]


@given(
    st.lists(st.text("ab \n\t日é"), min_size=1),
    st.lists(st.sampled_from(["\x1b[13;1u", "\x1b[1m", "\x1b[0m", "\x1b]2;t\x07", "\x1b[200~"])),
    st.integers(1, 7),
)
def test_nothing_within_a_paste_is_a_key_however_it_arrives(
    texts: list[str], codes: list[str], size: int
) -> None:
    raw = "".join(text + (codes[n] if n < len(codes) else "") for n, text in enumerate(texts))
    wanted = "".join(
        text + ("\n" if codes[n : n + 1] == ["\x1b[13;1u"] else "") for n, text in enumerate(texts)
    )
    sent = f"x{PASTE_START}{raw}{PASTE_END}y"
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    told = Terminal().send(*pieces)
    assert told == ["x", *([f"paste {wanted!r}"] if wanted else []), "y"]


def test_an_incomplete_mark_counts_as_a_key_after_a_moment() -> None:
    terminal = Terminal()
    assert terminal.send("\x1b") == []
    terminal.wait(0.05)
    terminal._reader._parser._timeout_time = 0.0  # pyright: ignore[reportPrivateUsage]
    assert terminal.wait(0.2) == ["escape"]


def test_a_paste_that_never_ends_does_not_swallow_the_keys_for_ever() -> None:
    terminal = Terminal()
    assert terminal.send(PASTE_START + "text", "more\x1b[2") == []
    assert terminal.wait(PASTE_TIMEOUT) == []
    assert terminal.wait(0.1) == ["paste 'textmore[2'"]
    assert terminal.send("q")[-1] == "q"
