"""Texts that a person has had forgotten: contexts go on without them, the log stays as it is."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from clew.core import session as reasons
from clew.core.double_text import DoubleText
from clew.core.inbox import InboxKind, NewInput
from clew.core.session import Head
from clew.core.session_base import EntryRange, InlineMessage, merge_ranges
from clew.store.transactions import inbox, leases
from clew.store.transactions.context import read_head_context
from clew.store.transactions.sessions import end_session, find_session_by_operation, rotate_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.core.ids import ConversationId, InboxId, SessionIdFactory
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.core.session_base import BaseItem
    from clew.store.contract import Tx
    from clew.store.transactions.context import Context, ContextMessage

#: The queued command.
FORGET_COMMAND: Final = "forget"
#: Characters that JSON or LIKE writes otherwise: anything may stand there.
_SPECIAL: Final = re.compile(r"[^A-Za-z0-9 ,.;:!?'()-]+")
#: What stands in the place of a text.
FORGOTTEN: Final = "[forgotten]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Redaction:
    """Texts and entries that a context goes on without."""

    texts: tuple[str, ...]
    #: Each line with one of these goes: they name entries that are quoted.
    marks: tuple[str, ...] = ()
    #: Entries whose whole text goes.
    entries: tuple[int, ...] = ()


def queue_redaction(
    t: Tx,
    conversation: ConversationId,
    wanted: Redaction,
    *,
    id: InboxId,
    session_ids: SessionIdFactory,
) -> None:
    """Have the context of a conversation go on without some texts, once its turn has ended."""
    payload = json.dumps(asdict(wanted), ensure_ascii=False)
    inbox.accept_input(
        t,
        NewInput(
            id=id,
            kind=InboxKind.COMMAND,
            text=FORGET_COMMAND,
            payload=payload,
            double_text=DoubleText.QUEUE,
        ),
        target=conversation,
        new_conversation=conversation,
        session_ids=session_ids,
    )


def list_holders(t: Tx, text: str, *, scope: Scope | None) -> list[ConversationId]:
    """
    Return the conversations whose instructions or context may have a text.

    ``scope``: only its conversations; ``None`` for those of all.
    """
    pattern = f"%{_SPECIAL.sub('%', text)}%"
    return t.fetch_column(
        """
        SELECT h.conversation_id FROM head h
        JOIN session s ON s.id = h.session_id
        JOIN conversation c ON c.id = h.conversation_id AND c.deleting_at IS NULL
        WHERE ($2 = '' OR c.scope = $2) AND (
            (s.ended_at IS NULL AND s.instructions LIKE $1)
            OR EXISTS (
                SELECT 1 FROM entry e WHERE e.conversation_id = c.id AND e.seq > s.opened_seq
                    AND e.message LIKE $1
            )
            OR EXISTS (SELECT 1 FROM base_item b WHERE b.session_id = s.id AND b.message LIKE $1)
            OR EXISTS (
                SELECT 1 FROM base_item b JOIN entry e
                    ON e.conversation_id = c.id AND e.seq BETWEEN b.first_seq AND b.last_seq
                WHERE b.session_id = s.id AND e.message LIKE $1
            )
        )
        ORDER BY 1
        """,
        pattern,
        scope or "",
    )


def take_wanted(t: Tx, item: InboxItem) -> Redaction:
    """Return what a queued command asks for, and erase that from it."""
    given: dict[str, Any] = json.loads(item.payload)
    t.execute("UPDATE inbox SET payload = '{}' WHERE id = $1", item.id)
    return Redaction(**{name: tuple(value) for name, value in given.items()})


def redact_context(
    t: Tx, lease: Lease, wanted: Redaction, *, operation: str, session_ids: SessionIdFactory
) -> Session | None:
    """
    Open a session whose context and instructions do not have the texts.

    Repeating it with the same ``operation`` returns the same session. A closed conversation
    stays closed, and is continued from a session without them; then ``None`` is returned.

    :raises LeaseLost: if the lease is not held any more
    """
    if (done := find_session_by_operation(t, operation)) is not None:
        return done if done.is_open else None
    last_seq = leases.verify_lease_for_write(t, lease)
    found = read_head_context(t, lease.conversation_id)
    opened = rotate_session(
        t,
        lease,
        operation=operation,
        expected=Head(session=found.session.id, last_seq=last_seq),
        base=merge_ranges(_redact_messages(found, wanted)),
        reason=reasons.FORGET,
        session_ids=session_ids,
    )
    if found.session.end_reason is None:
        return opened
    end_session(t, opened.id, found.session.end_reason)
    return None


def _redact_messages(found: Context, wanted: Redaction) -> Iterator[BaseItem]:
    for item in found.messages:
        message = _redact_message(item, wanted)
        if item.seq is not None and message == item.message:
            yield EntryRange(first=item.seq, last=item.seq)
        else:
            yield InlineMessage(format=item.format, message=message)


def _redact_message(item: ContextMessage, wanted: Redaction) -> str:
    """Return a message without the texts, unchanged to the byte if it has none of them."""
    given = json.loads(item.message)
    whole = item.seq is not None and item.seq in wanted.entries
    made = _redact_value(given, wanted, in_prompt=whole)
    if made == given:
        return item.message
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def _redact_value(value: Any, wanted: Redaction, *, in_prompt: bool) -> Any:
    if isinstance(value, str):
        return _redact_text(value, wanted)
    if isinstance(value, list):
        return [_redact_value(one, wanted, in_prompt=in_prompt) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if in_prompt and fields.get("part_kind") == "user-prompt":
            return {**fields, "content": FORGOTTEN}
        return {key: _redact_value(one, wanted, in_prompt=in_prompt) for key, one in fields.items()}
    return value


def _redact_text(value: str, wanted: Redaction) -> str:
    for text in wanted.texts:
        value = value.replace(text, FORGOTTEN)
    if any(mark in value for mark in wanted.marks):
        lines = value.split("\n")
        value = "\n".join(
            FORGOTTEN if any(mark in line for mark in wanted.marks) else line for line in lines
        )
    if value[:1] not in ("{", "["):
        return value
    # Arguments of calls are stored as JSON in a string.
    try:
        inner = json.loads(value)
    except ValueError:
        return value
    made = _redact_value(inner, wanted, in_prompt=False)
    return value if made == inner else json.dumps(made, ensure_ascii=False)
