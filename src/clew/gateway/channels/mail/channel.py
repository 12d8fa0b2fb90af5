"""The mail channel: IMAP in, SMTP out; a thread with one person is a conversation."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Final, Self

import structlog

from clew.core.channel_events import IgnoredEvent
from clew.distribution import format_install_command
from clew.engine.log_throttle import LogThrottle
from clew.errors import ChannelError, NotDelivered, SettingsError
from clew.gateway.channel import Channel, ChannelCapabilities, ChannelConfig
from clew.gateway.channels.mail import codec, messages, threads
from clew.gateway.channels.mail.position import MailPosition
from clew.gateway.channels.mail.rates import RecentMails
from clew.gateway.channels.mail.settings import MAIL_OPTIONS, read_settings
from clew.gateway.ignored_events import IgnoredEventLog
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from clew.core.channel_events import ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile
    from clew.gateway.channels.mail.codec import ReadMail, StoredMail
    from clew.gateway.channels.mail.settings import MailSettings

log = structlog.get_logger(__name__)

#: The channel's own settings keys.
OPTIONS: Final = MAIL_OPTIONS
#: Seconds between two batches, and between two looks where the server does not tell of mails.
KEEPALIVE_INTERVAL: Final = 25.0
POLL_INTERVAL: Final = 15.0
#: Key in the channel storage: the read position.
_POSITION: Final = "position"
#: The most mails of a batch, and the bytes after which one ends.
_MAX_BATCH, _BATCH_BYTES = 20, 5_000_000
#: Days that are read again when a folder counts anew.
_REREAD: Final = timedelta(days=2)
#: A person may write as many mails to several threads together as to so many.
_THREADS_PER_SENDER: Final = 3
#: Seconds between two log lines about one sender.
_LOG_INTERVAL: Final = 3600.0

CAPABILITIES = ChannelCapabilities(
    max_length=messages.MAX_LENGTH,
    markup="HTML and text",
    threads=True,
    documents=True,
    files=True,
    # Encoded, 24 MB: most servers take 25.
    max_file_bytes=17 * 1024 * 1024,
    account_pause=0.1,
)


def open_channel(config: ChannelConfig) -> Channel:
    """
    Create the channel; the entry point names this function.

    :raises SettingsError: if a setting is missing or invalid, or the extra is not installed
    """
    try:
        for name in ("imap_tools", "aiosmtplib"):
            import_module(name)
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"[channels.{config.name}] needs {error.name}: {format_install_command('mail')}"
        ) from None
    return MailChannel(config, read_settings(config))


class MailChannel(Channel):
    """The channel of one mailbox."""

    platform = codec.PLATFORM

    def __init__(self, config: ChannelConfig, settings: MailSettings) -> None:
        self._config, self._settings = config, settings
        self._storage = config.storage
        self.account = f"{settings.imap.host}/{settings.user}"
        self.capabilities = CAPABILITIES
        self._ignored = IgnoredEventLog(config.name)
        self._throttle = LogThrottle(interval=_LOG_INTERVAL)
        self._position: MailPosition | None = None
        self._sent = settings.sent

    async def __aenter__(self) -> Self:
        from clew.gateway.channels.mail.mailbox import Mailbox  # noqa: PLC0415  (an extra)

        #: One waits for mails; the other reads files, and what was sent.
        self._inbox, self._archive = Mailbox(self._settings), Mailbox(self._settings)
        try:
            stored = await self._storage.get(_POSITION)
            self._position = None if stored is None else MailPosition.from_json(stored)
            if self._position is None:
                await self._begin()
            await self._find_sent_folder()
        except BaseException:
            # A failed __aenter__ is not followed by __aexit__: close the connections here.
            self._close()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._inbox.close()
        self._archive.close()

    async def _begin(self) -> None:
        """Begin after the mails that came before the agent: those are not answered."""
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        folder = self._settings.folder
        validity = await self._inbox.run(lambda box: mailbox.open_folder(box, folder))
        following = await self._inbox.run(lambda box: mailbox.find_next_uid(box, folder))
        now = datetime.now(UTC).timestamp()
        await self._store_position(
            MailPosition(
                uid_validity=validity, uid=following - 1, newest=now, begun=(validity, now)
            )
        )

    async def _find_sent_folder(self) -> None:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        if not self._sent:
            self._sent = await self._archive.run(mailbox.find_sent_folder)

    async def _store_position(self, position: MailPosition) -> None:
        await self._storage.put(_POSITION, position.to_json())
        self._position = position

    # Incoming

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        while True:
            mails = await self._read_new_mails()
            events: list[ChannelEvent] = []
            taken: list[StoredMail] = []
            for mail in mails:
                event = await self._parse(mail)
                if event is not None:
                    events.append(event)
                    taken.append(mail)
            yield events
            # The next batch was requested: these are stored.
            assert self._position is not None
            if mails:
                await self._store_position(
                    self._position.advance(mails, [one.event for one in events])
                )
            if taken:
                uids = [one.uid for one in taken]
                await self._inbox.run(lambda box, uids=uids: mailbox.mark_read(box, uids))
            if not mails:
                await self._wait_for_mail()

    async def _wait_for_mail(self) -> None:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        if not await self._inbox.run(lambda box: mailbox.wait_for_mail(box, KEEPALIVE_INTERVAL)):
            await asyncio.sleep(POLL_INTERVAL)

    async def _read_new_mails(self) -> Sequence[StoredMail]:
        """Return the next mails after the position, up to a batch of them."""
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        validity, uids = await self._list_new_uids()
        mails: list[StoredMail] = []
        for uid in uids[:_MAX_BATCH]:
            mail = await self._inbox.run(lambda box, uid=uid: mailbox.read_mail(box, uid, validity))
            if mail is not None:
                mails.append(mail)
            if sum(len(one.content) for one in mails) >= _BATCH_BYTES:
                break
        return mails

    async def _list_new_uids(self) -> tuple[int, Sequence[int]]:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        position, folder = self._position, self._settings.folder
        assert position is not None
        validity = await self._inbox.run(lambda box: mailbox.open_folder(box, folder))
        if validity == position.uid_validity:
            asked = f"UID {position.uid + 1}:*"
            uids = await self._inbox.run(lambda box: mailbox.list_uids(box, asked))
            return validity, [uid for uid in uids if uid > position.uid]
        # The folder was made anew: what is known of it is known by its events only.
        log.warning("mail_folder_counts_anew", channel=self._config.name, folder=folder)
        since = datetime.fromtimestamp(position.newest, UTC) - _REREAD
        asked = f"SINCE {since.day}-{_MONTHS[since.month - 1]}-{since.year}"
        uids = await self._inbox.run(lambda box: mailbox.list_uids(box, asked))
        if not uids:
            following = await self._inbox.run(lambda box: mailbox.find_next_uid(box, folder))
            await self._store_position(replace(position, uid_validity=validity, uid=following - 1))
        return validity, uids

    async def _parse(self, stored: StoredMail) -> ChannelEvent | None:
        try:
            read = await asyncio.to_thread(codec.read_headers, stored, self._settings)
        except ValueError as error:
            # Skipped: read again for ever, it would block all later ones. It stays unread.
            log.warning("mail_not_understood", **self._name_mail(stored), error=str(error))
            return None
        except Exception:  # the library's parser may raise anything
            log.exception("mail_not_understood", **self._name_mail(stored))
            return None
        if isinstance(read, IgnoredEvent):
            self._report_ignored(stored, read)
            return None
        assert self._position is not None
        if self._position.has_stored(stored, read.event) or await self._is_too_much(read):
            return None
        thread, is_new = await self._continue_thread(read)
        return await asyncio.to_thread(
            codec.build_event, read, label=self._config.label, thread=thread, is_new=is_new
        )

    def _name_mail(self, stored: StoredMail) -> dict[str, object]:
        return {"channel": self._config.name, "folder": self._settings.folder, "uid": stored.uid}

    def _report_ignored(self, stored: StoredMail, ignored: IgnoredEvent) -> None:
        self._ignored.log_once(ignored)
        if ignored.kind == codec.NOT_AUTHENTICATED and self._throttle.is_due(ignored.kind):
            log.warning("mail_not_authenticated", **self._name_mail(stored))

    async def _is_too_much(self, read: ReadMail) -> bool:
        """Count a mail; return whether its thread or its sender has had too many in an hour."""
        limit = self._settings.max_per_hour
        at = read.stored.received_at.timestamp()
        root = threads.name_thread(read.sender.id, (*read.ids, read.message)[0])
        person = hashlib.sha256(read.sender.id.encode()).hexdigest()[:24]
        is_over = False
        for name, most in ((root, limit), (person, limit * _THREADS_PER_SENDER)):
            recent = RecentMails.from_json(await self._storage.get(f"rate:{name}"))
            recent = recent.add(read.event, at)
            await self._storage.put(f"rate:{name}", recent.to_json())
            is_over |= recent.is_over(most)
        if is_over and self._throttle.is_due(person):
            log.warning("mail_loop_stopped", sender=read.sender.id, **self._name_mail(read.stored))
        return is_over

    async def _continue_thread(self, read: ReadMail) -> tuple[str, bool]:
        """Store the thread of a mail; return its name, and whether the mail begins it."""
        chat = read.sender.id
        name, known = await self._find_thread(read)
        begun_by = read.event if known is None else known.begun_by
        thread = threads.continue_thread(
            chat=chat,
            subject=read.subject,
            message=read.message,
            ids=read.ids,
            begun_by=begun_by,
        )
        await self._storage.put(f"thread:{name}", thread.to_json())
        # Read again after a kill, it is still the first.
        return name, begun_by == read.event

    async def _find_thread(self, read: ReadMail) -> tuple[str, threads.MailThread | None]:
        chat = read.sender.id
        for name in threads.list_candidates(chat, read.ids):
            known = await self._load_thread(name)
            if known is not None and known.chat == chat:
                return name, known
        return threads.name_thread(chat, (*read.ids, read.message)[0]), None

    async def _load_thread(self, name: str) -> threads.MailThread | None:
        stored = await self._storage.get(f"thread:{name}")
        return None if stored is None else threads.MailThread.from_json(stored)

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        validity, uid, position = map(int, file.id.split("."))
        folder = self._settings.folder

        def read(box: mailbox.BaseMailBox) -> StoredMail | None:
            if mailbox.open_folder(box, folder) != validity:
                return None
            return mailbox.read_mail(box, uid, validity)

        mail = await self._archive.run(read)
        found = (
            None
            if mail is None
            else await asyncio.to_thread(codec.find_file, mail.content, position)
        )
        if found is None:
            raise NotDelivered("its mail is no longer in the folder")
        if len(found) > most:
            raise NotDelivered(f"the file has more than {most:,} bytes")
        return found

    # Outgoing

    def render(self, message: OutboundMessage) -> Sequence[str]:
        return messages.render(message)

    def render_file(self, file: SentFile) -> str:
        return messages.render_file(file)

    def with_repeat_notice(self, chunk: str) -> str:
        return messages.with_repeat_notice(chunk)

    def without_formatting(self, chunk: str) -> str:
        return messages.without_formatting(chunk)

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        return await self._send_mail(route, chunk, None, key=key)

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        return await self._send_mail(route, chunk, content, key=key)

    async def _send_mail(self, route: Route, chunk: str, content: bytes | None, *, key: str) -> str:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415
        from clew.gateway.channels.mail.submission import submit_mail  # noqa: PLC0415

        message = messages.build_id(route, key, self._settings)
        # An attempt whose end nobody saw may have arrived: then its copy says so.
        if await self._archive.run(lambda box: mailbox.has_message(box, self._sent, message)):
            return message
        thread = None if route.thread is None else await self._load_thread(route.thread)
        mail = messages.build_mail(
            route,
            chunk,
            key=key,
            settings=self._settings,
            thread=thread,
            now=datetime.now(UTC),
            content=content,
        )
        source = mail.as_bytes()
        await submit_mail(self._settings, source, to=route.chat)
        if self._settings.append_sent:
            await self._keep_copy(source, message)
        return message

    async def _keep_copy(self, source: bytes, message: str) -> None:
        from clew.gateway.channels.mail import mailbox  # noqa: PLC0415

        try:
            await self._archive.run(lambda box: mailbox.append_mail(box, self._sent, source))
        except ChannelError as error:
            # It was sent: only its copy is missing.
            log.warning("sent_mail_not_kept", message=message, error=str(error))


#: As IMAP writes them, whatever the language here.
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
