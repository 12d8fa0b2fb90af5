"""What a tool may ask about where it runs: the conversation, session and turn of its call."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.core.ids import ConversationId, SessionId, TurnId


@dataclass(frozen=True, kw_only=True, slots=True)
class Current:
    """Where the running turn is; after a rotation it names the new session."""

    conversation: ConversationId
    session: SessionId
    turn: TurnId


@dataclass(slots=True)
class _Place:
    """
    One turn's place, shared by every task and thread that the turn has started.

    They have copies of the context, so the session that it moves to is changed in here.
    """

    where: Current | None


_PLACE: ContextVar[_Place | None] = ContextVar("clew_current", default=None)
#: The session that a hook is being told of, outside of its turn.
_TOLD_OF: ContextVar[SessionId | None] = ContextVar("clew_told_of", default=None)


def current() -> Current | None:
    """Return the turn that calls; ``None`` outside of one."""
    place = _PLACE.get()
    return None if place is None else place.where


def enter(where: Current) -> None:
    """Put this task, and all that its turn has started or will start, at ``where``."""
    place = _PLACE.get()
    if place is not None and place.where is not None and place.where.turn == where.turn:
        place.where = where
    else:
        _PLACE.set(_Place(where))


def leave() -> None:
    """End the turn here: what it has left running is in no turn any more."""
    place = _PLACE.get()
    if place is not None:
        place.where = None
        _PLACE.set(None)


@contextmanager
def telling_of(session: SessionId | None) -> Generator[None]:
    """Show the hooks that are called in the block which session they are told of."""
    token = _TOLD_OF.set(session)
    try:
        yield
    finally:
        _TOLD_OF.reset(token)


def environment() -> dict[str, str]:
    """
    Return the variables that subprocesses of a tool or a hook are given.

    ``HERMES_SESSION_ID`` is the same id for scripts that know only that name.
    """
    where = current()
    session = _TOLD_OF.get() if where is None else where.session
    if session is None:
        return {}
    return {"CLEW_SESSION_ID": session, "HERMES_SESSION_ID": session}
