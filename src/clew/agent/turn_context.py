"""Current turn and call of the running code: its ids, for tools and hooks."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.journal import CallKey

    KeepPermit: TypeAlias = Callable[[], AbstractContextManager[None]]


class TurnIds(Record):
    """Ids of the running turn; after a rotation ``session`` is the new session."""

    conversation: ConversationId
    session: SessionId
    turn: TurnId
    #: Identifies the running tool call, also when it runs again; ``None`` outside of one.
    call_key: CallKey | None = None


@dataclass(slots=True)
class _TurnSlot:
    """
    Mutable slot shared by every task and thread that a turn has started.

    They have copies of the context, so a new session is set in here.
    """

    context: TurnIds | None


_TURN_SLOT: ContextVar[_TurnSlot | None] = ContextVar("clew_current", default=None)
#: The tool call that the code belongs to.
_CALL_KEY: ContextVar[CallKey | None] = ContextVar("clew_call", default=None)
#: Keeps the permit of the turn while a part of the call works.
_KEEP_PERMIT: ContextVar[KeepPermit | None] = ContextVar("clew_keep_permit", default=None)
#: The session that a hook call is about, outside of its turn.
_HOOK_SESSION: ContextVar[SessionId | None] = ContextVar("clew_told_of", default=None)


def get_turn_context() -> TurnIds | None:
    """Return the context of the calling turn; ``None`` outside of a turn."""
    place = _TURN_SLOT.get()
    if place is None or place.context is None:
        return None
    call = _CALL_KEY.get()
    return place.context if call is None else replace(place.context, call_key=call)


@contextmanager
def enter_tool_call(key: CallKey, keep: KeepPermit) -> Generator[None]:
    """Set the tool call that everything in the block belongs to, and what keeps its permit."""
    token, kept = _CALL_KEY.set(key), _KEEP_PERMIT.set(keep)
    try:
        yield
    finally:
        _CALL_KEY.reset(token)
        _KEEP_PERMIT.reset(kept)


def keep_permit() -> AbstractContextManager[None]:
    """
    Keep the permit of the turn in a block in which a tool call works, and waits for nobody.

    A call lends it after a second, since most calls that take longer wait for others: so a
    block that loads this machine, such as the start of a program, keeps other turns from
    beginning meanwhile. Only in asynchronous tools; outside of a call it does nothing.
    """
    keep = _KEEP_PERMIT.get()
    return nullcontext() if keep is None else keep()


def set_turn_context(where: TurnIds) -> None:
    """Set the context of this task, and of everything that its turn starts or has started."""
    place = _TURN_SLOT.get()
    if place is not None and place.context is not None and place.context.turn == where.turn:
        place.context = where
    else:
        _TURN_SLOT.set(_TurnSlot(where))


def clear_turn_context() -> None:
    """Clear the context: whatever the turn left running no longer belongs to a turn."""
    place = _TURN_SLOT.get()
    if place is not None:
        place.context = None
        _TURN_SLOT.set(None)


@contextmanager
def hook_session(session: SessionId | None, turn: TurnIds | None = None) -> Generator[None]:
    """Set the session that hooks called in the block are about, and their turn."""
    token = _HOOK_SESSION.set(session)
    slot = _TURN_SLOT.set(None if turn is None else _TurnSlot(turn))
    try:
        yield
    finally:
        _TURN_SLOT.reset(slot)
        _HOOK_SESSION.reset(token)


def make_subprocess_env() -> dict[str, str]:
    """
    Return the variables for subprocesses of a tool or a hook.

    ``HERMES_SESSION_ID`` is the same id, for scripts that know only that name.
    """
    where = get_turn_context()
    session = _HOOK_SESSION.get() if where is None else where.session
    if session is None:
        return {}
    return {"CLEW_SESSION_ID": session, "HERMES_SESSION_ID": session}
