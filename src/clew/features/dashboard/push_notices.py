"""What browsers are told while nobody looks at the page: answers, questions, failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.ids import ConversationId
from clew.core.scope import LOCAL, Scope
from clew.core.text import truncate_text
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.store.contract import Tx

#: Characters of a text, and of arguments that are shown whole.
_MAX_TEXT: Final = 400
_MAX_ARGUMENTS: Final = 240
#: A turn that took less was watched, or was not waited for.
_SHORTEST_TURN: Final = 1000


class PushNotice(Record):
    """Something to tell."""

    #: The turn or approval, which is told once.
    subject: str
    scope: Scope
    content: Mapping[str, Any]

    def to_json(self) -> bytes:
        """Return the message, as the service worker reads it."""
        return json.dumps(self.content, ensure_ascii=False).encode()


def find_turn_notice(t: Tx, conversation: ConversationId) -> PushNotice | None:
    """Return what the last turn of a conversation ended with, if people are to be told."""
    row = t.fetch_one(
        """
        SELECT t.id, t.outcome, t.error, c.title, c.scope, t.finished_at - t.started_at
        FROM turn t JOIN conversation c ON c.id = t.conversation_id
        WHERE t.conversation_id = $1 AND t.state = 'done' AND c.adhoc = 0
        ORDER BY t.first_seq DESC LIMIT 1
        """,
        conversation,
    )
    # Chats of other fronts have their answer there.
    if row is None or row[1] == "cancelled" or row[4] != LOCAL or row[5] < _SHORTEST_TURN:
        return None
    turn, has_failed = str(row[0]), row[1] == "failed"
    text = str(row[2] or "") if has_failed else _read_answer(t, conversation, turn)
    content = _describe("failure" if has_failed else "answer", conversation, row[3], text)
    return PushNotice(subject=turn, scope=Scope(str(row[4])), content=content)


def _read_answer(t: Tx, conversation: ConversationId, turn: str) -> str:
    row = t.fetch_one(
        "SELECT text FROM entry WHERE conversation_id = $1 AND turn_id = $2 AND kind = 'message'"
        " AND role = 'assistant' ORDER BY seq DESC LIMIT 1",
        conversation,
        turn,
    )
    return "" if row is None else str(row[0])


def list_question_notices(t: Tx) -> list[PushNotice]:
    """Return the open questions of all conversations that nobody was told of."""
    rows = t.fetch_all(
        """
        SELECT a.id, a.conversation_id, a.tool, a.args, c.title, c.scope
        FROM approval a JOIN conversation c ON c.id = a.conversation_id
        WHERE a.state = 'open' AND a.expires_at > $1
            AND NOT EXISTS (SELECT 1 FROM dashboard_push_told d WHERE d.subject = a.id)
        ORDER BY a.asked_at LIMIT 50
        """,
        t.now,
    )
    return [_make_question(*row) for row in rows]


def _make_question(
    id: str, conversation: str, tool: str, args: str, title: Any, scope: str
) -> PushNotice:
    text = f"{tool} {args}"
    content = _describe("question", ConversationId(conversation), title, text)
    # Consent is given only to what is shown whole.
    is_whole = len(text) <= _MAX_ARGUMENTS and text.isprintable()
    return PushNotice(
        subject=id, scope=Scope(scope), content={**content, "approval": id, "whole": is_whole}
    )


def _describe(kind: str, conversation: ConversationId, title: Any, text: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "conversation": conversation,
        "title": str(title or "Clew"),
        "text": truncate_text(text, _MAX_TEXT),
    }
