"""The text that ends a turn: never silence where silence would be wrong."""

from __future__ import annotations

from clew.agent.advice import get_advice
from clew.agent.provider_errors import FailureKind, looks_like_overflow
from clew.core.text import is_blank
from clew.core.turn import TurnOutcome

TRUNCATION_NOTICE = (
    "The answer is incomplete, because the model reached its output limit. Ask it to continue."
)


def build_final_text(
    text: str,
    *,
    outcome: TurnOutcome,
    error: str | None = None,
    code: str | None = None,
    steps: int = 0,
    messages: int = 0,
    pictures: bool = False,
) -> str:
    """
    Return the text that ends a turn.

    Real text passes unchanged. A turn that a person stopped is silent. Otherwise the text
    describes the failure: advice about the context window on an overflow, the work done so
    far, else the error and the advice for its ``code``; with ``pictures`` it adds that the
    images may be the cause.
    """
    if not is_blank(text):
        return text
    if outcome is TurnOutcome.CANCELLED:
        return ""
    if error is None:
        return _explain_missing_answer(steps)
    error = error.rstrip(".")
    error += "" if error.endswith(("!", "?", "…")) else "."
    if code == FailureKind.OVERFLOW.value or looks_like_overflow(error):
        return (
            f"The conversation ({messages} messages) is longer than the model's context window. "
            "Use /compact to shorten it, or /new to start a new one. "
            f"The provider said: {error}"
        )
    if pictures:
        error += (
            " There are pictures in this conversation: for a model without picture input, set "
            "model.pictures to false."
        )
    way_out = get_advice(code)
    if steps:
        calls = "1 model call" if steps == 1 else f"{steps} model calls"
        return f"I worked on it ({calls}) but could not finish: {error} {way_out}"
    return f"That failed: {error} {way_out}"


def _explain_missing_answer(steps: int) -> str:
    worked = f" after {steps} model calls" if steps > 1 else ""
    return f"The model ended without an answer{worked}. Try again, or rephrase the message."
