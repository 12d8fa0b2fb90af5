"""Text from a terminal: no sequence survives, no character hides."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.escapes import make_visible, strip_controls, strip_sequences


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("one\x1b[13;1utwo", "one\ntwo"),
        ("one\x1b[13utwo", "one\ntwo"),
        ("one\x1b[13;2:1utwo", "one\ntwo"),
        ("one\x1b[27;5;13~two", "one\ntwo"),
        ("a\x1b[9;1ub", "a\tb"),
        ("\x1b[228;1u\x1b[98u", "äb"),
        ("a\x1b[57358ub", "ab"),
        ("a\x1b[99999999ub", "ab"),
        ("\x1b[1;31mred\x1b[0m \x1b[38:2:1:2:3mx\x1b[m", "red x"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1bPq#0\x1b\\a\x1b(Bb\x1b[?2004hc\x1bOAd\x1b", "abcd"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\x00b\x07c\x9bd", "abcd"),
        ("tab\tstays  blanks too ", "tab\tstays  blanks too "),
    ],
    ids=ascii,
)
def test_a_paste_keeps_its_text_and_its_order(pasted: str, text: str) -> None:
    assert strip_sequences(pasted) == text


@given(st.lists(st.sampled_from(["one", "two ", "ä漢", "\x1b[13;1u", "\x1b[31m", "\x1b[0m", "\n"])))
def test_whatever_stands_between_the_words_stay_in_order(parts: list[str]) -> None:
    wanted = "".join(
        "\n" if part == "\x1b[13;1u" else "" if part.startswith("\x1b") else part for part in parts
    )
    assert strip_sequences("".join(parts)) == wanted


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", strip_sequences(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"cmd": "red   red"}', '{"cmd": "red   red"}'),
        ("a\nb", "a\nb"),
        ("a\x1b[2Jb\rc\td", "a\\u{1B}[2Jb\\u{D}c\\u{9}d"),
        ("rm \u202efdp.exe\u202c", "rm \\u{202E}fdp.exe\\u{202C}"),
        ("a\u200bb\ufeffc\u00a0d\u2028e", "a\\u{200B}b\\u{FEFF}c\\u{A0}d\\u{2028}e"),
        ("漢字 é 🙂", "漢字 é 🙂"),
    ],
    ids=ascii,
)
def test_every_character_of_an_argument_can_be_seen(text: str, shown: str) -> None:
    assert make_visible(text) == shown


@given(st.text())
def test_no_blank_is_squeezed_and_no_character_is_left_out(text: str) -> None:
    shown = make_visible(text)
    assert (
        re.sub(r"\\u\{([0-9A-F]+)\}", lambda m: chr(int(m[1], 16)), shown) == text or "\\u{" in text
    )
    assert shown.count(" ") == text.count(" ")


def test_text_of_others_stands_on_a_terminal_in_the_order_in_which_it_was_written() -> None:
    told = "pay \u202e001\u202c \x1b[2J\x07now\u2066, שלום\u2069\tand\nlater"
    assert strip_controls(told) == "pay 001 [2Jnow, שלום\tand\nlater"
