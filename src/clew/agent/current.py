"""What a tool may ask about where it runs: the conversation, session and turn of its call."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, SessionId, TurnId


@dataclass(frozen=True, kw_only=True, slots=True)
class Current:
    """Where the running turn is; after a rotation it names the new session."""

    conversation: ConversationId
    session: SessionId
    turn: TurnId


_CURRENT: ContextVar[Current | None] = ContextVar("clew_current", default=None)


def current() -> Current | None:
    """The turn that calls; ``None`` outside of one."""
    return _CURRENT.get()


def enter(where: Current) -> None:
    """From now on this task, and what it starts, is at ``where``."""
    _CURRENT.set(where)


def environment() -> dict[str, str]:
    """
    Variables for subprocesses of a tool.

    ``HERMES_SESSION_ID`` is the same id for scripts that know only that name.
    """
    where = _CURRENT.get()
    if where is None:
        return {}
    return {"CLEW_SESSION_ID": where.session, "HERMES_SESSION_ID": where.session}
