"""What a person is told when a turn ends: never silence where silence would be wrong."""

from __future__ import annotations

from clew.core.turn import Outcome

NO_TEXT = "(the model gave no answer)"


def answer_text(
    text: str,
    *,
    outcome: Outcome,
    error: str | None = None,
    steps: int = 0,
    messages: int = 0,
) -> str:
    """
    The text that ends a turn.

    Real text passes unchanged. A turn that a person stopped is silent. Otherwise the failure is
    told: advice on the context window where that is the reason, what went wrong where work was
    done, else the error and a way out.
    """
    if text.strip():
        return text
    if outcome is Outcome.CANCELLED:
        return ""
    if error is None:
        return _no_answer(steps)
    if is_overflow(error):
        return (
            f"The conversation ({messages} messages) is longer than the model's context window. "
            "Use /compress to shorten it, or /new to start afresh. "
            f"The provider said: {error}"
        )
    if steps:
        return f"I worked on it ({steps} model calls) but could not finish: {error}"
    return (
        f"That failed: {error}. Try again; if it keeps failing, /reset starts a new conversation."
    )


def _no_answer(steps: int) -> str:
    worked = f" after {steps} model calls" if steps > 1 else ""
    return f"The model ended without an answer{worked}. Try again, or ask in other words."


_OVERFLOW = ("context length", "context_length", "context window", "maximum context", "too long")


def is_overflow(error: str) -> bool:
    """Whether a provider's error says that the request was longer than the context window."""
    lowered = error.lower()
    return any(sign in lowered for sign in _OVERFLOW)
