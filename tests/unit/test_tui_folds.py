"""Long pastes are folded to labels, and come back whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.tui.state.folds import CHARACTERS, LINES, Folds

LONG = st.text(alphabet="a[] \n#", min_size=CHARACTERS + 1, max_size=CHARACTERS + 5)
SHORT = st.text(alphabet="a[]#\n", max_size=9).filter(lambda text: text.count("\n") < LINES)


def test_a_label_says_how_much_it_stands_for() -> None:
    lines = "x\n" * 120
    folds, label = Folds().folded(lines)
    assert label == "[pasted 120 lines]"
    folds, other = folds.folded(f"{lines}y")
    assert other == "[pasted 121 lines]"
    folds, again = folds.folded(lines)
    assert again == "[pasted 120 lines #2]"
    assert folds.label_before(f"see {again}") == again
    assert folds.label_before(f"see {again} ") == ""
    assert Folds().folded("y" * 3210)[1] == "[pasted 3,210 characters]"
    assert Folds().folded("short\n" * LINES)[1] == "short\n" * LINES


@given(st.lists(SHORT | LONG, max_size=6))
def test_whatever_is_pasted_is_sent_whole_and_in_order(pastes: list[str]) -> None:
    folds, written = Folds(), ""
    for paste in pastes:
        folds, shown = folds.folded(paste)
        assert shown.count("\n") <= LINES
        written += shown
    assert folds.whole(written) == "".join(pastes)
