"""Skills that a conversation has loaded: they stay in force in its later sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.ids import ConversationId
from clew.core.session import BRANCH
from clew.errors import NotFound
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from clew.features.skills.scanning import Skill
    from clew.store.contract import Tx


class LoadedSkill(Record):
    """A skill that a conversation has loaded."""

    conversation: ConversationId
    name: str
    source: str
    digest: str
    #: JSON: tool and pattern of each call that it lists; ``None`` if it limits nothing.
    tools: str | None
    at: int


_COLUMNS: LiteralString = "conversation, name, source, digest, tools, at"
LOADED: Final = RecordQuery(
    LoadedSkill, f"SELECT {_COLUMNS} FROM skills_loaded", {"conversation": ConversationId}
)


def list_loaded(t: Tx, conversation: ConversationId) -> list[LoadedSkill]:
    """Return the skills that a conversation has loaded, the last one last."""
    return LOADED.fetch_all(t, "WHERE conversation = $1 ORDER BY at, name", conversation)


def record_loaded(t: Tx, conversation: ConversationId, skill: Skill) -> None:
    """Record that a conversation has loaded a skill; repeating it changes nothing."""
    allowed = skill.header.allowed_tools
    listed = None if allowed is None else [[one.tool, one.command] for one in allowed if one.tool]
    t.execute(
        """
        INSERT INTO skills_loaded (conversation, name, source, digest, tools, at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (conversation, name) DO UPDATE SET
            source = excluded.source, digest = excluded.digest, tools = excluded.tools
        """,
        conversation,
        skill.name,
        skill.source.name,
        skill.digest,
        None if listed is None else json.dumps(listed),
        t.now,
    )


def is_new_branch(t: Tx, conversation: ConversationId) -> bool:
    """Return whether a conversation was branched from another, and has told its model nothing."""
    return t.exists(
        """
        SELECT 1 FROM session s WHERE s.conversation_id = $1 AND s.opened_by = $2
            AND NOT EXISTS (
                SELECT 1 FROM session o
                WHERE o.conversation_id = $1 AND o.instructions IS NOT NULL
            )
        """,
        conversation,
        BRANCH,
    )


def copy_loaded(t: Tx, branch: ConversationId) -> None:
    """Have the skills that were in force where a conversation was branched be so in the branch."""
    t.execute(
        """
        INSERT INTO skills_loaded (conversation, name, source, digest, tools, at)
        SELECT c.id, l.name, l.source, l.digest, l.tools, l.at
        FROM conversation c JOIN skills_loaded l ON l.conversation = c.origin
        WHERE c.id = $1 AND l.at <= COALESCE(
            (SELECT e.created_at FROM entry e
                WHERE e.conversation_id = c.origin AND e.seq = c.origin_seq),
            c.created_at)
        ON CONFLICT (conversation, name) DO NOTHING
        """,
        branch,
    )


def drop_loaded(t: Tx, conversation: ConversationId, name: str) -> None:
    """
    Record that a skill is in force no more.

    :raises NotFound: if the conversation has not loaded it
    """
    if not t.execute(
        "DELETE FROM skills_loaded WHERE conversation = $1 AND name = $2", conversation, name
    ):
        raise NotFound("loaded skill", name)
