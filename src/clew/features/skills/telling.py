"""What people are told of skills that are not trusted: once for each state of their files."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from clew.errors import LeaseHeld
from clew.features.skills import trust
from clew.features.skills.library import list_sources
from clew.features.skills.wording import format_untold
from clew.store.transactions import chat_notices
from clew.store.transactions.conversations import get_scope, list_routes
from clew.store.transactions.sessions import get_head

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.core.ids import ConversationId, OwnerId
    from clew.features.skills.trust import SkillTrust
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx


async def tell_untrusted(context: FeatureContext, conversation: ConversationId) -> None:
    """Tell people of a conversation which skills are not trusted, unless they were told."""
    if not await context.store.read(_list_untold, conversation, context.settings):
        return
    owner = context.ids.new_owner_id()
    with suppress(LeaseHeld):  # somebody works on the conversation: after the next turn
        await context.store.write(_tell, conversation, context.settings, owner)


def _list_untold(t: Tx, conversation: ConversationId, settings: Settings) -> list[SkillTrust]:
    if not (untold := trust.list_untold(t)):
        return []
    known = {one.name for one in list_sources(settings, get_scope(t, conversation))}
    return [one for one in untold if one.source in known]


def _tell(t: Tx, conversation: ConversationId, settings: Settings, owner: OwnerId) -> None:
    untold = _list_untold(t, conversation, settings)
    session = get_head(t, conversation)
    if not untold or not session.is_open:
        return
    text = format_untold(untold)
    state = " ".join(f"{one.source} {one.name} {one.seen}" for one in untold)
    name = f"skills_{hashlib.sha256(f'{conversation} {state} {t.now}'.encode()).hexdigest()[:20]}"
    routes = list_routes(t, conversation)
    chat_notices.tell_people(
        t, conversation, text, name=name, owner=owner, route=routes[0] if routes else None
    )
    trust.mark_told(t, untold)
