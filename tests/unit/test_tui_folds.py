"""Long pastes are folded to labels, and come back whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.tui.state.paste_folding import MAX_CHARACTERS, MAX_LINES, PasteFolds

LONG = st.text(alphabet="a[] \n#", min_size=MAX_CHARACTERS + 1, max_size=MAX_CHARACTERS + 5)
SHORT = st.text(alphabet="a[]#\n", max_size=9).filter(lambda text: text.count("\n") < MAX_LINES)


def test_a_label_says_how_much_it_stands_for() -> None:
    lines = "x\n" * 120
    folds, label = PasteFolds().fold_paste(lines)
    assert label == "[pasted 120 lines]"
    folds, other = folds.fold_paste(f"{lines}y")
    assert other == "[pasted 121 lines]"
    folds, again = folds.fold_paste(lines)
    assert again == "[pasted 120 lines #2]"
    assert folds.label_before(f"see {again}") == again
    assert folds.label_before(f"see {again} ") == ""
    assert PasteFolds().fold_paste("y" * 3210)[1] == "[pasted 3,210 characters]"
    assert PasteFolds().fold_paste("short\n" * MAX_LINES)[1] == "short\n" * MAX_LINES


@given(st.lists(SHORT | LONG, max_size=6))
def test_whatever_is_pasted_is_sent_whole_and_in_order(pastes: list[str]) -> None:
    folds, written = PasteFolds(), ""
    for paste in pastes:
        folds, shown = folds.fold_paste(paste)
        assert shown.count("\n") <= MAX_LINES
        written += shown
    assert folds.expand_labels(written) == "".join(pastes)
