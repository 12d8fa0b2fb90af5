"""Titles that name conversations before a person does."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.core.conversation import TitledBy
from clew.errors import TitleTaken
from clew.features.titles.text import make_fallback_title, parse_title, write_prompt
from clew.store.transactions import conversations, titles
from clew.store.transactions.usage import record_answer

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Seconds that the model has, and tokens of its answer.
TITLE_TIMEOUT, MAX_TOKENS = 30.0, 200
#: Limit of the numbers tried when a title is taken: "Trip (2)" …
_MAX_NUMBER = 100


async def give_title(context: FeatureContext, conversation: ConversationId) -> None:
    """Give an answered conversation the title that it lacks."""
    if not await context.store.read(_lacks_title, conversation):
        return
    exchange = await context.store.read(titles.read_first_exchange, conversation)
    if exchange is None:
        return
    said, answer = exchange
    title = await _suggest_title(context, conversation, said, answer) or make_fallback_title(said)
    if title is not None:
        with suppress(TitleTaken):  # by another process since we looked: after the next turn
            await context.store.write(_set_unique_title, conversation, title)


async def _suggest_title(
    context: FeatureContext, conversation: ConversationId, said: str, answer: str
) -> str | None:
    """Return the model's title, if one is to be asked and its answer can be used."""
    model = context.settings.session.title_model
    if model is None:
        return None
    try:
        suggested = await context.ask_model(
            model,
            write_prompt(said=said, answer=answer),
            setting="session.title_model",
            max_tokens=MAX_TOKENS,
            seconds=TITLE_TIMEOUT,
        )
    except Exception as error:  # noqa: BLE001  (whatever a provider raises; there is a fallback)
        log.warning("title_not_suggested", conversation=conversation, error=str(error))
        return None
    usage = context.ids.new_usage_id()
    await context.store.write(record_answer, conversation, suggested, id=usage, purpose="title")
    return parse_title(suggested)


def _lacks_title(t: Tx, conversation: ConversationId) -> bool:
    """Return whether no title was requested or given."""
    pending = titles.get_pending_title(t, conversation)
    return pending is None and titles.needs_title(t, conversation)


def _set_unique_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Set an automatic title, with a number if it is taken."""
    if not _lacks_title(t, conversation):
        return
    scope = conversations.get_conversation(t, conversation).scope
    for number in range(1, _MAX_NUMBER):
        name = title if number == 1 else f"{title} ({number})"
        if not conversations.is_title_taken(t, scope, name):
            conversations.rename_conversation(t, conversation, name, titled_by=TitledBy.MODEL)
            return
