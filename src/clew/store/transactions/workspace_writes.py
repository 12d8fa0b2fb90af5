"""Writes of tool calls to workspaces: whose text they hold, and whether a person saw it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.call_reach import WorkspaceWrite
from clew.store.transactions.leases import verify_lease_for_write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.journal import CallKey
    from clew.core.lease import Lease
    from clew.store.contract import Tx

#: Paths of unseen writes that are looked at: with more, any file counts.
_MAX_PATHS: Final = 1_000
#: Milliseconds by which the clocks of a database and a gateway may differ.
CLOCK_SKEW: Final = 60_000


def record_writes(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    key: CallKey,
    *,
    workspace: str,
    place: str,
    paths: Sequence[str],
    at: int,
    untrusted: bool,
    unseen: bool,
) -> None:
    """
    Store that a call is about to write; one that runs again keeps its first time.

    :raises LeaseLost: if the lease is not held any more
    """
    verify_lease_for_write(t, lease)
    for path in paths:
        t.execute(
            """
            INSERT INTO workspace_write (call, turn, workspace, path, began_at, untrusted, unseen,
                                         place)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (call, path) DO UPDATE SET ended_at = NULL
            """,
            _name_call(key),
            key.turn_id,
            workspace,
            path,
            at,
            int(untrusted),
            int(unseen),
            place,
        )


def end_writes(t: Tx, key: CallKey, *, at: int, untrusted: bool) -> None:
    """Store that a call has ended; it may have copied what is ``untrusted``."""
    _end(t, _name_call(key), at=at, untrusted=untrusted)


def _end(t: Tx, name: str, *, at: int, untrusted: bool) -> None:
    t.execute(
        """
        UPDATE workspace_write
        SET ended_at = $2, untrusted = CASE WHEN $3 = 1 THEN 1 ELSE untrusted END
        WHERE call = $1 AND ended_at IS NULL
        """,
        name,
        at,
        int(untrusted),
    )


def continue_writes(t: Tx, key: CallKey, program: str) -> None:
    """Store that a program which a call began goes on writing what the call writes."""
    t.execute(
        """
        INSERT INTO workspace_write (call, turn, workspace, path, began_at, untrusted, unseen,
                                     place)
        SELECT $2, '', workspace, path, began_at, untrusted, unseen, place FROM workspace_write
        WHERE call = $1
        ON CONFLICT (call, path) DO NOTHING
        """,
        _name_call(key),
        program,
    )


def record_program(
    t: Tx, program: str, workspace: str, *, place: str, at: int, untrusted: bool, unseen: bool
) -> None:
    """
    Store that a program which is no call writes a workspace, until ``end_program``.

    Repeating it keeps the first time; once ``untrusted``, it stays so.
    """
    t.execute(
        """
        INSERT INTO workspace_write (call, turn, workspace, path, began_at, untrusted, unseen,
                                     place)
        VALUES ($1, '', $2, '', $3, $4, $5, $6)
        ON CONFLICT (call, path) DO UPDATE SET untrusted = CASE
            WHEN $4 = 1 THEN 1 ELSE workspace_write.untrusted END
        """,
        program,
        workspace,
        at,
        int(untrusted),
        int(unseen),
        place,
    )


def end_program(t: Tx, program: str, *, at: int, untrusted: bool) -> bool:
    """
    Store that a program writes no more; it may have copied what is ``untrusted``.

    :return: whether text of strangers may have reached it
    """
    _end(t, program, at=at, untrusted=untrusted)
    return untrusted or t.exists(
        "SELECT 1 FROM workspace_write WHERE call = $1 AND untrusted = 1 LIMIT 1", program
    )


def record_restored(t: Tx, workspace: str, path: str, *, place: str, at: int) -> None:
    """Store that a person had an older content of a file restored, which may be of strangers."""
    t.execute(
        """
        INSERT INTO workspace_write (call, turn, workspace, path, began_at, ended_at, untrusted,
                                     unseen, place)
        SELECT $1, '', $2, $3, $4, $4, 1, 0, $5 WHERE EXISTS (
            SELECT 1 FROM workspace_write WHERE workspace = $2 AND untrusted = 1
        )
        ON CONFLICT (call, path) DO NOTHING
        """,
        f"restored {at}",
        workspace,
        path,
        at,
        place,
    )


def record_received(
    t: Tx, workspace: str, *, place: str, received: Sequence[WorkspaceWrite]
) -> None:
    """Store the times at which files of a workspace were changed last that strangers have sent."""
    for one in received:
        t.execute(
            """
            INSERT INTO workspace_write (call, turn, workspace, path, began_at, ended_at, untrusted,
                                         unseen, place)
            VALUES ($1, '', $2, '', $3, $4, 1, 0, $5)
            ON CONFLICT (call, path) DO NOTHING
            """,
            f"received {one.began_at} {one.ended_at} {workspace}",
            workspace,
            one.began_at,
            one.ended_at,
            place,
        )


def move_writes(t: Tx, before: str, after: str) -> None:
    """Store that a workspace has another folder."""
    t.execute(
        """
        UPDATE workspace_write
        SET workspace = $2,
            path = CASE WHEN path = '' THEN path ELSE $2 || substr(path, length($1) + 1) END
        WHERE workspace = $1
        """,
        before,
        after,
    )


def list_untrusted_writes(t: Tx, workspace: str) -> list[WorkspaceWrite]:
    """Return the writes to a workspace that may repeat text of strangers."""
    return [
        WorkspaceWrite(path=path, began_at=began_at, ended_at=ended_at)
        for path, began_at, ended_at in t.fetch_all(
            """
            SELECT w.path, w.began_at, COALESCE(w.ended_at, r.finished_at + $2)
            FROM workspace_write w LEFT JOIN turn r ON r.id = w.turn
            WHERE w.workspace = $1 AND w.untrusted = 1
            """,
            workspace,
            CLOCK_SKEW,
        )
    ]


def list_unseen_paths(t: Tx, workspace: str) -> tuple[str, ...]:
    """Return the paths in a workspace that were written unseen; empty text for anything."""
    found = t.fetch_column(
        """
        SELECT DISTINCT path FROM workspace_write WHERE workspace = $1 AND unseen = 1
        ORDER BY path LIMIT $2
        """,
        workspace,
        _MAX_PATHS,
    )
    return ("",) if len(found) == _MAX_PATHS else tuple(found)


def _name_call(key: CallKey) -> str:
    return f"{key.turn_id}/{key.step}/{key.call_id}"
