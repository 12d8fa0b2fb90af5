"""Output on a terminal, and input from it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.event_printer import remaining_text
from clew.cli.output import Output, display_width, format_table, to_single_line
from clew.cli.typeahead import TypeaheadParser


class Screen(io.StringIO):
    """A stream before which a person sits."""

    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A pipe whose reader went away."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("text", "shown", "rest"),
    [
        ("the answer", "", "the answer"),
        ("the answer", "the an", "swer"),
        ("the answer", "the answer", ""),
        ("the answer", "another", None),
        ("short", "shorter", None),
        ("one\ntwo", "onetwo", ""),
        ("one\ntwo", "onet", "wo"),
        ("one\n\ntwo", "one\n\nt", "wo"),
    ],
)
def test_streamed_text_is_completed_from_the_store(text: str, shown: str, rest: str | None) -> None:
    assert remaining_text(text, shown) == rest


@given(st.text(), st.integers(min_value=0))
def test_the_rest_of_a_text_completes_its_beginning(text: str, at: int) -> None:
    rest = remaining_text(text, text[:at])
    assert rest is not None
    assert (text[:at] + rest).replace("\n", "") == text.replace("\n", "")


@given(st.text())
def test_a_terminal_gets_no_control_characters_and_a_pipe_gets_all(text: str) -> None:
    screen, pipe = Screen(), io.StringIO(newline="")
    Output(screen).write(text)
    Output(pipe).write(text)
    assert pipe.getvalue() == text
    assert not any(c < " " and c not in "\n\t" for c in screen.getvalue())
    assert "\x1b" not in screen.getvalue()


def test_a_reader_that_left_is_reported_at_the_end() -> None:
    out = Output(Gone())
    out.write("the answer")
    out.print_dim("(remark)")
    with pytest.raises(BrokenPipeError):
        out.raise_if_closed()


def test_lines_are_begun_once() -> None:
    pipe = io.StringIO()
    out = Output(pipe)
    out.end_line()
    out.write("one")
    out.end_line()
    out.end_line()
    out.write("two\n")
    out.end_line()
    assert pipe.getvalue() == "one\ntwo\n"


def test_a_table_is_as_wide_as_its_cells() -> None:
    assert format_table(("A", "B"), [("漢字", "x"), ("é", "a\nb")]) == [
        "A     B",
        "漢字  x",
        "é     a b",
    ]


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_of_the_width(text: str, width: int) -> None:
    line = to_single_line(text, width)
    assert "\n" not in line
    assert len(line) <= width
    assert display_width(line) <= 2 * width


def fed(*chunks: str) -> list[str]:
    lines = TypeaheadParser()
    found = [line.text for chunk in chunks for line in lines.feed_bytes(chunk.encode())]
    return [*found, f"rest: {rest}"] if (rest := lines.take_unfinished()) else found


@pytest.mark.parametrize(
    ("chunks", "messages"),
    [
        (["one\n"], ["one"]),
        (["one\ntwo\n"], ["one", "two"]),
        (["on", "e\ntw", "o"], ["one", "rest: two"]),
        (["\x1b[200~one\rtwo\x1b[201~\n"], ["one\ntwo"]),
        (["\x1b[200~one\r\n", "two\n", "\x1b[201~ three\n"], ["one\ntwo\n three"]),
        (["see \x1b[200~a\nb\x1b[201~ and \x1b[200~c\x1b[201~\n"], ["see a\nb and c"]),
        (["one\n\x1b[200~two\nthree"], ["one", "rest: two\nthree"]),
        (["\x1b[200~one\x1b[13;1utwo\x1b[13;1u\x1b[13;1uthree\x1b[201~\n"], ["one\ntwo\n\nthree"]),
        (["\x1b[200~\x1b[31mred\x1b[0m\x1b[27;2;13~\x1b[1;32mup\x1b[m\x1b[201~\n"], ["red\nup"]),
        (["a\x1b[Db\x1bOA\n"], ["ab"]),
    ],
)
def test_each_line_is_a_message_but_a_paste_is_one(chunks: list[str], messages: list[str]) -> None:
    assert fed(*chunks) == messages


@given(st.lists(st.text(alphabet="ab\n "), max_size=5))
def test_however_the_bytes_come_nothing_typed_is_lost(chunks: list[str]) -> None:
    lines = TypeaheadParser()
    found = [line.text for chunk in chunks for line in lines.feed_bytes(chunk.encode())]
    assert "\n".join([*found, lines.take_unfinished()]) == "".join(chunks)
