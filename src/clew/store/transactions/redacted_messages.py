"""What contexts have in the place of stored messages with a text that was forgotten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.forgotten_text import FORGOTTEN, redact_message, redact_text
from clew.core.session_base import EntryRange, InlineMessage, merge_ranges
from clew.core.session_prefix import dump_instructions, load_instructions
from clew.record import replace
from clew.store.transactions.attachments import TOOL_RESULT_TYPE, read_call_id
from clew.store.transactions.entries import find_answer_seq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.core.forgotten_text import Redaction
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.core.session_base import Base, BaseItem
    from clew.store.contract import Tx

#: Characters that JSON or LIKE writes otherwise: anything may stand there.
_SPECIAL: Final = re.compile(r"[^A-Za-z0-9 ,.;:!?'()-]+")
#: A scope or a conversation; each empty for all.
_CHOSEN: LiteralString = "($2 = '' OR c.scope = $2) AND ($3 = '' OR c.id = $3)"


def make_pattern(text: str) -> str:
    """Return a pattern of SQL that finds a text in stored messages, and seldom more."""
    return f"%{_SPECIAL.sub('%', text)}%"


def redact_stored(
    t: Tx,
    wanted: Redaction,
    *,
    entries: Mapping[ConversationId, Sequence[int]],
    scope: Scope | None = None,
    conversation: ConversationId | None = None,
) -> list[ConversationId]:
    """
    Have every context that is read from now on go without the texts; return where they were.

    ``entries``: those whose whole text goes, with all copies of them. Only messages of one
    scope or conversation are looked at, if that is given.
    """
    chosen = (scope or "", conversation or "")
    found = [
        *_redact_sources(t, wanted, entries, *chosen),
        *_redact_entries(t, wanted, *chosen),
        *_redact_base_items(t, wanted, *chosen),
        *_redact_instructions(t, wanted, *chosen),
    ]
    _withhold_results(t, wanted, *chosen)
    return list(dict.fromkeys(found))


def _redact_sources(
    t: Tx,
    wanted: Redaction,
    entries: Mapping[ConversationId, Sequence[int]],
    scope: str,
    conversation: str,
) -> Iterator[ConversationId]:
    for source, seqs in entries.items():
        for seq in seqs:
            said = t.fetch_one(
                "SELECT message, text FROM entry WHERE conversation_id = $1 AND seq = $2",
                source,
                seq,
            )
            if said is None:
                continue
            made = redact_message(said[0], wanted, whole=True)
            _store_redaction(t, source, seq, made, FORGOTTEN)
            yield source
            yield from _redact_copies(t, said[0], made, scope, conversation)


def _redact_copies(
    t: Tx, message: str, made: str, scope: str, conversation: str
) -> list[ConversationId]:
    """Change the copies of a message at the beginning of branches."""
    return t.fetch_column(
        f"""
        UPDATE base_item SET message = $4 WHERE message = $1 AND session_id IN (
            SELECT s.id FROM session s JOIN conversation c ON c.id = s.conversation_id
            WHERE {_CHOSEN}
        )
        RETURNING (SELECT s.conversation_id FROM session s WHERE s.id = session_id)
        """,
        message,
        scope,
        conversation,
        made,
    )


def _redact_entries(
    t: Tx, wanted: Redaction, scope: str, conversation: str
) -> Iterator[ConversationId]:
    for text in (*wanted.texts, *wanted.marks):
        for name, seq, message, said in t.fetch_all(
            f"""
            SELECT e.conversation_id, e.seq, COALESCE(r.message, e.message),
                COALESCE(r.text, e.text)
            FROM entry e JOIN conversation c ON c.id = e.conversation_id
            LEFT JOIN entry_redaction r ON r.conversation_id = e.conversation_id AND r.seq = e.seq
            WHERE e.message LIKE $1 AND e.kind = 'message' AND {_CHOSEN}
            """,
            make_pattern(text),
            scope,
            conversation,
        ):
            if (made := redact_message(message, wanted, whole=False)) != message:
                _store_redaction(t, name, seq, made, redact_text(said, wanted))
                yield name


def _store_redaction(
    t: Tx, conversation: ConversationId, seq: int, message: str, text: str
) -> None:
    t.execute(
        """
        INSERT INTO entry_redaction (conversation_id, seq, message, text) VALUES ($1, $2, $3, $4)
        ON CONFLICT (conversation_id, seq) DO UPDATE
        SET message = excluded.message, text = excluded.text
        """,
        conversation,
        seq,
        message,
        text,
    )


def _withhold_results(t: Tx, wanted: Redaction, scope: str, conversation: str) -> None:
    """
    Have no complete result be read that has a text: what contexts have of it is as it was.

    A database shows bytes as text in its own way: SQLite as they are, PostgreSQL in hex.
    """
    for text in (*wanted.texts, *wanted.marks):
        for name, label, content in t.fetch_all(
            f"""
            SELECT c.id, a.name, b.bytes FROM attachment a JOIN blob b ON b.sha256 = a.sha256
            JOIN conversation c ON c.id = a.conversation_id
            WHERE a.media_type = $5 AND {_CHOSEN}
                AND (CAST(b.bytes AS TEXT) LIKE $1 OR CAST(b.bytes AS TEXT) LIKE $4)
            """,
            make_pattern(text),
            scope,
            conversation,
            _make_hex_pattern(text),
            TOOL_RESULT_TYPE,
        ):
            result = bytes(content).decode(errors="ignore")
            if redact_text(result, wanted) != result:
                _keep_entry_redacted(t, name, read_call_id(label))


def _make_hex_pattern(text: str) -> str:
    return f"%{'%'.join(part.encode().hex() for part in _SPECIAL.split(text))}%"


def _keep_entry_redacted(t: Tx, conversation: ConversationId, call_id: str) -> None:
    t.execute(
        """
        INSERT INTO entry_redaction (conversation_id, seq, message, text)
        SELECT conversation_id, seq, message, text FROM entry
        WHERE conversation_id = $1 AND seq = $2
        ON CONFLICT (conversation_id, seq) DO NOTHING
        """,
        conversation,
        find_answer_seq(t, conversation, call_id) or 0,
    )


def _redact_base_items(
    t: Tx, wanted: Redaction, scope: str, conversation: str
) -> Iterator[ConversationId]:
    for text in (*wanted.texts, *wanted.marks):
        for name, session, position, message in t.fetch_all(
            f"""
            SELECT c.id, b.session_id, b.position, b.message
            FROM base_item b JOIN session s ON s.id = b.session_id
            JOIN conversation c ON c.id = s.conversation_id
            WHERE b.message LIKE $1 AND {_CHOSEN}
            """,
            make_pattern(text),
            scope,
            conversation,
        ):
            if (made := redact_message(message, wanted, whole=False)) != message:
                t.execute(
                    "UPDATE base_item SET message = $3 WHERE session_id = $1 AND position = $2",
                    session,
                    position,
                    made,
                )
                yield name


def _redact_instructions(
    t: Tx, wanted: Redaction, scope: str, conversation: str
) -> Iterator[ConversationId]:
    """Change the instructions of sessions that have ended: only a replay may send them."""
    for text in wanted.texts:
        for name, session, stored in t.fetch_all(
            f"""
            SELECT c.id, s.id, s.instructions
            FROM session s JOIN conversation c ON c.id = s.conversation_id
            WHERE s.instructions LIKE $1 AND s.ended_at IS NOT NULL AND {_CHOSEN}
            """,
            make_pattern(text),
            scope,
            conversation,
        ):
            made = _redact_parts(stored, wanted)
            if made != stored:
                t.execute("UPDATE session SET instructions = $2 WHERE id = $1", session, made)
                yield name


def _redact_parts(stored: str, wanted: Redaction) -> str:
    """Return stored instructions without the texts."""
    parts = load_instructions(stored)
    made = [replace(part, text=redact_text(part.text, wanted)) for part in parts]
    return stored if made == list(parts) else dump_instructions(made)


def write_out_redacted(t: Tx, conversation: ConversationId, base: Base) -> Base:
    """Return a base with the messages that stand for entries of its ranges written out."""
    return merge_ranges(
        part
        for item in base
        for part in (
            _split_range(t, conversation, item) if isinstance(item, EntryRange) else (item,)
        )
    )


def _split_range(t: Tx, conversation: ConversationId, item: EntryRange) -> Iterable[BaseItem]:
    first = item.first
    for seq, form, message in t.fetch_all(
        """
        SELECT r.seq, e.format, r.message FROM entry_redaction r
        JOIN entry e ON e.conversation_id = r.conversation_id AND e.seq = r.seq
        WHERE r.conversation_id = $1 AND r.seq BETWEEN $2 AND $3 ORDER BY r.seq
        """,
        conversation,
        item.first,
        item.last,
    ):
        if first < seq:
            yield EntryRange(first=first, last=seq - 1)
        yield InlineMessage(format=form, message=message)
        first = seq + 1
    if first <= item.last:
        yield EntryRange(first=first, last=item.last)
