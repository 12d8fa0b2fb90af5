"""Readers of files: held messages get the texts of their recordings before the model is asked."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew import wording
from clew.background import cancel_and_wait
from clew.core.file_reading import MAX_WAIT, FileReading, list_waiting, mark_files
from clew.plugin.declarations import FileReader, FileToRead
from clew.plugin.registry import Features
from clew.store.transactions import attachments, file_readings, inbox, locks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from clew.core.attachments import FetchedFile
    from clew.core.ids import ConversationId, InboxId, OwnerId
    from clew.core.inbox import InboxItem
    from clew.plugin.context import FeatureContext

log = structlog.get_logger(__name__)

#: Seconds between two looks for messages of other processes that wait for texts.
_POLL_INTERVAL: Final = 1.0
#: Seconds for one message; less than it waits.
READ_TIMEOUT: Final = 100.0
#: Files that one process reads at the same time.
_AT_ONCE: Final = 4


class FileReaders:
    """The readers of all features, and the messages that wait for one of them."""

    def __init__(self, features: Features | None = None, others: Iterable[FileReader] = ()) -> None:
        self._readers = [*(features or Features()).values(FileReader), *others]
        self._stored = asyncio.Event()

    @property
    def is_needed(self) -> bool:
        """Return whether there is a reader."""
        return bool(self._readers)

    def find_texts(self, files: Iterable[FetchedFile]) -> dict[str, str]:
        """Return what the text of each file is, by attachment; others are not read."""
        found = {
            file.id: self.find_reader(file.media_type, file.content)
            for file in files
            if file.content is not None
        }
        return {id: reader.read_as for id, reader in found.items() if reader is not None}

    def find_reader(self, media_type: str, content: bytes) -> FileReader | None:
        """Return the reader of a file; ``None`` if it has none."""
        return next((one for one in self._readers if one.accepts(media_type, content)), None)

    def mark(self, payload: str, files: Iterable[FetchedFile]) -> tuple[str, timedelta]:
        """Return the payload of a message for its files, and how long it waits for their texts."""
        texts = self.find_texts(files)
        return mark_files(payload, texts), MAX_WAIT if texts else timedelta()

    def wake(self) -> None:
        """Look for waiting messages at once."""
        self._stored.set()

    async def wait(self) -> None:
        """Wait until messages may wait."""
        try:
            async with asyncio.timeout(_POLL_INTERVAL):
                await self._stored.wait()
        except TimeoutError:
            return
        self._stored.clear()


class FileReadingService:
    """
    Reads the files of waiting messages, each in one process of all.

    A process that dies loses its claim, and another one reads.
    """

    def __init__(
        self,
        readers: FileReaders,
        context: FeatureContext,
        owner: OwnerId,
        is_ours: Callable[[ConversationId], bool],
    ) -> None:
        self._readers, self._context, self._store = readers, context, context.store
        self._owner, self._is_ours = owner, is_ours
        self._running: dict[InboxId, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Read what waits, without end."""
        try:
            while self._readers.is_needed:
                self._start(await self._store.read(inbox.list_held_items))
                await self._readers.wait()
            await asyncio.Event().wait()
        finally:
            await cancel_and_wait(*self._running.values())

    def _start(self, held: Iterable[InboxItem]) -> None:
        for item in held:
            # Without a waiting file, its files are being fetched.
            if item.id in self._running or not list_waiting(item.payload):
                continue
            if self._is_ours(item.conversation_id):
                task = asyncio.create_task(self._read_logged(item), name=f"reading:{item.id}")
                self._running[item.id] = task
                task.add_done_callback(lambda _, id=item.id: self._running.pop(id, None))

    async def _read_logged(self, item: InboxItem) -> None:
        try:
            await self._read_message(item)
        except Exception as error:  # noqa: BLE001  (it is tried again, or goes on without a text)
            log.warning("files_not_read", message=item.id, error=repr(error))
            await asyncio.sleep(_POLL_INTERVAL)

    async def _read_message(self, item: InboxItem) -> None:
        name = f"reading:{item.id}"
        holder = await self._store.write(
            locks.acquire_process_lock, name, self._owner, duration=MAX_WAIT
        )
        if holder is not None:
            return
        try:
            waiting = list_waiting(item.payload)
            found = await asyncio.gather(*(self._read(item, *each) for each in waiting.items()))
            readings = dict(zip(waiting, found, strict=True))
            notice = _make_notice(waiting, readings)
            await self._store.write(file_readings.store_readings, item.id, readings, notice=notice)
        finally:
            await self._store.write(locks.release_lock, name, self._owner)

    async def _read(self, item: InboxItem, attachment: str, file: Mapping[str, Any]) -> FileReading:
        content = await self._store.read(attachments.read_content, attachment)
        if content is None:
            return FileReading(unread="its content is not kept any more")
        reader = self._readers.find_reader(file["media_type"], content)
        if reader is None:
            return FileReading(unread="no service for it is set up any more")
        wanted = FileToRead(
            conversation=item.conversation_id,
            name=file["name"],
            media_type=file["media_type"],
            content=content,
        )
        try:
            async with asyncio.timeout(READ_TIMEOUT), self._slots:
                return await reader.read(self._context, wanted)
        except TimeoutError:
            return FileReading(unread="the service did not answer in time")
        except Exception as error:  # the code of a feature may raise anything
            log.exception("file_not_read", reader=reader.name, message=item.id)
            return FileReading(unread=f"its reader failed ({type(error).__name__})")


def _make_notice(
    files: Mapping[str, Mapping[str, Any]], readings: Mapping[str, FileReading]
) -> str | None:
    for attachment, reading in readings.items():
        if reading.text is None:
            file = files[attachment]
            return wording.format_unread_file(file["name"], file["read_as"], reading.unread or "")
    return None
