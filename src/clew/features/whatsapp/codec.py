"""Codec of WhatsApp: webhooks to events of a chat, and to receipts of sent messages; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import (
    DM,
    GROUP,
    ButtonPressed,
    ChannelEvent,
    ChatMigrated,
    IgnoredEvent,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
)
from clew.core.payload import Json, as_object, as_objects, as_text
from clew.core.route import Route
from clew.features.whatsapp.content import WhatsAppContent, read_content
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PLATFORM: Final = "whatsapp"
#: The state of a receipt whose message will not arrive.
FAILED: Final = "failed"


class WhatsAppIdentity(Record):
    """The agent's phone number."""

    phone_number_id: str
    #: Its digits, once the API has told them.
    number: str = ""
    #: The account's name in routes.
    label: str | None = None


class Receipt(Record):
    """What WhatsApp tells of a sent message."""

    #: The key that it was sent with.
    key: str
    message: str
    #: ``sent``, ``delivered``, ``read``, ``played`` or ``failed``.
    state: str
    #: The error of a failed one, as the API describes errors.
    error: Mapping[str, Any]


class WebhookContent(Record):
    """The content of one webhook, in its order."""

    events: tuple[ChannelEvent, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    ignored: tuple[IgnoredEvent, ...] = ()


def parse_webhook(payload: Json, me: WhatsAppIdentity) -> WebhookContent:
    """Parse a webhook, which may have several entries, changes and messages."""
    found: list[ChannelEvent | IgnoredEvent] = []
    receipts: list[Receipt] = []
    for field, value in _iter_changes(payload):
        if field != "messages":
            found.append(IgnoredEvent(kind=f"field: {field}"))
        elif _names_other_number(value, me):
            found.append(IgnoredEvent(kind="an event of another number"))
        else:
            found += [_parse_safely(one, value, me) for one in as_objects(value.get("messages"))]
            receipts += filter(None, map(_parse_receipt, as_objects(value.get("statuses"))))
            found += [IgnoredEvent(kind=f"error: {_name(one)}") for one in _errors(value)]
    return WebhookContent(
        events=tuple(one for one in found if not isinstance(one, IgnoredEvent)),
        receipts=tuple(receipts),
        ignored=tuple(one for one in found if isinstance(one, IgnoredEvent)),
    )


def _iter_changes(payload: Json) -> Iterator[tuple[str, Json]]:
    for entry in as_objects(payload.get("entry")):
        for change in as_objects(entry.get("changes")):
            yield as_text(change.get("field")), as_object(change.get("value"))


def _names_other_number(value: Json, me: WhatsAppIdentity) -> bool:
    named = as_text(as_object(value.get("metadata")).get("phone_number_id"))
    return bool(named) and named != me.phone_number_id


def _errors(value: Json) -> list[Json]:
    return as_objects(value.get("errors"))


def _name(error: Json) -> str:
    return f"{as_text(error.get('code'))} {as_text(error.get('title'))}".strip()


def _parse_receipt(status: Json) -> Receipt | None:
    key = as_text(status.get("biz_opaque_callback_data"))
    if not key:
        return None  # sent by another program
    return Receipt(
        key=key,
        message=as_text(status.get("id")),
        state=as_text(status.get("status")),
        error=(_errors(status) or [Json()])[0],
    )


def _parse_safely(message: Json, value: Json, me: WhatsAppIdentity) -> ChannelEvent | IgnoredEvent:
    try:
        return parse_message(message, value, me)
    except (KeyError, TypeError, ValueError, OverflowError):
        # Passed over: delivered again for days, it would block nothing and help nobody.
        return IgnoredEvent(kind=f"an unreadable message: {as_text(message.get('type'))}")


def parse_message(message: Json, value: Json, me: WhatsAppIdentity) -> ChannelEvent | IgnoredEvent:
    """Parse one message; ``value`` names its sender."""
    if not (message.get("id") and _sender_id(message)):
        return IgnoredEvent(kind="a message of nobody")
    special = _SPECIAL.get(as_text(message.get("type")))
    if special is not None and (found := special(message, value, me)) is not None:
        return found
    return _parse_received(message, value, me)


def _sender_id(message: Json) -> str:
    """Return the digits of the sender's number, or the id of one who hides it."""
    number = as_text(message.get("from")).removeprefix("+")
    return number or as_text(message.get("from_user_id"))


def _read_sender(message: Json, value: Json) -> MessageSender:
    sender = _sender_id(message)
    for contact in as_objects(value.get("contacts")):
        if sender in (as_text(contact.get("wa_id")), as_text(contact.get("user_id"))):
            name = as_text(as_object(contact.get("profile")).get("name"))
            return MessageSender(id=sender, name=name)
    return MessageSender(id=sender)


def _route_of(message: Json, me: WhatsAppIdentity) -> Route:
    group = as_text(message.get("group_id"))
    kind, chat = (GROUP, group) if group else (DM, _sender_id(message))
    return Route(platform=PLATFORM, kind=kind, chat=chat, account=me.label)


def _parse_received(message: Json, value: Json, me: WhatsAppIdentity) -> MessageReceived:
    content = read_content(message, me=me.number)
    route = _route_of(message, me)
    return MessageReceived(
        event=as_text(message["id"]),
        route=route,
        sender=_read_sender(message, value),
        message=as_text(message["id"]),
        text=content.text,
        lines=content.lines,
        quoted=content.quoted,
        unsupported=content.unsupported,
        files=content.files,
        addressed=route.kind == DM or _addresses(message, content, me),
        sent_at=datetime.fromtimestamp(int(message.get("timestamp") or 0), UTC),
    )


def _addresses(message: Json, content: WhatsAppContent, me: WhatsAppIdentity) -> bool:
    """Return whether a message in a group is a reply to the agent, or mentions its number."""
    author = as_text(as_object(message.get("context")).get("from"))
    return bool(me.number) and (author == me.number or f"@{me.number}" in content.text)


def _parse_button(message: Json, value: Json, me: WhatsAppIdentity) -> ButtonPressed | None:
    given = as_object(message.get("interactive"))
    chosen = as_object(given.get("button_reply")) or as_object(given.get("list_reply"))
    under = as_text(as_object(message.get("context")).get("id"))
    if not (chosen.get("id") and under):
        return None
    return ButtonPressed(
        event=as_text(message["id"]),
        route=_route_of(message, me),
        sender=_read_sender(message, value),
        message=under,
        data=as_text(chosen["id"]),
    )


def _parse_reaction(message: Json, value: Json, me: WhatsAppIdentity) -> IgnoredEvent | None:
    emoji = as_text(as_object(message.get("reaction")).get("emoji"))
    return None if emoji else IgnoredEvent(kind="a reaction that was taken back")


def _parse_system(message: Json, value: Json, me: WhatsAppIdentity) -> ChannelEvent | IgnoredEvent:
    system = as_object(message.get("system"))
    number = as_text(system.get("wa_id")) or as_text(system.get("new_wa_id"))
    route = _route_of(message, me)
    if not number or number == route.chat or route.kind != DM:
        return IgnoredEvent(kind=f"service: {as_text(system.get('type')) or 'system'}")
    to = replace(route, chat=number)
    return ChatMigrated(event=as_text(message["id"]), route=route, to=to)


def _parse_welcome(message: Json, value: Json, me: WhatsAppIdentity) -> IgnoredEvent:
    return IgnoredEvent(kind="service: request_welcome")


def _parse_revoke(message: Json, value: Json, me: WhatsAppIdentity) -> MessageDeleted | None:
    original = as_text(as_object(message.get("revoke")).get("original_message_id"))
    if not original:
        return None
    return MessageDeleted(
        event=as_text(message["id"]), route=_route_of(message, me), original=original
    )


def _parse_edit(message: Json, value: Json, me: WhatsAppIdentity) -> MessageEdited | None:
    edit = as_object(message.get("edit"))
    original, inner = as_text(edit.get("original_message_id")), as_object(edit.get("message"))
    if not (original and inner):
        return None
    whole = {**message, **inner, "id": original}
    return MessageEdited.from_message(_parse_received(whole, value, me), at=message["id"])


_SPECIAL: Mapping[
    str, Callable[[Json, Json, WhatsAppIdentity], ChannelEvent | IgnoredEvent | None]
] = {
    "interactive": _parse_button,
    "reaction": _parse_reaction,
    "system": _parse_system,
    "request_welcome": _parse_welcome,
    "revoke": _parse_revoke,
    "edit": _parse_edit,
}
