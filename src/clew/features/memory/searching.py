"""Search for what is known about a query: facts, and messages of the log, of one scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.errors import SearchNotReady, UsageError
from clew.features.memory import facts, links
from clew.features.memory.ranking import FactIndex
from clew.features.memory.withheld import is_withheld, read_withheld
from clew.record import Record
from clew.store.search import search_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.features.memory.facts import Fact
    from clew.store.contract import Tx
    from clew.store.search import SearchHit

#: Facts and messages of an answer.
MAX_FACTS, MAX_MESSAGES = 8, 8
#: Pages of the search that are read for messages of one scope.
_PAGES: Final = 5
#: Scopes whose words are kept.
_KEPT: Final = 32


class Recalled(Record):
    """Facts and messages that were found."""

    facts: list[Fact]
    messages: list[SearchHit]
    #: Reason why messages were not searched.
    remark: str | None = None


class Recall:
    """Searches within scopes; keeps the words of the facts of a few of them."""

    def __init__(self) -> None:
        #: By scope: its last change, and the words of its facts since then.
        self._indexes: dict[Scope, tuple[tuple[int, str], FactIndex]] = {}

    def find(
        self, t: Tx, query: str, scope: Scope, is_ours: Callable[[ConversationId], bool]
    ) -> Recalled:
        """
        Return the facts of a scope, and the messages of its conversations, that a query is about.

        ``is_ours`` returns whether the messages of a conversation are recalled with these facts.

        :raises UsageError: if there is nothing to search for
        """
        found = self.find_facts(t, query, scope, limit=MAX_FACTS)
        try:
            return Recalled(facts=found, messages=_find_messages(t, query, scope, is_ours))
        except SearchNotReady as error:
            return Recalled(facts=found, messages=[], remark=str(error))

    def find_facts(self, t: Tx, query: str, scope: Scope, *, limit: int) -> list[Fact]:
        """Return the facts of a scope, and of everybody, that a query is about."""
        if not query.strip():
            raise UsageError("there is nothing to search for: give some words")
        scopes = facts.list_visible_scopes(scope)
        found = [fact for one in scopes for fact in self._get_index(t, one).find(query, limit)]
        return found[:limit]

    def _get_index(self, t: Tx, scope: Scope) -> FactIndex:
        change = facts.read_last_change(t, scope)
        if change is None:
            return FactIndex([])
        # Several threads may come here at once: each step by itself is safe.
        kept = self._indexes.pop(scope, None)
        if kept is None or kept[0] != change:
            kept = change, FactIndex(facts.list_active(t, scope), kept and kept[1])
        self._indexes[scope] = kept
        for old in list(self._indexes)[:-_KEPT]:
            self._indexes.pop(old, None)
        return kept[1]


#: Of this process.
RECALL: Final = Recall()


def _find_messages(
    t: Tx, query: str, scope: Scope, is_ours: Callable[[ConversationId], bool]
) -> list[SearchHit]:
    """Return messages of exactly these scopes: the local one sees all others in a search."""
    scopes = links.list_told(t, scope, ended=False)
    found = [hit for one in scopes for hit in _find_messages_of(t, query, one, is_ours)]
    return found[:MAX_MESSAGES]


def _find_messages_of(
    t: Tx, query: str, scope: Scope, is_ours: Callable[[ConversationId], bool]
) -> list[SearchHit]:
    found: list[SearchHit] = []
    withheld = read_withheld(t, scope)
    cursor: str | None = None
    for _ in range(_PAGES):
        page = search_messages(t, query, viewer=scope, limit=50, cursor=cursor)
        ours = (hit for hit in page.items if is_ours(hit.conversation_id))
        found += [hit for hit in ours if not is_withheld(t, hit, withheld)]
        cursor = page.next
        if cursor is None or len(found) >= MAX_MESSAGES:
            break
    return found
