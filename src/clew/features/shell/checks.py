"""Invariants of processes, for ``clew fsck``."""

from __future__ import annotations

from clew.plugin import sql_check

CHECKS = (
    sql_check(
        "shell-told",
        "The end of each process in the background was told once, and of no other.",
        """
        SELECT p.conversation, NULL, p.id, 0, 'its end was not told, or told before it ended'
        FROM shell_process p JOIN head h ON h.conversation_id = p.conversation
        WHERE (p.woken IS NOT NULL) <> (
            p.background = 1 AND (p.state = 'exited' OR p.state = 'stopped' OR p.state = 'lost')
        )
        """,
        decide="tell the agent in that conversation what became of the process",
    ),
    sql_check(
        "shell-ended",
        "A process has the time of its end exactly if it has ended.",
        """
        SELECT p.conversation, NULL, p.id, 0, 'its state and its times contradict each other'
        FROM shell_process p
        WHERE (p.ended_at IS NULL) <> (p.state = 'asked' OR p.state = 'running')
        """,
        decide="look with clew ps whether it runs",
    ),
)
