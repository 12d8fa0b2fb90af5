"""Codec of Signal: the envelopes of signal-cli to events of a chat; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from clew.core.channel_events import (
    DM,
    GROUP,
    ChannelEvent,
    IgnoredEvent,
    IncomingFile,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.payload import Json, as_object, as_objects, as_text
from clew.core.quotation import (
    AGENT,
    OwnLine,
    Quoted,
    format_item,
    format_titled_item,
    quote_reply,
)
from clew.core.route import Route
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

PLATFORM: Final = "signal"
#: Stands in a text for each mention.
_MENTION_MARK: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
#: Envelopes that say nothing of a message.
_OTHERS: Final = ("receiptMessage", "typingMessage", "callMessage", "syncMessage")


class SignalIdentity(Record):
    """The agent's account."""

    number: str
    #: The account's name in routes.
    label: str | None = None


def parse_envelope(told: Json, me: SignalIdentity) -> ChannelEvent | IgnoredEvent:
    """Parse what the daemon tells of one envelope."""
    envelope = as_object(told.get("envelope"))
    if (account := as_text(told.get("account"))) and account != me.number:
        return IgnoredEvent(kind="an event of another account")
    sender = _sender_of(envelope)
    if not sender.id:
        return IgnoredEvent(kind="an envelope of nobody")
    if "syncMessage" in envelope or as_text(envelope.get("sourceNumber")) == me.number:
        return IgnoredEvent(kind="a message of the agent, or of its other devices")
    if edit := as_object(envelope.get("editMessage")):
        return _parse_edit(edit, sender, me)
    if message := as_object(envelope.get("dataMessage")):
        return _parse_message(message, sender, me)
    if "storyMessage" in envelope:
        return IgnoredEvent(kind="a story")
    kind = next((name for name in _OTHERS if name in envelope), "an empty envelope")
    return IgnoredEvent(kind=kind)


def _sender_of(envelope: Json) -> MessageSender:
    # The number of a person may change, or be hidden.
    id_ = as_text(envelope.get("sourceUuid")) or as_text(envelope.get("source"))
    return MessageSender(id=id_, name=as_text(envelope.get("sourceName")))


def _route_of(message: Json, sender: MessageSender, me: SignalIdentity) -> Route:
    group = as_text(as_object(message.get("groupInfo")).get("groupId"))
    kind, chat = (GROUP, group) if group else (DM, sender.id)
    return Route(platform=PLATFORM, kind=kind, chat=chat, account=me.label)


def _parse_edit(
    edit: Json, sender: MessageSender, me: SignalIdentity
) -> ChannelEvent | IgnoredEvent:
    message = as_object(edit.get("dataMessage"))
    found = _parse_message(message, sender, me)
    if not isinstance(found, MessageReceived):
        return found
    original = f"{sender.id}:{as_text(edit.get('targetSentTimestamp'))}"
    return MessageEdited.from_message(replace(found, event=original), at=message.get("timestamp"))


def _parse_message(
    message: Json, sender: MessageSender, me: SignalIdentity
) -> ChannelEvent | IgnoredEvent:
    at, route = as_text(message.get("timestamp")), _route_of(message, sender, me)
    event = f"{sender.id}:{at}"
    if deleted := as_text(as_object(message.get("remoteDelete")).get("timestamp")):
        return MessageDeleted(event=event, route=route, original=f"{sender.id}:{deleted}")
    if as_object(message.get("reaction")).get("isRemove"):
        return IgnoredEvent(kind="a reaction that was taken back")
    text = _read_text(message)
    lines, files = tuple(_read_lines(message)), tuple(_read_files(message, route))
    quoted, unsupported = tuple(_read_quoted(message, me)), _name_unsupported(message)
    if not (text or lines or files or quoted or unsupported):
        if "groupInfo" in message or "groupCallUpdate" in message or message.get("profileKey"):
            return IgnoredEvent(kind="service: a change of a group, or a call")
        unsupported = ("a message without content",)
    return MessageReceived(
        event=event,
        route=route,
        sender=sender,
        message=at,
        text=text,
        lines=lines,
        quoted=quoted,
        unsupported=unsupported,
        files=files,
        addressed=route.kind == DM or _addresses(message, me),
        sent_at=datetime.fromtimestamp(int(at) / 1000, UTC),
    )


def _addresses(message: Json, me: SignalIdentity) -> bool:
    """Return whether a message in a group mentions the agent, or replies to it."""
    mentioned = [as_text(one.get("number")) for one in as_objects(message.get("mentions"))]
    author = as_text(as_object(message.get("quote")).get("authorNumber"))
    return me.number in (*mentioned, author)


def _read_text(message: Json) -> str:
    """Return the sender's words, with a name in place of each mention."""
    text = as_text(message.get("message"))
    for one in sorted(as_objects(message.get("mentions")), key=lambda each: -_start(each)):
        name = as_text(one.get("name")) or as_text(one.get("number")) or "somebody"
        start = _index(text, _start(one))
        if text[start : start + 1] == _MENTION_MARK:
            text = f"{text[:start]}@{name}{text[start + 1 :]}"
    return text.strip()


def _start(mention: Json) -> int:
    start = mention.get("start")
    return start if isinstance(start, int) else 0


def _index(text: str, units: int) -> int:
    """Return the index of the character at a place in UTF-16 code units."""
    encoded = text.encode("utf-16-le", "surrogatepass")[: 2 * units]
    return len(encoded.decode("utf-16-le", "ignore"))


def _read_lines(message: Json) -> Iterator[str]:
    if reaction := as_object(message.get("reaction")):
        yield OwnLine(format_item("reaction", as_text(reaction.get("emoji"))))
    if message.get("isExpirationUpdate"):
        seconds = as_text(message.get("expiresInSeconds"))
        yield OwnLine(format_item(f"messages disappear after {seconds} s"))
    if sticker := as_object(message.get("sticker")):
        yield format_item("sticker", as_text(sticker.get("emoji")))
    for contact in as_objects(message.get("contacts")):
        name = as_object(contact.get("name"))
        shown = as_text(name.get("display")) or as_text(name.get("given")) or "somebody"
        phones = [as_text(one.get("value")) for one in as_objects(contact.get("phone"))]
        yield format_item("contact", shown, *phones)
    if poll := as_object(message.get("pollCreate")):
        yield format_titled_item("poll", as_text(poll.get("question")))
    if message.get("viewOnce"):
        yield OwnLine("[shown only once]")


def _read_files(message: Json, route: Route) -> Iterator[IncomingFile]:
    for one in as_objects(message.get("attachments")):
        media_type = as_text(one.get("contentType")) or "application/octet-stream"
        size = one.get("size")
        yield IncomingFile(
            id=f"{route.kind}:{route.chat}:{as_text(one.get('id'))}",
            name=as_text(one.get("filename")) or media_type.partition("/")[0],
            media_type=media_type,
            size=size if isinstance(size, int) else None,
        )


def _read_quoted(message: Json, me: SignalIdentity) -> Iterator[Quoted]:
    if quote := as_object(message.get("quote")):
        number = as_text(quote.get("authorNumber"))
        author = AGENT if number == me.number else number
        yield quote_reply(author, as_text(quote.get("text")))
    for preview in as_objects(message.get("previews")):
        told = filter(None, (as_text(preview.get(name)) for name in ("title", "description")))
        yield Quoted(source="Preview of a link", text="\n".join(told))
    if "storyContext" in message:
        yield Quoted(source="In reply to a story")


def _name_unsupported(message: Json) -> tuple[str, ...]:
    return tuple(name for name in ("payment", "giftBadge", "pollVote") if name in message)
