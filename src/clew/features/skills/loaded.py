"""Skills that a conversation has loaded: they stay in force in its later sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.ids import ConversationId
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


def drop_loaded(t: Tx, conversation: ConversationId, name: str) -> None:
    """
    Record that a skill is in force no more.

    :raises NotFound: if the conversation has not loaded it
    """
    if not t.execute(
        "DELETE FROM skills_loaded WHERE conversation = $1 AND name = $2", conversation, name
    ):
        raise NotFound("loaded skill", name)
