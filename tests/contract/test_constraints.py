"""The schema refuses invalid rows, whatever the code above it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

import pytest

from clew.core.ids import ConversationId, SessionId, new_session_id
from clew.errors import ConstraintViolated
from clew.store import search
from clew.store.transactions import deletion, sessions
from tests.contract import acting
from tests.contract.acting import message, started

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from tests.contract.desk import Desk

_SESSION: LiteralString = """
    INSERT INTO session (id, conversation_id, predecessor, opened_at, opened_by, opened_seq,
                         operation, ended_at, end_reason)
    SELECT 'ses_x', 'cnv_1', {}, 0, 'x', 0, 'op_x', {} FROM head WHERE conversation_id = 'cnv_1'
"""
_ENTRY: LiteralString = """
    INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, format,
                       message, created_at, prev_hash, hash)
    SELECT conversation_id, {}, {}, session_id, turn_id, kind, role, text, format,
           message, created_at, prev_hash, hash FROM entry
"""
_INBOX: LiteralString = """
    INSERT INTO inbox (id, conversation_id, kind, text, double_text, received_at, due_at, outcome,
                       turn_id, step, resolved_at)
    VALUES ('inb_x', 'cnv_1', 'message', 'x', 'queue', 0, 0, {})
"""

#: Statements that break a rule, by the constraint that refuses them.
FORBIDDEN: dict[str, LiteralString] = {
    "3.1 a second open session": _SESSION.format("session_id", "NULL, NULL"),
    "3.1 a second first session": _SESSION.format("NULL", "1, 'x'"),
    "3.1 a session that follows itself": _SESSION.format("'ses_x'", "1, 'x'"),
    "3.1 a session that follows one of nobody": _SESSION.format("'ses_nobody'", "1, 'x'"),
    "3.1 an end without a reason": "UPDATE session SET ended_at = 1",
    "3.1 a head without a session": "UPDATE head SET session_id = 'ses_nobody'",
    "3.2 a number twice": _ENTRY.format("1", "'ent_x'"),
    "3.2 an entry twice": _ENTRY.format("2", "id"),
    "3.2 a number that is none": _ENTRY.format("0", "'ent_x'"),
    "3.2 a change of what was said": "UPDATE entry SET text = 'never said'",
    "3.2 another place for what was said": "UPDATE entry SET seq = 7",
    "3.2 a removal of what was said": "DELETE FROM entry",
    "3.4 an owner without an end": "UPDATE lease SET expires_at = NULL",
    "3.4 a fence below zero": "UPDATE lease SET fence = -1",
    "3.6 a second unfinished turn": """
        INSERT INTO turn (id, conversation_id, state, first_seq, started_at)
        VALUES ('trn_x', 'cnv_1', 'waiting', 1, 0)
    """,
    "3.6 a done turn without an outcome": "UPDATE turn SET state = 'done', finished_at = 1",
    "3.6 an outcome of a running turn": "UPDATE turn SET outcome = 'answered'",
    "3.7 an event twice": """
        INSERT INTO dedupe (key, inbox_id, conversation_id)
        SELECT key, 'inb_x', conversation_id FROM dedupe
    """,
    "3.9 an outcome without a time": _INBOX.format("'cancelled', NULL, NULL, NULL"),
    "3.9 a merged message without a turn": _INBOX.format("'merged', NULL, NULL, 1"),
    "3.9 a turn of an open item": _INBOX.format("NULL, 'trn_1', NULL, NULL"),
    "3.9 a cancelled message with a turn": _INBOX.format("'cancelled', 'trn_1', NULL, 1"),
    "3.9 a step of a message that did not steer": _INBOX.format("'turn', 'trn_1', 1, 1"),
    "3.9 a step of an open item": _INBOX.format("NULL, NULL, 1, NULL"),
    "3.9 a message that steered at no step": _INBOX.format("'steered', 'trn_1', NULL, 1"),
    "3.9 an unknown outcome": _INBOX.format("'lost', NULL, NULL, 1"),
    "3.9 a turn of nobody": _INBOX.format("'turn', 'trn_nobody', NULL, 1"),
    "3.12 an input twice": "UPDATE inbox SET id = 'inb_2'",
    "a route to nowhere": "UPDATE route SET conversation_id = 'cnv_nowhere'",
    "a result without a status": """
        INSERT INTO journal (turn_id, step, call_id, conversation_id, position, tool, args, effect,
                             format, result, started_at)
        VALUES ('trn_1', 1, 'c', 'cnv_1', 0, 't', '{}', 'once', 'f', 'r', 0)
    """,
    "a call of nobody's turn": """
        INSERT INTO journal (turn_id, step, call_id, conversation_id, position, tool, args, effect,
                             started_at)
        VALUES ('trn_nobody', 1, 'c', 'cnv_1', 0, 't', '{}', 'once', 0)
    """,
    "a delivery that nobody sends": """
        INSERT INTO delivery (id, conversation_id, route, kind, body, state, due_at, created_at,
                              updated_at)
        VALUES ('dlv_x', 'cnv_1', 'r', 'answer', '{}', 'sending', 0, 0, 0)
    """,
    "a base item that is a range and a literal": """
        INSERT INTO base_item (session_id, position, first_seq, last_seq, format, message)
        SELECT session_id, 0, 1, 1, 'f', 'm' FROM head
    """,
    "a range that ends before it begins": """
        INSERT INTO base_item (session_id, position, first_seq, last_seq)
        SELECT session_id, 0, 2, 1 FROM head
    """,
    "a title of nobody": "UPDATE conversation SET title = 'x'",
}


@pytest.mark.parametrize("sql", [pytest.param(sql, id=name) for name, sql in FORBIDDEN.items()])
def test_the_schema_refuses(desk: Desk, sql: LiteralString) -> None:
    started(desk)
    desk.do(acting.accept, message("inb_2", event=("telegram", "bot", "1")))
    before = desk.snapshot()
    with pytest.raises(ConstraintViolated):
        desk.do(_run, sql)
    assert desk.snapshot() == before


def _run(t: Tx, sql: LiteralString) -> None:
    t.execute(sql)


def test_a_session_has_one_successor(desk: Desk) -> None:
    """3.1: a fork is impossible, also through the code that opens sessions."""
    lease = started(desk).lease
    found = desk.do(acting.expected)
    desk.do(acting.rotate, lease, found)
    before = desk.snapshot()
    with pytest.raises(ConstraintViolated):
        desk.do(_fork, predecessor=found.session)
    assert desk.snapshot() == before


def _fork(t: Tx, *, predecessor: SessionId) -> None:
    t.execute("UPDATE session SET ended_at = $1, end_reason = 'fork' WHERE ended_at IS NULL", t.now)
    sessions.insert_session(
        t, ConversationId("cnv_1"), predecessor=predecessor, opened_by="fork", opened_seq=1,
        base=(), operation="op_fork", session_ids=new_session_id,
    )  # fmt: skip


def test_two_conversations_of_one_scope_have_two_titles(desk: Desk) -> None:
    desk.do(acting.accept, message("inb_1"))
    desk.do(acting.accept, message("inb_2"), acting.local_route("other"), "cnv_2")
    with pytest.raises(ConstraintViolated):
        desk.do(_run, "UPDATE conversation SET title = 'same', titled_by = 'person'")


def test_a_message_is_deleted_only_with_its_conversation(desk: Desk) -> None:
    """3.2"""
    started(desk)
    assert desk.do(deletion.mark_deleted, ConversationId("cnv_1"))
    desk.do(_run, "DELETE FROM inbox")
    desk.do(_run, "DELETE FROM entry")
    assert desk.snapshot()["entry"] == []
    # By hand, the search index was not told.
    desk.do(search.mark_damaged)
    desk.do(search.start_rebuild)
