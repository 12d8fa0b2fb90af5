"""Export of conversations as sealed lines, or as pages for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.export_format.records import RecordInterleaver
from clew.core.export_format.redaction import ExportRedactor
from clew.core.export_format.schema import encode_line
from clew.core.export_format.sealed_lines import FORMAT, VERSION, LineSealer
from clew.core.ids import ConversationId
from clew.errors import NotFound, UsageError
from clew.store.transactions import conversations, exports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from clew.core.export_format.records import ConversationExport, TypedRecord
    from clew.core.export_format.schema import ExportRecord
    from clew.store.contract import Store

#: Entries per read.
_PAGE_SIZE: Final = 200


def _ignore(_: int) -> None:
    pass


class ConversationExporter:
    """
    Reader of conversations for an export.

    Each conversation is read as it is at one moment, which may differ between
    conversations. ``secrets`` are texts that no export may contain.
    """

    def __init__(self, store: Store, *, secrets: Iterable[str] = ()) -> None:
        self._store = store
        self._redaction = ExportRedactor(secrets)
        #: Number of records from which a secret was removed.
        self.redacted_count = 0

    async def resolve_names(self, names: Sequence[str]) -> list[str]:
        """
        Return the ids of the named conversations in order; a deleted one by its id.

        :raises NotFound: if a name means nothing
        """
        return sorted({await self._resolve_name(name) for name in names})

    async def _resolve_name(self, name: str) -> str:
        try:
            return await self._store.read(conversations.resolve_conversation, name)
        except NotFound:
            if await self._store.read(exports.find_tombstone, name) is None:
                raise
            return name

    async def list_conversations(self) -> list[ConversationId]:
        """Return the ids of all conversations in order."""
        return await self._store.read(exports.list_conversation_ids)

    async def iter_lines(
        self, chosen: Sequence[str] | None, *, on_conversation: Callable[[int], None] = _ignore
    ) -> AsyncIterator[bytes]:
        """
        Yield the lines of an export of these conversations, or of all.

        A conversation that is deleted meanwhile is left out, except for its tombstone.
        ``on_conversation`` is called as each one begins, with the number of those before it.
        """
        sealer = LineSealer()
        counted = dict.fromkeys(("conversation", "entry", "tombstone"), 0)
        yield sealer.seal_line("header", {"format": FORMAT, "version": VERSION})
        async for kind, line in self.iter_records(chosen, on_conversation=on_conversation):
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

    async def iter_records(
        self, chosen: Sequence[str] | None, *, on_conversation: Callable[[int], None] = _ignore
    ) -> AsyncIterator[tuple[str, ExportRecord]]:
        """Yield the redacted records between header and trailer, each with its type."""
        async for kind, record in self._iter_stored_records(chosen, on_conversation):
            line = self._redaction.redact_line(kind, encode_line(kind, record))
            self.redacted_count += "withheld" in line
            yield kind, line

    async def _iter_stored_records(
        self, chosen: Sequence[str] | None, on_conversation: Callable[[int], None]
    ) -> AsyncIterator[TypedRecord]:
        ids = await self.list_conversations() if chosen is None else chosen
        for before, conversation in enumerate(ids):
            on_conversation(before)
            try:
                book = await self._store.read(
                    exports.read_conversation_export, ConversationId(conversation)
                )
            except NotFound:
                continue  # deleted: its tombstone follows
            async for each in self._iter_conversation(book):
                yield each
        for grave in await self._store.read(exports.list_tombstones):
            if chosen is None or grave["conversation"] in chosen:
                yield "tombstone", grave

    async def _iter_conversation(self, book: ConversationExport) -> AsyncIterator[TypedRecord]:
        yield "conversation", book.conversation
        weaver = RecordInterleaver(book)
        async for entry in self._iter_entries(book):
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

    async def _iter_entries(self, book: ConversationExport) -> AsyncIterator[ExportRecord]:
        last: int = book.conversation["entries"]
        after = 0
        while after < last:
            page = await self._store.read(
                exports.read_entry_records,
                book.conversation["id"],
                after=after,
                last=last,
                limit=_PAGE_SIZE,
            )
            if not page:
                raise UsageError(
                    f"conversation {book.conversation['id']} was deleted while it was exported, "
                    f"or has no entry {after + 1}: check it with `clew fsck`, then export again"
                )
            for entry in page:
                yield entry
            after = page[-1]["seq"]
