"""Looking for facts in conversations that rest, in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from clew.errors import StoreError
from clew.features.memory import extraction, extraction_spans
from clew.features.memory.extraction_spans import ExtractionRules

if TYPE_CHECKING:
    from clew.features.memory.extraction_spans import Extraction
    from clew.features.memory.settings import MemorySettings
    from clew.plugin import FeatureContext

log = structlog.get_logger(__name__)

#: Seconds that the model has, and tokens of its answer.
EXTRACTION_TIMEOUT: Final = 60.0
MAX_TOKENS: Final = 1_000
#: Conversations of one look.
_BATCH: Final = 20


async def extract_due(context: FeatureContext, settings: MemorySettings) -> int:
    """Ask about each conversation that is due, one after the other; return how many there were."""
    if settings.extract == "off":
        return 0
    rules = ExtractionRules(
        keeps=settings.extract == "on",
        rest=settings.extract_after,
        turns=settings.extract_turns,
        owner=context.ids.new_owner_id(),
    )
    due = await context.store.read(extraction_spans.list_due, rules, limit=_BATCH)
    if due:
        # Its claims hold while it is alive.
        await context.store.register_owner(rules.owner)
    for conversation in due:
        asked = await context.store.write(extraction_spans.claim_span, context, conversation, rules)
        if asked is not None:
            await _extract(context, asked, rules, settings.extract_model)
    return len(due)


async def _extract(
    context: FeatureContext, asked: Extraction, rules: ExtractionRules, model: str | None
) -> None:
    try:
        answer = await context.ask_model(
            model or context.settings.model.name,
            asked.prompt,
            setting="memory.extract_model",
            max_tokens=MAX_TOKENS,
            seconds=EXTRACTION_TIMEOUT,
        )
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001  (whatever a provider raises: it is asked again later)
        log.warning("memory_not_read", conversation=asked.conversation, error=repr(error))
        await context.store.write(extraction.store_failure, asked, rules)
    else:
        usage = context.ids.new_usage_id()
        await context.store.write(extraction.store_facts, asked, answer, rules, usage)
