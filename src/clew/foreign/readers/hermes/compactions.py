"""
Compactions of Hermes Agent, found in the order of stored messages.

After a compaction it stores the context again: copies of the first messages, the summary, copies of
the newest messages. The copies are recognised, so that each message occurs once.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Final

from clew.foreign.conversations import ForeignCompaction, ForeignEvent, ForeignMessage
from clew.foreign.readers.hermes.rows import StoredMessage, Summary, make_text_key
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.foreign.conversations import ForeignItem

#: How far from the beginning of a session its summary is looked for.
_REACH: Final = 64
#: Milliseconds in which a summary and the copies beside it are stored.
_AT_ONCE: Final = 500
_NO_SUMMARY: Final = "(no summary of the earlier messages is stored)"


class _Live(Record):
    """A message in the context: what its copies look like, and where it occurred first."""

    key: tuple[str, ...]
    origin: str


def merge_copies(stored: Sequence[StoredMessage]) -> list[ForeignItem]:
    """Return the items of a conversation; one event for each compaction lists its copies."""
    return _Merger(stored).merge()


class _Merger:
    def __init__(self, stored: Sequence[StoredMessage]) -> None:
        self._stored = stored
        self._items: list[ForeignItem] = []
        #: The context, and where the part of it begins that came after the last compaction.
        self._live: list[_Live] = []
        self._fresh = 0

    def merge(self) -> list[ForeignItem]:
        place = 0
        while place < len(self._stored):
            one = self._stored[place]
            if one.summary is not None:
                place = self._compact(place, one.summary)
            elif self._begins_session(place) and not self._has_summary(place):
                place = self._continue(place)
            else:
                self._add(one)
                place += 1
        return self._items

    def _add(self, one: StoredMessage) -> None:
        self._items.append(one.item)
        if isinstance(one.item, ForeignMessage):
            self._live.append(_Live(key=one.key, origin=one.item.id))

    def _begins_session(self, place: int) -> bool:
        return (
            place > 0
            and bool(self._live)
            and self._stored[place].session != self._stored[place - 1].session
            and self._stored[place].summary is None
        )

    def _has_summary(self, place: int) -> bool:
        session = self._stored[place].session
        near = self._stored[place : place + _REACH]
        return any(one.summary is not None and one.session == session for one in near)

    def _compact(self, place: int, summary: Summary) -> int:
        """Add a summary with the copies around it; return the place after them."""
        one = self._stored[place]
        head = self._take_head(one)
        tail, count = self._match_tail(place, summary)
        copies = [copy for copy, _ in head] + [
            each.item.id for each in self._stored[place + 1 : place + 1 + count]
        ]
        kept = [live for _, live in head]
        first = tail[0].origin if tail else self._find_kept_head(kept, one)
        self._items.append(
            ForeignCompaction(
                id=f"{one.item.id}:summary" if summary.prior else one.item.id,
                at=one.item.at,
                summary=summary.text,
                kept_from=first,
            )
        )
        self._note_copies(copies, one.item.at)
        self._live = [*kept, _Live(key=("summary", one.item.id), origin=one.item.id), *tail]
        self._fresh = len(self._live)
        self._add_prior(one, summary, is_copy=summary.prior is not None and bool(tail))
        return place + 1 + count

    def _take_head(self, one: StoredMessage) -> list[tuple[str, _Live]]:
        """Take back the messages before a summary that are copies of the first ones."""
        fresh = len(self._live) - self._fresh
        for count in range(min(_REACH, fresh, len(self._live) // 2), 0, -1):
            ends = zip(self._live[-count:], self._live[:count], strict=True)
            if all(copy.key == first.key for copy, first in ends):
                return self._take_back(count)
        return []

    def _take_back(self, count: int) -> list[tuple[str, _Live]]:
        taken = list(zip((one.origin for one in self._live[-count:]), self._live, strict=False))
        names = {name for name, _ in taken}
        del self._live[-count:]
        self._items = [item for item in self._items if item.id not in names]
        return taken

    def _match_tail(self, place: int, summary: Summary) -> tuple[list[_Live], int]:
        """Return the messages that stayed in the context, and how many copies of them follow."""
        after = self._stored[place + 1 : place + 1 + len(self._live)]
        following = [one.key for one in after]
        at_once = sum(1 for one in after if one.item.at - self._stored[place].item.at <= _AT_ONCE)
        if summary.prior is not None:
            following.insert(0, self._make_prior_key(self._stored[place], summary.prior))
        start = self._find_suffix(following)
        tail = self._live[start:] or self._find_run(following[: at_once + bool(summary.prior)])
        return tail, max(0, len(tail) - (summary.prior is not None))

    def _find_run(self, copies: Sequence[tuple[str, ...]]) -> list[_Live]:
        """Return the longest part of the context that copies begin with: its end may be missing."""
        best: list[_Live] = []
        for start in range(len(self._live)):
            pairs = zip(self._live[start:], copies, strict=False)
            run = [
                live for live, _ in itertools.takewhile(lambda pair: pair[0].key == pair[1], pairs)
            ]
            best = max(best, run, key=len)
        return best if len(best) > 1 else []

    def _find_suffix(self, following: Sequence[tuple[str, ...]]) -> int:
        """Return where the context begins to be as what follows; its length if nowhere."""
        keys = [live.key for live in self._live]
        for start, key in enumerate(keys):
            if following[:1] == [key] and keys[start:] == following[: len(keys) - start]:
                return start
        return len(keys)

    def _make_prior_key(self, one: StoredMessage, prior: str) -> tuple[str, ...]:
        item = one.item
        if not isinstance(item, ForeignMessage):
            return ()
        return make_text_key(item.role, prior, *(call.id for call in item.calls))

    def _find_kept_head(self, copies: Sequence[_Live], one: StoredMessage) -> str | None:
        """Return the first message of a context that was rewritten without a trace of the rest."""
        first = self._stored[0]
        is_rewritten = (
            not copies
            and not self._fresh
            and not first.is_compacted
            and first.session == one.session
        )
        return self._live[0].origin if is_rewritten and self._live else None

    def _add_prior(self, one: StoredMessage, summary: Summary, *, is_copy: bool) -> None:
        """Add the message that a summary was appended to, if it is stored nowhere else."""
        if summary.prior and not is_copy and isinstance(one.item, ForeignMessage):
            self._add(
                replace(
                    one,
                    item=replace(one.item, text=summary.prior),
                    key=self._make_prior_key(one, summary.prior),
                )
            )

    def _continue(self, place: int) -> int:
        """Begin a session that has no summary; return the place after the copies."""
        one = self._stored[place]
        following = [each.key for each in self._stored[place : place + len(self._live)]]
        start = self._find_suffix(following)
        tail = self._live[start:]
        if start:
            self._items.append(
                ForeignCompaction(
                    id=f"{one.session}:begin",
                    at=one.item.at,
                    summary=_NO_SUMMARY,
                    kept_from=tail[0].origin if tail else None,
                )
            )
            self._live = tail
            self._fresh = len(tail)
        count = len(tail)
        self._note_copies(
            [each.item.id for each in self._stored[place : place + count]], one.item.at
        )
        if not count:
            self._add(one)
        return place + max(1, count)

    def _note_copies(self, copies: Sequence[str], at: int) -> None:
        if copies:
            self._items.append(
                ForeignEvent(
                    id=f"{copies[0]}:copies",
                    at=at,
                    kind="copies",
                    text=f"{len(copies)} messages above, stored again beside a summary of others",
                    payload=json.dumps(list(copies)),
                )
            )
