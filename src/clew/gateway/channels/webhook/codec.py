"""What other programs hand in as events, and messages as what is sent to them; pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from clew.core.chat import (
    CHANNEL,
    DM,
    GROUP,
    ButtonPressed,
    ChannelEvent,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    MessageSender,
    OutboundMessage,
)
from clew.core.quotation import Quoted, quote_forwarded, quote_reply
from clew.core.route import Route
from clew.core.text import sanitize_text
from clew.gateway.channels.webhook.signing import Refused, Signed
from clew.gateway.payload import each, objs
from clew.gateway.text.marked import Marked, write
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import Cost

if TYPE_CHECKING:
    from collections.abc import Sequence

PLATFORM = "webhook"
#: Characters of a message, where the settings do not say.
LONGEST = 4_000

_REPEATED = "(may be a repeat)\n"
_KINDS = (DM, GROUP, CHANNEL)
_QUOTED = {"forward": quote_forwarded, "reply": quote_reply}
#: Characters of an id.
_LONGEST_ID = 200

Json = dict[str, Any]


def parse(body: bytes, signed: Signed, *, label: str | None) -> ChannelEvent:
    """
    The event that a request tells of.

    :raises Refused: if it cannot be read, saying which field is wrong
    """
    told = _object(body)
    fields = _Fields(_data(told))
    route = Route(
        platform=PLATFORM,
        kind=fields.one_of("kind", _KINDS, DM),
        chat=fields.id("chat", fields.id("user")),
        account=label,
        thread=fields.id("thread", "") or None,
    )
    match told.get("type", "message"):
        case "message":
            return _heard(fields, route, signed, _moment(told, signed))
        case "message.edited":
            return _edited(fields, route, signed, _moment(told, signed))
        case "message.deleted":
            return MessageDeleted(event=signed.id, route=route, original=fields.id("message"))
        case "button.pressed":
            return ButtonPressed(
                event=signed.id,
                route=route,
                sender=fields.sender(),
                message=fields.id("message"),
                data=fields.text("data"),
            )
        case _:
            raise _wrong("type", "message, message.edited, message.deleted or button.pressed")


def _object(body: bytes) -> Json:
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is no JSON") from None
    if not isinstance(told, dict):
        raise Refused(400, "invalid_json", "the body is no JSON object")
    return cast("Json", told)


def _data(told: Json) -> Json:
    data = told.get("data")
    if not isinstance(data, dict):
        raise _wrong("data", "an object")
    return cast("Json", data)


def _wrong(name: str, wanted: str) -> Refused:
    return Refused(400, "invalid_value", f"{name} must be {wanted}")


def _moment(told: Json, signed: Signed) -> datetime:
    said = told.get("timestamp")
    if said is None:
        return datetime.fromtimestamp(signed.at, UTC)
    try:
        moment = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        raise _wrong("timestamp", "a time such as 2026-01-31T12:00:00Z") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


class _Fields:
    def __init__(self, data: Json) -> None:
        self._data = data

    def id(self, name: str, otherwise: str | None = None) -> str:
        value = self._data.get(name, otherwise)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        # One that is given has something in it; the default may be nothing.
        empty = value == "" and name in self._data
        if not isinstance(value, str) or empty or len(value) > _LONGEST_ID:
            raise _wrong(f"data.{name}", f"an id, of 1 to {_LONGEST_ID} characters")
        return sanitize_text(value)

    def text(self, name: str, *, needed: bool = True) -> str:
        value = self._data.get(name, "" if not needed else None)
        if not isinstance(value, str) or (needed and not value.strip()):
            raise _wrong(f"data.{name}", "text")
        return sanitize_text(value)

    def quoted(self) -> tuple[Quoted, ...]:
        """What others wrote: forwarded, or answered."""
        given: object = self._data.get("quoted", [])
        told = objs(given)
        if not isinstance(given, list) or len(told) != len(each(given)):  # pyright: ignore[reportUnknownArgumentType]
            raise _wrong("data.quoted", "a list of objects with kind, from and text")
        return tuple(self._quotation(one) for one in told)

    def _quotation(self, told: Json) -> Quoted:
        kind, author, said = told.get("kind", "forward"), told.get("from", ""), told.get("text")
        if kind not in _QUOTED:
            raise _wrong("data.quoted.kind", f"one of {', '.join(_QUOTED)}")
        if not isinstance(author, str) or not isinstance(said, str):
            raise _wrong("data.quoted", "a list of objects with kind, from and text")
        return _QUOTED[kind](sanitize_text(author), sanitize_text(said))

    def one_of(self, name: str, known: Sequence[str], otherwise: str) -> str:
        value = self._data.get(name, otherwise)
        if value not in known:
            raise _wrong(f"data.{name}", f"one of {', '.join(known)}")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self._data.get(name, True)
        if not isinstance(value, bool):
            raise _wrong(f"data.{name}", "true or false")
        return value

    def sender(self) -> MessageSender:
        name = self._data.get("name", "")
        if not isinstance(name, str):
            raise _wrong("data.name", "text")
        return MessageSender(id=self.id("user"), name=sanitize_text(name))


def _heard(fields: _Fields, route: Route, signed: Signed, at: datetime) -> MessageReceived:
    quoted = fields.quoted()
    return MessageReceived(
        event=signed.id,
        route=route,
        sender=fields.sender(),
        message=signed.id,
        text=fields.text("text", needed=not quoted),
        quoted=quoted,
        addressed=fields.flag("addressed"),
        sent_at=at,
    )


def _edited(fields: _Fields, route: Route, signed: Signed, at: datetime) -> MessageEdited:
    original, quoted = fields.id("message"), fields.quoted()
    return MessageEdited(
        event=signed.id,
        route=route,
        sender=fields.sender(),
        message=original,
        text=fields.text("text", needed=not quoted),
        quoted=quoted,
        addressed=fields.flag("addressed"),
        sent_at=at,
        original=original,
    )


def render(message: OutboundMessage, *, longest: int) -> Sequence[str]:
    """The messages, each as JSON."""
    parts = paginate(message, Marked(len), Cost(longest - len(_REPEATED)))
    bodies: list[Json] = [{"text": write(part)} for part in parts]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        bodies[-1]["buttons"] = [
            {"label": button.label, "data": button.data} for button in message.buttons
        ]
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def repeated(chunk: str) -> str:
    """The chunk, which says that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "text": _REPEATED + body["text"]}, ensure_ascii=False)


def payload(route: Route, chunk: str) -> bytes:
    """The body of the request that hands a message over: the same for the same message."""
    place = {"chat": route.chat, "kind": route.kind, "thread": route.thread}
    told = {"type": "message", "data": {**place, "format": "markdown", **json.loads(chunk)}}
    return json.dumps(told, ensure_ascii=False).encode()


def answered(pressed: ButtonPressed, text: str, *, closed: bool, became: str = "") -> bytes:
    """The body of the request that says what came of a button; once closed, it is to go away."""
    data = {
        "chat": pressed.route.chat,
        "kind": pressed.route.kind,
        "thread": pressed.route.thread,
        "user": pressed.sender.id,
        "message": pressed.message,
        "text": text,
        "closed": closed,
        "became": became,
    }
    told = {"type": "button.answered", "data": data}
    return json.dumps(told, ensure_ascii=False).encode()
