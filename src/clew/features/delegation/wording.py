"""Texts about tasks, for the model and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.features.delegation.children import ChildState

if TYPE_CHECKING:
    from clew.features.delegation.children import Child

#: Characters of an answer that the parent is given; the rest can be read.
MAX_ANSWER: Final = 8_000

#: Somebody stopped what goes on above: nobody there waits to be told.
ABOVE: Final = "above"
#: Reasons that are stored, and their words.
_REASONS: Final = {
    "budget": "its budget is used",
    "caller": "the turn that asked for it has ended",
    "parent": "the conversation that asked for it was deleted",
    "deleted": "its conversation was deleted",
    "stopped": "somebody stopped it",
    "asked": "it was told to stop",
    ABOVE: "the conversation that asked for it was stopped",
}
_STATES: Final = {
    ChildState.RUNNING: "still running",
    ChildState.DONE: "done",
    ChildState.FAILED: "failed",
    ChildState.STOPPED: "stopped",
}


def describe_reason(reason: str | None) -> str | None:
    """Return the words for a stored reason; the text of an error stays as it is."""
    return None if reason is None else _REASONS.get(reason, reason)


def format_task(task: str) -> str:
    """Return the first input of a task's conversation, for the model."""
    return (
        f"{task.strip()}\n\nYour last message is the answer, and all that is read of your work. "
        "Say in it what you found or did, and what is missing."
    )


def format_budget(child: Child) -> str:
    """Return what a child is told when its budget is used."""
    return (
        f"The budget of this task is used ({child.max_tokens:,} tokens or {child.max_steps:,} "
        "steps). Make no more calls: answer now with what you have, and say what is missing."
    )


def format_state(child: Child) -> str:
    """Return the state of a child in a few words, with its reason."""
    why = describe_reason(child.reason)
    return _STATES[child.state] + (f": {why}" if why else "")


def format_answer(child: Child, text: str, *, late: str | None = None) -> str:
    """Return what the parent is told of a child that has ended."""
    heads = [f"The task {child.title!r} ({child.conversation_id}): {format_state(child)}."]
    if late is not None:
        heads.append(f"Late: {late} since it was asked for.")
    text = text.strip()
    if not text:
        return "\n".join([*heads, "It has left no text."])
    if len(text) <= MAX_ANSWER:
        return "\n".join([*heads, "", text])
    more = f"… ({len(text) - MAX_ANSWER:,} more characters: agents, action read)"
    return "\n".join([*heads, "", text[:MAX_ANSWER], more])


def format_started(child: Child) -> str:
    """Return what the model is told of a child that goes on without it."""
    return (
        f"The task {child.title!r} runs in the background as {child.conversation_id}. You are "
        "told when it ends: do not wait for it."
    )
