"""Conversations in which much has happened, for what has to keep all of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from clew.core.route import local_route
from clew.store.transactions import settings

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from tests.line.world import World

#: The contents of an attachment.
PICTURE = bytes(range(256))


async def lead(world: World) -> list[ConversationId]:
    """
    Tools, an approval, an undo, a branch, a fresh start, a deletion, an attachment and a title.

    The ids of what is left.
    """
    engine = world.engine
    asked = await world.say("a:look read;pay")
    question = await world.question(asked.conversation_id)
    await engine.answer_approval(question.id, yes=True)
    await world.end(asked)
    for text in ("b:", "c:send"):
        await world.end(await world.say(text))
    await world.end(await engine.sessions.queue_undo(asked.conversation_id))
    await world.end(await world.say("d:"))
    await engine.rename_conversation(asked.conversation_id, "Ünder <all> & \u2028 everything")
    await world.store.inner.write(_attach, asked.conversation_id)
    branch = await engine.sessions.branch_conversation(
        asked.conversation_id, route=local_route("side")
    )
    await world.end(await world.say("e:look", to="side"))
    await engine.start_new_conversation(local_route("side"))
    await world.idle(branch)
    gone = await world.say("f:", to="gone")
    await world.end(gone)
    await engine.delete_conversation(gone.conversation_id)
    await engine.wait_until_idle()
    return [asked.conversation_id, branch, await engine.resolve_name("side")]


def _attach(t: Tx, conversation: ConversationId) -> None:
    sha256 = hashlib.sha256(PICTURE).digest()
    t.execute(
        """
        INSERT INTO blob (sha256, size, media_type, bytes, created_at)
        VALUES ($1, $2, 'image/png', $3, $4)
        """,
        sha256,
        len(PICTURE),
        PICTURE,
        t.now,
    )
    t.execute(
        """
        INSERT INTO attachment (id, conversation_id, seq, sha256, name, media_type)
        VALUES ('att_1', $1, 1, $2, 'a.png', 'image/png')
        """,
        conversation,
        sha256,
    )
    settings.put_setting(t, conversation, "colour", '"blue"')
