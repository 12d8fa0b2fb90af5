"""Processes in the store: one row for each command, from before it starts to after its end."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.completion import Cause, NewCompletion, make_completion_id
from clew.core.scope import LOCAL
from clew.core.tool_facts import READ_ONLY_LEVEL
from clew.errors import NotFound
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions import workspace_writes
from clew.store.transactions.completions import accept_completion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, TurnId
    from clew.core.journal import CallKey
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: The cause of the completions of processes.
CAUSE: Final = "process"


class ProcessState(enum.Enum):
    """Life of a process; it moves down only."""

    ASKED = "asked"  #: it is started now, or its gateway was killed before that
    RUNNING = "running"
    EXITED = "exited"  #: it ended, by itself or by a signal
    STOPPED = "stopped"  #: it was told to end, or it reached a limit
    LOST = "lost"  #: its supervisor is gone and has not told its end

    @property
    def is_open(self) -> bool:
        return self in (ProcessState.ASKED, ProcessState.RUNNING)


class ShellProcess(Record):
    """A command that was started for a call of the model."""

    id: str
    conversation: ConversationId
    turn: TurnId
    scope: Scope
    command: str
    workspace: str
    level: str
    host: str
    state: ProcessState
    background: bool
    created_at: int
    stop_reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    why: str | None = None
    notice: str | None = None
    #: Bytes of its output, and its last characters.
    size: int | None = None
    tail: str | None = None
    #: The input by which the model was told.
    woken: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    pruned_at: int | None = None


class ProcessEnd(Record):
    """The end of a process, as it is stored."""

    state: ProcessState
    exit_code: int | None = None
    signal: int | None = None
    why: str | None = None
    notice: str | None = None
    size: int | None = None
    #: The last characters of its output.
    tail: str | None = None
    started_at: int | None = None
    ended_at: int | None = None


_COLUMNS: LiteralString = (
    "id, conversation, turn, scope, command, workspace, level, host, state, background,"
    " stop_reason, exit_code, signal, why, notice, size, tail, woken, created_at, started_at,"
    " ended_at, pruned_at"
)
PROCESSES: Final = RecordQuery(
    ShellProcess,
    f"SELECT {_COLUMNS} FROM shell_process",
    {"state": ProcessState, "background": bool},
)


def make_process_id(key: CallKey) -> str:
    """Return the id of the process of a call; the same when the call runs again."""
    return f"prc_{key.make_digest()[:16]}"


def ask_process(t: Tx, process: ShellProcess, call: CallKey) -> ShellProcess:
    """Store that a process is to be started; repeating it returns the first one as it is now."""
    t.execute(
        """
        INSERT INTO shell_process (id, conversation, turn, scope, command, workspace, level, host,
                                   state, background, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'asked', $9, $10) ON CONFLICT (id) DO NOTHING
        """,
        process.id,
        process.conversation,
        process.turn,
        process.scope,
        process.command,
        process.workspace,
        process.level,
        process.host,
        int(process.background),
        t.now,
    )
    return _continue_writes(t, get_process(t, process.id), call)


def mark_running(t: Tx, process: str) -> None:
    """Store that a process was started."""
    t.execute(
        """
        UPDATE shell_process SET state = 'running', started_at = $2
        WHERE id = $1 AND state = 'asked'
        """,
        process,
        t.now,
    )


def set_background(t: Tx, process: str, *, on: bool, call: CallKey | None = None) -> ShellProcess:
    """
    Have the model be told the end of a process, or a call wait for it; unless it has ended.

    ``call`` is the one that began it, if it waited until now.
    """
    t.execute(
        """
        UPDATE shell_process SET background = $2
        WHERE id = $1 AND (state = 'asked' OR state = 'running')
        """,
        process,
        int(on),
    )
    return _continue_writes(t, get_process(t, process), call)


def _continue_writes(t: Tx, process: ShellProcess, call: CallKey | None) -> ShellProcess:
    """Store that an open process in the background writes beyond the end of its call."""
    if call is not None and process.background and process.state.is_open:
        workspace_writes.continue_writes(t, call, process.id)
    return process


def taint_process(t: Tx, process: ShellProcess, *, at: int) -> None:
    """Store that a process in the background was given text that strangers may have written."""
    workspace_writes.record_program(
        t, process.id, process.workspace, place=process.host, at=at, untrusted=True, unseen=True
    )


def request_stop(t: Tx, process: str, reason: str) -> ShellProcess:
    """Ask for the end of a process; the first reason counts."""
    t.execute(
        """
        UPDATE shell_process SET stop_reason = $2
        WHERE id = $1 AND stop_reason IS NULL AND (state = 'asked' OR state = 'running')
        """,
        process,
        reason,
    )
    return get_process(t, process)


def settle_process(
    t: Tx, process: str, end: ProcessEnd, *, text: str, untrusted: bool
) -> ShellProcess:
    """
    Store the end of a process, and tell the model of one in the background, in one commit.

    Its output is ``untrusted`` if it may hold text of strangers. Repeating it, here or on
    another gateway, changes nothing.
    """
    changed = t.execute(
        """
        UPDATE shell_process
        SET state = $2, exit_code = $3, signal = $4, why = $5, notice = $6, size = $7, tail = $8,
            started_at = COALESCE($9, started_at), ended_at = COALESCE($10, $11)
        WHERE id = $1 AND (state = 'asked' OR state = 'running')
        """,
        process,
        end.state.value,
        end.exit_code,
        end.signal,
        end.why,
        end.notice,
        end.size,
        end.tail,
        end.started_at,
        end.ended_at,
        t.now,
    )
    found = get_process(t, process)
    if changed:
        untrusted = _end_writes(t, found, end, untrusted=untrusted)
        if found.background:
            _wake(t, found, text, untrusted=untrusted)
    return get_process(t, process)


def _end_writes(t: Tx, process: ShellProcess, end: ProcessEnd, *, untrusted: bool) -> bool:
    """Store that a process writes no more; return whether text of strangers reached it."""
    if untrusted and process.background and process.level != READ_ONLY_LEVEL:
        began_at = process.started_at or process.created_at
        workspace_writes.record_program(
            t,
            process.id,
            process.workspace,
            place=process.host,
            at=began_at,
            untrusted=True,
            unseen=False,
        )
    at = end.ended_at or t.now + workspace_writes.CLOCK_SKEW
    return workspace_writes.end_program(t, process.id, at=at, untrusted=untrusted)


def _wake(t: Tx, process: ShellProcess, text: str, *, untrusted: bool) -> None:
    new = NewCompletion(
        id=make_completion_id(process.id),
        conversation=process.conversation,
        text=text,
        cause=Cause(kind=CAUSE, id=process.id),
        turn=process.turn,
        untrusted=untrusted,
    )
    if accept_completion(t, new):
        t.execute("UPDATE shell_process SET woken = $2 WHERE id = $1", process.id, new.id)


def get_process(t: Tx, process: str, *, viewer: Scope = LOCAL) -> ShellProcess:
    """
    Return a process.

    :raises NotFound: if there is none that the viewer may see
    """
    found = PROCESSES.fetch_one(t, "WHERE id = $1", process)
    if found is None or viewer not in (LOCAL, found.scope):
        raise NotFound("process", process)
    return found


def list_open(t: Tx, *, after: str = "", limit: int = 10_000) -> list[ShellProcess]:
    """Return the processes that have not ended, of all hosts, by their ids."""
    return PROCESSES.fetch_all(
        t,
        """
        WHERE (state = 'asked' OR state = 'running') AND id > $1 ORDER BY id LIMIT $2
        """,
        after,
        limit,
    )


def list_abandoned(t: Tx) -> list[ShellProcess]:
    """Return the processes that a call was to start or waits for, and whose turn has ended."""
    return PROCESSES.fetch_all(
        t,
        """
        WHERE (state = 'asked' OR (state = 'running' AND background = 0)) AND stop_reason IS NULL
              AND NOT EXISTS (
                  SELECT 1 FROM turn u WHERE u.id = shell_process.turn AND u.state <> 'done'
              )
        """,
    )


def list_processes(
    t: Tx, *, viewer: Scope, conversation: ConversationId | None = None, limit: int = 50
) -> list[ShellProcess]:
    """Return the processes that a viewer may see: those that run, then the newest that ended."""
    return PROCESSES.fetch_all(
        t,
        """
        WHERE ($1 = 'local' OR scope = $1) AND ($2 = '' OR conversation = $2)
        ORDER BY CASE WHEN state = 'asked' OR state = 'running' THEN 0 ELSE 1 END,
                 created_at DESC, id
        LIMIT $3
        """,
        viewer,
        conversation or "",
        limit,
    )


def list_prunable(t: Tx, *, before: int, limit: int = 100) -> list[str]:
    """Return the processes that ended before a moment and whose output is still there."""
    return t.fetch_column(
        """
        SELECT id FROM shell_process WHERE ended_at < $1 AND pruned_at IS NULL
        ORDER BY ended_at LIMIT $2
        """,
        before,
        limit,
    )


def mark_pruned(t: Tx, processes: Sequence[str]) -> None:
    """Store that the output of processes was removed; their rows stay."""
    for process in processes:
        t.execute("UPDATE shell_process SET pruned_at = $2 WHERE id = $1", process, t.now)


def find_unknown(t: Tx, names: Sequence[str]) -> list[str]:
    """Return those names of processes that have no row."""
    return [
        name for name in names if not t.exists("SELECT 1 FROM shell_process WHERE id = $1", name)
    ]
