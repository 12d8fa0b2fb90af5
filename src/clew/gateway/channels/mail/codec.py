"""Codec of mails: their bytes, to events of a chat; pure."""

from __future__ import annotations

import hashlib
from email import message_from_bytes, policy
from email.errors import MessageError
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import DM, IgnoredEvent, IncomingFile, MessageReceived, MessageSender
from clew.core.quotation import OwnLine, Quoted, format_titled_item, quote_forwarded
from clew.core.route import Route
from clew.gateway.channels.mail import threads
from clew.gateway.channels.mail.authentication import is_authenticated
from clew.gateway.channels.mail.automatic import find_reason_not_to_answer
from clew.gateway.channels.mail.bodies import is_file, list_files, read_body, read_file
from clew.gateway.channels.mail.quotes import split_mail_text
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from email.message import EmailMessage, MIMEPart

    from clew.gateway.channels.mail.bodies import MailBody
    from clew.gateway.channels.mail.quotes import OwnWords
    from clew.gateway.channels.mail.settings import MailSettings

PLATFORM: Final = "mail"
NOT_AUTHENTICATED: Final = "a mail whose sender is not proven"
#: Characters of the header with the sender.
_MAX_FROM: Final = 2_000
#: What the library raises where a mail is malformed.
_NOT_READABLE: Final = (
    *(LookupError, TypeError, ValueError, AttributeError, RecursionError),
    *(MessageError, NameError, AssertionError),
)
_MALFORMED: Final = "malformed mail"


class StoredMail(Record):
    """A mail as its folder has it."""

    uid_validity: int
    uid: int
    #: When the server received it.
    received_at: datetime
    size: int
    content: bytes


class ReadMail(Record):
    """The headers of a mail that is answered."""

    mail: EmailMessage
    stored: StoredMail
    event: str
    message: str
    sender: MessageSender
    subject: str
    ids: tuple[str, ...]


def parse_source(content: bytes) -> EmailMessage:
    """Parse the source of a mail; what is malformed is kept as it is."""
    return message_from_bytes(content, policy=policy.default)


def read_headers(stored: StoredMail, settings: MailSettings) -> ReadMail | IgnoredEvent:
    """
    Read who has written a mail, unless it is not to be answered.

    :raises ValueError: if no sender can be read
    """
    mail = parse_source(stored.content)
    sender = _read_sender(mail)
    reason = find_reason_not_to_answer(mail, sender=sender.id, own=settings.address)
    if (
        reason is None
        and settings.require_authentication
        and not _is_proven(mail, sender, settings)
    ):
        reason = NOT_AUTHENTICATED
    if reason is not None:
        return IgnoredEvent(kind=reason)
    told = str(mail.get("message-id") or "").strip()
    event = hashlib.sha256(f"{sender.id}\n{told or _hash_source(stored)}".encode()).hexdigest()[:32]
    return ReadMail(
        mail=mail,
        stored=stored,
        event=event,
        message=told if told.startswith("<") and told.endswith(">") else f"<{event}@unnamed>",
        sender=sender,
        subject=" ".join(str(mail.get("subject") or "").split()),
        ids=tuple(threads.read_ids(mail)),
    )


def _hash_source(stored: StoredMail) -> str:
    return hashlib.sha256(stored.content).hexdigest()


def _read_sender(mail: EmailMessage) -> MessageSender:
    told = [str(value) for name, value in mail.raw_items() if name.lower() == "from"]
    if len(told) != 1 or len(told[0]) > _MAX_FROM:
        raise ValueError("a mail has one header From, of a moderate length")
    addresses = mail["from"].addresses
    if len(addresses) != 1 or not addresses[0].username or not addresses[0].domain:
        raise ValueError("a mail has one sender")
    address = addresses[0]
    return MessageSender(id=address.addr_spec.lower(), name=address.display_name)


def _is_proven(mail: EmailMessage, sender: MessageSender, settings: MailSettings) -> bool:
    return is_authenticated(
        [str(one) for one in mail.get_all("authentication-results") or []],
        authserv_id=settings.authserv_id,
        domain=sender.id.rpartition("@")[2],
    )


def build_event(read: ReadMail, *, label: str | None, thread: str, is_new: bool) -> MessageReceived:
    """Return the event of a mail in a thread; ``is_new`` if the mail begins it."""
    try:
        body = read_body(read.mail)
        files = tuple(_read_files(read))
    except _NOT_READABLE:
        return _build(read, label, thread, unsupported=(_MALFORMED,))
    words = split_mail_text(body.text)
    text = words.text or (threads.strip_reply_prefix(read.subject) if is_new else "")
    quoted, lines = _read_quotations(read, words, body, is_new=is_new)
    if is_new and words.text and read.subject:
        lines = [_describe_subject(read.subject), *lines]
    is_empty = not (text or files or quoted or lines or body.unsupported)
    return _build(
        read,
        label,
        thread,
        text=text,
        lines=(*lines, *map(OwnLine, body.lines), *_describe_cut(read.stored)),
        quoted=tuple(quoted),
        unsupported=("mail without content",) if is_empty else body.unsupported,
        files=files,
    )


def _build(read: ReadMail, label: str | None, thread: str, **more: object) -> MessageReceived:
    chat = read.sender.id
    route = Route(platform=PLATFORM, kind=DM, chat=chat, account=label, thread=thread)
    told: dict[str, Any] = {"text": "", **more}
    return MessageReceived(
        event=read.event,
        route=route,
        sender=read.sender,
        message=read.message,
        sent_at=read.stored.received_at,
        **told,
    )


def _describe_subject(subject: str) -> str:
    line = format_titled_item("subject", subject)
    # That of an answer or of a passed on mail may be another person's.
    is_own = threads.strip_reply_prefix(subject) == subject and not _is_passed_on(subject)
    return OwnLine(line) if is_own else line


def _is_passed_on(subject: str) -> bool:
    return subject.lower().startswith(("fwd:", "fw:", "wg:", "tr:", "i:", "rv:"))


def _read_quotations(
    read: ReadMail, words: OwnWords, body: MailBody, *, is_new: bool
) -> tuple[list[Quoted], list[str]]:
    """Return what a mail quotes; what its own thread has already is left out, with a line."""
    quoted = [
        Quoted(source=f"Quotation {number}", text=text)
        for number, text in enumerate(words.inline, start=1)
    ]
    lines: list[str] = []
    for text in filter(None, (words.quoted, body.quoted)):
        if not is_new:
            lines = [OwnLine("[quoted text cut]")]
        elif _is_passed_on(read.subject):
            quoted.append(quote_forwarded("", text))
        else:
            quoted.append(Quoted(source="Quoted", text=text))
    if words.signature:
        lines.append(OwnLine("[signature cut]"))
    return quoted, lines


def _describe_cut(stored: StoredMail) -> tuple[str, ...]:
    if stored.size <= len(stored.content):
        return ()
    return (OwnLine(f"[the mail was cut: it has {stored.size:,} bytes]"),)


def _read_files(read: ReadMail) -> Iterator[IncomingFile]:
    for position, part in list_files(read.mail):
        yield IncomingFile(
            id=f"{read.stored.uid_validity}.{read.stored.uid}.{position}",
            name=_name_file(part),
            media_type=part.get_content_type(),
            size=len(read_file(part)),
        )


def _name_file(part: MIMEPart) -> str:
    if name := part.get_filename():
        return name
    endings = {"message/rfc822": "mail.eml", "text/calendar": "invitation.ics"}
    kind = part.get_content_type()
    return endings.get(kind) or f"file.{kind.rpartition('/')[2].partition('+')[0][:20]}"


def find_file(content: bytes, position: int) -> bytes | None:
    """Return the content of a file of a mail; ``None`` if there is none."""
    parts = dict(list_files(parse_source(content)))
    part = parts.get(position)
    return read_file(part) if part is not None and is_file(part) else None
