"""Connection to a mailbox: IMAP in a thread of its own, and the mapping of failures."""

# The library describes results in part only.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import imaplib
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from imap_tools import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted
from imap_tools.errors import ImapToolsError, MailboxLoginError, MailboxStarttlsError

from clew.errors import AccountRefused, NotSent
from clew.gateway.channels.mail.codec import StoredMail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clew.gateway.channels.mail.settings import MailSettings

T = TypeVar("T")

#: Seconds for one answer of the server.
_TIMEOUT: Final = 25.0
#: Bytes up to which a mail is read as a whole; of a larger one the beginning.
MAX_MAIL_BYTES: Final = 25 * 1024 * 1024
_BEGINNING: Final = 1024 * 1024
_FAILURES: Final = (OSError, imaplib.IMAP4.error, ImapToolsError, EOFError)


class Mailbox:
    """One connection to the account; it does one thing at a time."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="imap")
        self._box: BaseMailBox | None = None

    async def run(self, call: Callable[[BaseMailBox], T]) -> T:
        """
        Make a call on the connection, which is opened first if there is none.

        :raises AccountRefused: if the server refuses the password
        :raises NotSent: if the connection fails; the next call opens another one
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._call, call)
        except asyncio.CancelledError:
            # The thread may be waiting for the server.
            self._cut()
            raise
        except MailboxLoginError as error:
            self._cut()
            raise AccountRefused(_describe_refusal(error)) from None
        except (*_FAILURES, MailboxStarttlsError) as error:
            self._cut()
            raise NotSent(f"the IMAP connection failed ({_describe(error)})") from None

    def close(self) -> None:
        """Close the connection; what waits for it ends."""
        self._cut()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _cut(self) -> None:
        box, self._box = self._box, None
        if box is not None:
            with suppress(OSError):
                box.client.socket().shutdown(socket.SHUT_RDWR)
            with suppress(*_FAILURES):
                box.client.shutdown()

    def _call(self, call: Callable[[BaseMailBox], T]) -> T:
        if self._box is None:
            self._box = self._connect()
        return call(self._box)

    def _connect(self) -> BaseMailBox:
        settings, server = self._settings, self._settings.imap
        box: BaseMailBox
        if server.is_local and not server.tls:
            box = MailBoxUnencrypted(server.host, server.port, _TIMEOUT)
        elif server.tls:
            context = ssl.create_default_context()
            box = MailBox(server.host, server.port, _TIMEOUT, ssl_context=context)
        else:
            context = ssl.create_default_context()
            box = MailBoxStartTls(server.host, server.port, _TIMEOUT, ssl_context=context)
        try:
            _log_in(box, settings)
        except BaseException:
            with suppress(*_FAILURES):
                box.client.shutdown()
            raise
        return box


def _log_in(box: BaseMailBox, settings: MailSettings) -> None:
    user, password = settings.user, settings.password
    if user.isascii() and password.isascii():
        box.login(user, password, initial_folder=None)
        return
    try:
        box.login_utf8(user, password, initial_folder=None)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error as error:
        raise MailboxLoginError(("NO", [str(error).encode()]), "OK") from None


def _describe(error: BaseException) -> str:
    return type(error).__name__


def _describe_refusal(error: MailboxLoginError) -> str:
    told = b" ".join(one for one in error.command_result[1] if isinstance(one, bytes))
    return (
        f"the IMAP server refuses user and password ({told.decode(errors='replace')[:200]}): "
        "check them, or create a password for this program"
    )


# Calls on a connection


def open_folder(box: BaseMailBox, folder: str) -> int:
    """Open a folder, and return its UIDVALIDITY."""
    box.folder.set(folder)
    return int(box.folder.status(folder, ["UIDVALIDITY"])["UIDVALIDITY"])


def find_next_uid(box: BaseMailBox, folder: str) -> int:
    """Return the UID that the next mail will have."""
    return int(box.folder.status(folder, ["UIDNEXT"])["UIDNEXT"])


def find_sent_folder(box: BaseMailBox) -> str:
    """Return the folder for sent mails that the server names, or ``Sent``, which is created."""
    for folder in box.folder.list():
        if r"\sent" in (flag.lower() for flag in folder.flags):
            return folder.name
    if not box.folder.exists("Sent"):
        box.folder.create("Sent")
    return "Sent"


def list_uids(box: BaseMailBox, criteria: str) -> Sequence[int]:
    """Return the UIDs of mails, the oldest first."""
    return sorted(int(one) for one in box.uids(criteria))


def wait_for_mail(box: BaseMailBox, seconds: float) -> bool:
    """Wait until the server tells something; return ``False`` at once where it would not."""
    if "IDLE" not in box.client.capabilities:
        return False
    # One tells how many there were when the folder was opened; more have come since.
    if len(box.client.untagged_responses.get("EXISTS", [])) <= 1:
        box.idle.wait(timeout=seconds)
    return True


def read_mail(box: BaseMailBox, uid: int, uid_validity: int) -> StoredMail | None:
    """Return a mail; ``None`` if it is gone. It stays unread."""
    told = _fetch(box, uid, "(RFC822.SIZE INTERNALDATE)")
    size = re.search(rb"RFC822\.SIZE (\d+)", told[0])
    if size is None:
        return None
    whole = int(size[1]) <= MAX_MAIL_BYTES
    asked = "(BODY.PEEK[])" if whole else f"(BODY.PEEK[]<0.{_BEGINNING}>)"
    content = _fetch(box, uid, asked)[1]
    return StoredMail(
        uid_validity=uid_validity,
        uid=uid,
        received_at=_parse_time(told[0]),
        size=int(size[1]) if not whole else len(content),
        content=content,
    )


def _fetch(box: BaseMailBox, uid: int, what: str) -> tuple[bytes, bytes]:
    """Return the answer about one mail, and the literal in it."""
    state, parts = box.client.uid("FETCH", str(uid), what)
    if state != "OK":
        raise imaplib.IMAP4.error(f"FETCH: {state}")
    found: tuple[bytes, bytes] = (b"", b"")
    for part in parts:
        lines: Any = part
        if isinstance(part, tuple):
            found = (found[0] + lines[0], lines[1])
        elif isinstance(part, bytes):
            found = (found[0] + part, found[1])
    return found


def _parse_time(told: bytes) -> datetime:
    found = re.search(rb'INTERNALDATE "([^"]+)"', told)
    if found is not None:
        with suppress(ValueError):
            return datetime.strptime(found[1].decode().strip(), "%d-%b-%Y %H:%M:%S %z")
    return datetime.fromtimestamp(0, UTC)


def mark_read(box: BaseMailBox, uids: Sequence[int]) -> None:
    """Mark mails as read."""
    box.client.uid("STORE", ",".join(map(str, uids)), "+FLAGS.SILENT", r"(\Seen)")


def has_message(box: BaseMailBox, folder: str, message: str) -> bool:
    """Return whether a folder has a mail with a message ID."""
    box.folder.set(folder)
    return bool(box.uids(f'HEADER Message-ID "{message}"'))


def append_mail(box: BaseMailBox, folder: str, content: bytes) -> None:
    """Append a mail that was sent, as read."""
    box.append(content, folder, flag_set=[r"\Seen"])
