"""Texts for the person at the end of a turn."""

from __future__ import annotations

from clew.core.turn import TurnOutcome
from clew.engine.final_text import build_final_text


def test_a_turn_that_worked_but_gave_no_text_names_what_went_wrong() -> None:
    error = "Model generated invalid tool call: nonexistent_tool"
    told = build_final_text("", outcome=TurnOutcome.FAILED, error=error, steps=5)
    assert "nonexistent_tool" in told


def test_a_turn_that_the_user_interrupted_after_it_had_worked_stays_silent() -> None:
    assert build_final_text("", outcome=TurnOutcome.CANCELLED, steps=5) == ""


def test_an_overflow_advises_on_the_context_window_and_compact() -> None:
    error = "400 Bad Request: context length exceeded"
    told = build_final_text("", outcome=TurnOutcome.FAILED, error=error, messages=60)
    assert "context window" in told
    assert "/compact" in told


def test_any_other_failure_shows_its_text_and_reset() -> None:
    told = build_final_text(
        "", outcome=TurnOutcome.FAILED, error="500 Internal Server Error", messages=5
    )
    assert "500 Internal Server Error" in told
    assert "/reset" in told


def test_real_text_passes_unchanged() -> None:
    assert build_final_text("Hello!", outcome=TurnOutcome.ANSWERED) == "Hello!"


def test_b180_an_empty_answer_is_never_a_blank_message() -> None:
    for text in ("", " ", "\n\t"):
        assert build_final_text(text, outcome=TurnOutcome.ANSWERED, steps=1).strip()
