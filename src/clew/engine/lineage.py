"""The lineage of a conversation, with the summaries of its compactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages as codec
from clew.agent.compactor import extract_summary
from clew.core.session_base import EntryRange, InlineMessage
from clew.record import Record
from clew.store.transactions import lineage

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.core.session_base import Base
    from clew.store.contract import Store
    from clew.store.transactions.lineage import Lineage


class SessionSummary(Record):
    """The summary that a compaction has left of earlier messages."""

    text: str
    #: The first of the newest entries that the model still reads as they are, if there are any.
    kept_from: int | None


async def read_lineage(
    store: Store, conversation: ConversationId, *, viewer: Scope
) -> tuple[Lineage, dict[str, SessionSummary]]:
    """
    Return the lineage of a conversation, and the summary with which each session began.

    :raises NotFound: if there is no such conversation that ``viewer`` may see
    """
    found = await store.read(lineage.read_lineage, conversation, viewer=viewer)
    summaries = {one.id: _find_summary(one, found.bases.get(one.id, ())) for one in found.sessions}
    return found, {name: summary for name, summary in summaries.items() if summary is not None}


def _find_summary(session: Session, base: Base) -> SessionSummary | None:
    texts = [_summary_of(item) for item in base if isinstance(item, InlineMessage)]
    text = next((one for one in texts if one is not None), None)
    if text is None:
        return None
    kept = [item.first for item in base if isinstance(item, EntryRange)]
    return SessionSummary(text=text, kept_from=kept[-1] if kept else None)


def _summary_of(item: InlineMessage) -> str | None:
    return extract_summary(codec.load_message(item.message))
