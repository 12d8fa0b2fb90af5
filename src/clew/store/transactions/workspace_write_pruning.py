"""Writes to workspaces that nothing needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.call_reach import WorkspaceWrite
from clew.record import Record
from clew.store.transactions.workspace_writes import CLOCK_SKEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.store.contract import Tx

#: Writes that are looked at, or deleted, in one transaction.
_AT_ONCE: Final = 500


class StoredWrite(Record):
    """A write that is over, as maintenance looks at it."""

    call: str
    write: WorkspaceWrite
    untrusted: bool
    unseen: bool


def delete_repeated_writes(t: Tx) -> int:
    """Delete some writes of trusted text that an older one of the same path stands for."""
    return t.execute(
        """
        DELETE FROM workspace_write WHERE (call, path) IN (
            SELECT w.call, w.path FROM workspace_write w LEFT JOIN turn r ON r.id = w.turn
            WHERE w.untrusted = 0 AND (w.ended_at IS NOT NULL OR r.finished_at IS NOT NULL)
                AND EXISTS (
                    SELECT 1 FROM workspace_write o
                    WHERE o.workspace = w.workspace AND o.path = w.path AND o.place = w.place
                        AND o.unseen >= w.unseen AND (o.began_at, o.call) < (w.began_at, w.call)
                )
            LIMIT $1
        )
        """,
        _AT_ONCE,
    )


def list_written_workspaces(t: Tx, place: str) -> list[str]:
    """Return the workspaces of a machine and home to which something was written."""
    return t.fetch_column(
        "SELECT DISTINCT workspace FROM workspace_write WHERE place = $1 ORDER BY workspace", place
    )


def list_ended_writes(
    t: Tx, place: str, workspace: str, *, after: tuple[int, str, str], before: int
) -> list[StoredWrite]:
    """Return some writes to a workspace that ended ``before`` a time, beyond another one."""
    return [
        StoredWrite(
            call=call,
            write=WorkspaceWrite(path=path, began_at=began_at, ended_at=ended_at),
            untrusted=bool(untrusted),
            unseen=bool(unseen),
        )
        for call, path, began_at, ended_at, untrusted, unseen in t.fetch_all(
            """
            SELECT call, path, began_at, ended_at, untrusted, unseen FROM (
                SELECT w.call, w.path, w.began_at, w.untrusted, w.unseen,
                    COALESCE(w.ended_at, r.finished_at + $3) AS ended_at
                FROM workspace_write w LEFT JOIN turn r ON r.id = w.turn
                WHERE w.place = $1 AND w.workspace = $2
                    AND (w.began_at, w.call, w.path) > ($4, $5, $6)
            ) AS ended
            WHERE ended_at < $7 ORDER BY began_at, call, path LIMIT $8
            """,
            place,
            workspace,
            CLOCK_SKEW,
            *after,
            before,
            _AT_ONCE,
        )
    ]


def delete_writes(t: Tx, writes: Sequence[StoredWrite]) -> None:
    """Delete writes, unless one runs again."""
    for one in writes:
        t.execute(
            """
            DELETE FROM workspace_write WHERE call = $1 AND path = $2 AND began_at = $3
                AND COALESCE(ended_at, $4) = $4
            """,
            one.call,
            one.write.path,
            one.write.began_at,
            one.write.ended_at,
        )
