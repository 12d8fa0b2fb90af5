"""Exporting: conversations as sealed lines, or as pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.exported.book import RecordInterleaver
from clew.core.exported.lines import FORMAT, VERSION, LineSealer
from clew.core.exported.redaction import ExportRedactor
from clew.core.exported.shapes import encode_line
from clew.core.ids import ConversationId
from clew.errors import NotFound, UsageError
from clew.store.transactions import conversations, exports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from clew.core.exported.book import ConversationExport, TypedRecord
    from clew.core.exported.shapes import Record
    from clew.store.contract import Store

#: Entries that one read fetches.
_PAGE: Final = 200


class Exports:
    """
    Reads conversations of a store as an export holds them.

    Each is read as it is at one moment; other moments may be other conversations'. ``secrets`` are
    texts that must not stand in any export.
    """

    def __init__(self, store: Store, *, secrets: Iterable[str] = ()) -> None:
        self._store = store
        self._redaction = ExportRedactor(secrets)
        #: Told when a conversation begins, with how many came before it.
        self.on_conversation: Callable[[int], None] = lambda _: None
        #: Entries from which a secret was taken out.
        self.withheld = 0

    async def chosen(self, names: Sequence[str]) -> list[str]:
        """
        The ids of the conversations that names mean, in order; deleted ones by their ids.

        :raises NotFound: if one means nothing
        """
        return sorted({await self._meant(name) for name in names})

    async def _meant(self, name: str) -> str:
        try:
            return await self._store.read(conversations.resolve_conversation, name)
        except NotFound:
            if await self._store.read(exports.find_tombstone, name) is None:
                raise
            return name

    async def every(self) -> list[ConversationId]:
        """The ids of all conversations, in order."""
        return await self._store.read(exports.list_conversation_ids)

    async def lines(self, chosen: Sequence[str] | None) -> AsyncIterator[bytes]:
        """
        The lines of an export of these conversations, or of everything.

        Conversations that are deleted meanwhile are left out, except for what remains of them.
        """
        sealer = LineSealer()
        counted = dict.fromkeys(("conversation", "entry", "tombstone"), 0)
        yield sealer.seal_line("header", {"format": FORMAT, "version": VERSION})
        async for kind, line in self.said(chosen):
            if kind in counted:
                counted[kind] += 1
            yield sealer.seal_line(kind, line)
        yield sealer.seal_line(
            "trailer",
            {
                "conversations": counted["conversation"],
                "entries": counted["entry"],
                "tombstones": counted["tombstone"],
                "sums": sealer.sums_digest,
            },
        )

    async def said(self, chosen: Sequence[str] | None) -> AsyncIterator[tuple[str, Record]]:
        """What the lines say between the first and the last, each with its type."""
        async for kind, record in self._records(chosen):
            line = self._redaction.redact_line(kind, encode_line(kind, record))
            self.withheld += "withheld" in line
            yield kind, line

    async def _records(self, chosen: Sequence[str] | None) -> AsyncIterator[TypedRecord]:
        ids = await self.every() if chosen is None else chosen
        for before, conversation in enumerate(ids):
            self.on_conversation(before)
            try:
                book = await self._store.read(
                    exports.read_conversation_export, ConversationId(conversation)
                )
            except NotFound:
                continue  # deleted: what remains of it follows
            async for each in self._conversation(book):
                yield each
        for grave in await self._store.read(exports.list_tombstones):
            if chosen is None or grave["conversation"] in chosen:
                yield "tombstone", grave

    async def _conversation(self, book: ConversationExport) -> AsyncIterator[TypedRecord]:
        yield "conversation", book.conversation
        weaver = RecordInterleaver(book)
        async for entry in self._entries(book):
            for each in weaver.records_before(entry):
                yield each
            yield "entry", entry
        for each in weaver.remaining_records():
            yield each
        shown: set[bytes] = set()
        for attachment in book.attachments:
            blob = await self._store.read(exports.read_blob_record, attachment)
            if blob is not None and blob["sha256"] not in shown:
                shown.add(blob["sha256"])
                yield "blob", blob
            yield "attachment", attachment
        yield weaver.end_record()

    async def _entries(self, book: ConversationExport) -> AsyncIterator[Record]:
        last: int = book.conversation["entries"]
        after = 0
        while after < last:
            page = await self._store.read(
                exports.read_entry_records,
                book.conversation["id"],
                after=after,
                last=last,
                limit=_PAGE,
            )
            if not page:
                raise UsageError(
                    f"conversation {book.conversation['id']} was deleted while it was exported, or "
                    f"has no entry {after + 1}: `clew fsck` tells; then export again"
                )
            for entry in page:
                yield entry
            after = page[-1]["seq"]
