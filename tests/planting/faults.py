"""Faults of a store: how to plant each, and the finding that a check must report."""

from __future__ import annotations

from dataclasses import dataclass

from tests.planting.story import Story

#: A finding, as (check, seq or the subject's name in the fault's conversation).
Finds = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is wrong, in a conversation of its own: ``cnv_NAME``, for ``{n}`` NAME."""

    name: str
    sql: tuple[str, ...]
    #: The checks that find it, one name per finding.
    finds: Finds
    #: ``told``: the story is told; ``marked``: and marked as deleted; ``deleted``: and gone.
    story: str = "told"
    #: Replaces ``sql`` on PostgreSQL, if the two databases differ.
    on_postgres: tuple[str, ...] | None = None
    #: It says nothing of one conversation.
    everywhere: bool = False

    @property
    def told(self) -> Story:
        return Story(name=self.name)

    def statements(self, url: str) -> list[str]:
        sqlite = url.startswith("sqlite") or self.on_postgres is None
        chosen = self.sql if sqlite else self.on_postgres
        return [sql.replace("{n}", self.name) for sql in chosen or ()]


def fault(name: str, *sql: str, finds: str | None = None, **more: object) -> Fault:
    """A fault that is found by the check of its name, or by those that are named."""
    found = (name,) if finds is None else tuple(finds.split())
    return Fault(name=name.replace("-", "_"), sql=sql, finds=found, **more)  # type: ignore[arg-type]


_OF = "WHERE conversation_id = 'cnv_{n}'"
_ROUTE = "INSERT INTO route (key, conversation_id, moved_at) VALUES ('agent:main:local:{n}_x', "
_INPUT = (
    "INSERT INTO inbox (id, conversation_id, kind, text, double_text, received_at, due_at)"
    " VALUES ('inb_{n}_left', 'cnv_{n}', 'message', 'left', 'queue', 1, 1)"
)
_OTHER_INPUT = _INPUT.replace("'cnv_{n}'", "'cnv_{n}_lost'")

#: Faults with one certain correction: a repair makes the store clean.
REPAIRABLE = (
    fault("lease-row", f"DELETE FROM lease {_OF}"),
    fault("lease-held", f"UPDATE lease SET owner = 'own_gone', expires_at = NULL {_OF}"),
    fault("head-row", f"DELETE FROM head {_OF}"),
    fault("head-last", f"UPDATE head SET session_id = 'ses_{{n}}_1' {_OF}"),
    fault(
        "ended-session",
        "UPDATE session SET ended_at = 5, end_reason = 'idle' WHERE id = 'ses_{n}_2'",
        "UPDATE session SET ended_at = NULL, end_reason = NULL WHERE id = 'ses_{n}_1'",
    ),
    fault("end-reason", "UPDATE session SET end_reason = 'x' WHERE id = 'ses_{n}_2'"),
    fault("session-begin", "UPDATE session SET opened_seq = opened_seq + 1 WHERE id = 'ses_{n}_2'"),
    fault("last-seq", f"UPDATE lease SET last_seq = last_seq - 1 {_OF}"),
    fault(
        "one-unfinished-turn",
        "UPDATE turn SET state = 'running', outcome = NULL, finished_at = NULL"
        " WHERE id = 'trn_{n}_1'",
    ),
    fault("turn-state", "UPDATE turn SET state = 'running' WHERE id = 'trn_{n}_2'"),
    fault("turn-begin", "UPDATE turn SET first_seq = first_seq + 1 WHERE id = 'trn_{n}_2'"),
    fault("turn-inputs", "UPDATE inbox SET outcome = 'merged' WHERE id = 'inb_{n}_2'"),
    fault("call-step", "UPDATE turn SET steps = 0 WHERE id = 'trn_{n}_1'"),
    fault("call-result", f"UPDATE journal SET finished_at = NULL {_OF}"),
    fault("approval-open", f"UPDATE approval SET state = 'open', answered_at = NULL {_OF}"),
    fault("approval-answer", f"UPDATE approval SET answered_at = NULL {_OF}"),
    fault("grant-pattern", f"UPDATE approval_grant SET pattern = 'x' {_OF}"),
    fault("grant-used", f"UPDATE journal SET grant_id = 'grt_none' {_OF}"),
    fault("input-outcome", "UPDATE inbox SET resolved_at = NULL WHERE id = 'inb_{n}_3'"),
    fault(
        "event-stored",
        f"UPDATE dedupe SET expires_at = NULL {_OF}",
        story="deleted",
        finds="event-stored event-stored event-stored",
    ),
    fault(
        "key-input",
        "INSERT INTO idempotency (key, body, inbox_id, conversation_id, created_at, expires_at)"
        " VALUES (CAST('{n}' AS @BYTES), CAST('{n}' AS @BYTES), 'inb_{n}_3', 'cnv_{n}', 1,"
        " 9000000000000)",
        story="deleted",
    ),
    fault("key-answer", f"UPDATE idempotency SET answer = NULL {_OF}"),
    fault("delivery-turn", "UPDATE delivery SET turn_id = 'trn_gone' WHERE id = 'dlv_{n}_2'"),
    fault(
        "delivery-owner",
        "UPDATE delivery SET state = 'sending', owner = NULL WHERE id = 'dlv_{n}_2'",
    ),
    fault(
        "part-state", "UPDATE delivery_chunk SET state = 'sending' WHERE delivery_id = 'dlv_{n}_2'"
    ),
    fault(
        "part-delivered",
        "UPDATE delivery_chunk SET platform_id = '7' WHERE delivery_id = 'dlv_{n}_2'"
        " AND position = 1",
    ),
    fault("route-leads", f"{_ROUTE} 'cnv_{{n}}_gone', 1)", everywhere=True),
    fault(
        "deleted-reach",
        "INSERT INTO lease (conversation_id, last_seq, updated_at) VALUES ('cnv_{n}', 10, 1)",
        story="marked",
    ),
    fault(
        "deleted-open",
        "UPDATE inbox SET outcome = NULL, resolved_at = NULL WHERE id = 'inb_{n}_4'",
        story="marked",
    ),
    fault("tombstone", f"DELETE FROM tombstone {_OF}", story="marked"),
    fault("deleted-rows", _INPUT, story="deleted"),
    fault(
        "feature-rows",
        "CREATE TABLE nook (id TEXT PRIMARY KEY, conversation TEXT)",
        "INSERT INTO feature_table (name, feature, key_columns, conversation_column) "
        "VALUES ('nook', 'nook', 'id', 'conversation')",
        "INSERT INTO nook (id, conversation) VALUES ('1', 'cnv_{n}')",
        story="deleted",
    ),
    fault(
        "loose-ends",
        "INSERT INTO base_item (session_id, position, first_seq, last_seq)"
        " VALUES ('ses_{n}_gone', 0, 1, 1), ('ses_{n}_gone', 1, 2, 2)",
        "UPDATE journal SET turn_id = 'trn_{n}_gone' WHERE turn_id = 'trn_{n}_1'",
        finds="loose-ends loose-ends",
        everywhere=True,
    ),
    fault(
        "title-unique",
        "DROP INDEX conversation_title",
        "UPDATE conversation SET title = 'Title of well', titled_by = 'model' WHERE id = 'cnv_{n}'",
        finds="title-unique schema",
        everywhere=True,
    ),
    fault("title-by", "UPDATE conversation SET titled_by = NULL WHERE id = 'cnv_{n}'"),
    fault(
        "lock-left",
        "INSERT INTO lock (name, holder, expires_at) VALUES ('compression:cnv_{n}', 'x', 1)",
        everywhere=True,
    ),
    fault(
        "owner-left",
        "INSERT INTO owner (id, host, pid, role, version, started_at)"
        " VALUES ('own_{n}', 'h', 1, 'serve', '0', 1)",
        everywhere=True,
    ),
    fault(
        "blob-content",
        f"UPDATE blob SET size = size + 1 WHERE sha256 = (SELECT sha256 FROM attachment {_OF})",
        everywhere=True,
    ),
    fault(
        "blob-used",
        f"UPDATE blob SET created_at = 1 WHERE sha256 = (SELECT sha256 FROM attachment {_OF})",
        f"DELETE FROM attachment {_OF}",
        everywhere=True,
    ),
    fault(
        "session-tools",
        "UPDATE session SET tools = 'gone' WHERE id = 'ses_{n}_2'",
    ),
    fault(
        "search-index",
        "UPDATE search_state SET indexed = (SELECT max(n) FROM entry)",
        on_postgres=("DELETE FROM search_todo WHERE n < 5",),
        everywhere=True,
    ),
    fault("missing-index", "DROP INDEX inbox_open", finds="schema", everywhere=True),
    fault(
        "missing-trigger",
        "DROP TRIGGER entry_stays",
        on_postgres=("DROP TRIGGER entry_kept ON entry",),
        finds="schema",
        everywhere=True,
    ),
)

#: Faults that only a person can decide: a repair leaves them unchanged.
UNDECIDED = (
    fault("one-chain", "UPDATE session SET predecessor = 'ses_gone' WHERE id = 'ses_{n}_2'"),
    fault(
        "base-range",
        "UPDATE base_item SET last_seq = 100 WHERE session_id = 'ses_{n}_2' AND position = 1",
    ),
    fault(
        "base-once",
        "INSERT INTO base_item (session_id, position, first_seq, last_seq)"
        " VALUES ('ses_{n}_2', 2, 7, 7)",
    ),
    fault("base-whole", "DELETE FROM base_item WHERE session_id = 'ses_{n}_2' AND position = 0"),
    fault("seq-gapless", f"DELETE FROM entry {_OF} AND seq = 5"),
    fault("lost-end", f"DELETE FROM entry {_OF} AND seq = 10", finds="last-seq"),
    fault(
        "entry-belongs",
        "DELETE FROM turn WHERE id = 'trn_{n}_3'",
        finds="entry-belongs entry-belongs input-turn",
    ),
    fault("changed", f"UPDATE entry SET text = 'never said' {_OF} AND seq = 4", finds="hash-chain"),
    fault(
        "swapped",
        f"UPDATE entry SET seq = 99 {_OF} AND seq = 2",
        f"UPDATE entry SET seq = 2 {_OF} AND seq = 3",
        f"UPDATE entry SET seq = 3 {_OF} AND seq = 99",
        finds="hash-chain hash-chain hash-chain",
    ),
    fault(
        "call-answered",
        "UPDATE base_item SET first_seq = 3 WHERE session_id = 'ses_{n}_2' AND position = 1",
    ),
    fault("call-once", f"UPDATE journal SET runs = 2 {_OF}"),
    fault("half-result", f"UPDATE journal SET result = NULL {_OF}", finds="call-result"),
    fault("completion-entries", "UPDATE inbox SET kind = 'completion' WHERE id = 'inb_{n}_3'"),
    fault("input-kind", "UPDATE inbox SET kind = 'command' WHERE id = 'inb_{n}_3'"),
    fault(
        "no-outcome", "UPDATE turn SET outcome = NULL WHERE id = 'trn_{n}_3'", finds="turn-state"
    ),
    fault(
        "no-input",
        "DELETE FROM inbox WHERE id = 'inb_{n}_2'",
        finds="turn-inputs event-stored",
    ),
    fault("stray-step", "UPDATE inbox SET step = 3 WHERE id = 'inb_{n}_3'", finds="input-outcome"),
    fault("delivery-entry", "UPDATE delivery SET seq = 99 WHERE id = 'dlv_{n}_2'"),
    fault("known-words", "UPDATE delivery SET kind = 'letter' WHERE id = 'dlv_{n}_2'"),
    fault(
        "attachment-bytes",
        f"DELETE FROM blob WHERE sha256 = (SELECT sha256 FROM attachment {_OF})",
    ),
    fault(
        "changed-bytes",
        "UPDATE blob SET bytes = CAST('other' AS @BYTES), size = 5"
        f" WHERE sha256 = (SELECT sha256 FROM attachment {_OF})",
        finds="blob-content",
        everywhere=True,
    ),
    fault(
        "tools-content",
        "INSERT INTO toolset (digest, definitions, used_at) VALUES ('{n}', '[]', 1)",
        everywhere=True,
    ),
    fault("lost-conversation", _OTHER_INPUT, finds="deleted-rows", everywhere=True),
)

EVERY = (*REPAIRABLE, *UNDECIDED)
