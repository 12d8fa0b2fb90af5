"""Codec of the webhook channel: request bodies to events, messages to request bodies; pure."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from clew.core.channel_events import (
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
    verbatim,
)
from clew.core.payload import as_list, as_objects
from clew.core.quotation import Quoted, quote_forwarded, quote_reply
from clew.core.route import Route
from clew.core.text import sanitize_text
from clew.features.webhooks.signing import MAX_ID_LENGTH, WebhookRejected, WebhookSignature
from clew.gateway.text.markdown_writer import MarkdownMeasure, write_markdown
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.sent_files import SentFile

PLATFORM = "webhook"

_REPEAT_NOTICE = "(may be a repeat)\n"
#: Characters of a caption, with what the markup adds.
_MAX_CAPTION = 4000
_KINDS = (DM, GROUP, CHANNEL)
_QUOTE_BUILDERS = {"forward": quote_forwarded, "reply": quote_reply}

Json = dict[str, Any]


def parse_event(body: bytes, signed: WebhookSignature, *, label: str | None) -> ChannelEvent:
    """
    Parse the event of a request.

    :raises WebhookRejected: if it is invalid, naming the wrong field
    """
    told = _parse_object(body)
    fields = _FieldReader(_get_data(told))
    route = Route(
        platform=PLATFORM,
        kind=fields.read_choice("kind", _KINDS, DM),
        chat=fields.read_id("chat", fields.read_id("user")),
        account=label,
        thread=fields.read_id("thread", "") or None,
    )
    match told.get("type", "message"):
        case "message":
            return _parse_message(fields, route, signed, _parse_timestamp(told, signed))
        case "message.edited":
            return _parse_edit(fields, route, signed, _parse_timestamp(told, signed))
        case "message.deleted":
            return MessageDeleted(event=signed.id, route=route, original=fields.read_id("message"))
        case "button.pressed":
            return ButtonPressed(
                event=signed.id,
                route=route,
                sender=fields.read_sender(),
                message=fields.read_id("message"),
                data=fields.read_text("data"),
            )
        case _:
            raise _invalid_value(
                "type", "message, message.edited, message.deleted or button.pressed"
            )


def _parse_object(body: bytes) -> Json:
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise WebhookRejected(400, "invalid_json", "the body is not valid JSON") from None
    if not isinstance(told, dict):
        raise WebhookRejected(400, "invalid_json", "the body is not a JSON object")
    return cast("Json", told)


def _get_data(told: Json) -> Json:
    data = told.get("data")
    if not isinstance(data, dict):
        raise _invalid_value("data", "an object")
    return cast("Json", data)


def _invalid_value(name: str, wanted: str) -> WebhookRejected:
    return WebhookRejected(400, "invalid_value", f"{name} must be {wanted}")


def _parse_timestamp(told: Json, signed: WebhookSignature) -> datetime:
    said = told.get("timestamp")
    if said is None:
        return datetime.fromtimestamp(signed.at, UTC)
    try:
        moment = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        raise _invalid_value("timestamp", "a time such as 2026-01-31T12:00:00Z") from None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


class _FieldReader:
    """Validating access to the fields of an event."""

    def __init__(self, data: Json) -> None:
        self._data = data

    def read_id(self, name: str, otherwise: str | None = None) -> str:
        value = self._data.get(name, otherwise)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        # A given id must not be empty; the default may be.
        empty = value == "" and name in self._data
        if not isinstance(value, str) or empty or len(value) > MAX_ID_LENGTH:
            raise _invalid_value(f"data.{name}", f"an id, of 1 to {MAX_ID_LENGTH} characters")
        return sanitize_text(value)

    def read_text(self, name: str, *, needed: bool = True) -> str:
        value = self._data.get(name, "" if not needed else None)
        if not isinstance(value, str) or (needed and not value.strip()):
            raise _invalid_value(f"data.{name}", "text")
        return sanitize_text(value)

    def read_quoted(self) -> tuple[Quoted, ...]:
        """Return quoted messages: forwarded or replied to."""
        given: object = self._data.get("quoted", [])
        told = as_objects(given)
        if not isinstance(given, list) or len(told) != len(as_list(given)):  # pyright: ignore[reportUnknownArgumentType]
            raise _invalid_value("data.quoted", "a list of objects with kind, from and text")
        return tuple(self._read_quotation(one) for one in told)

    def _read_quotation(self, told: Json) -> Quoted:
        kind, author, said = told.get("kind", "forward"), told.get("from", ""), told.get("text")
        if kind not in _QUOTE_BUILDERS:
            raise _invalid_value("data.quoted.kind", f"one of {', '.join(_QUOTE_BUILDERS)}")
        if not isinstance(author, str) or not isinstance(said, str):
            raise _invalid_value("data.quoted", "a list of objects with kind, from and text")
        return _QUOTE_BUILDERS[kind](sanitize_text(author), sanitize_text(said))

    def read_choice(self, name: str, known: Sequence[str], otherwise: str) -> str:
        value = self._data.get(name, otherwise)
        if value not in known:
            raise _invalid_value(f"data.{name}", f"one of {', '.join(known)}")
        return str(value)

    def read_flag(self, name: str) -> bool:
        value = self._data.get(name, True)
        if not isinstance(value, bool):
            raise _invalid_value(f"data.{name}", "true or false")
        return value

    def read_sender(self) -> MessageSender:
        name = self._data.get("name", "")
        if not isinstance(name, str):
            raise _invalid_value("data.name", "text")
        return MessageSender(id=self.read_id("user"), name=sanitize_text(name))


def _parse_message(
    fields: _FieldReader, route: Route, signed: WebhookSignature, at: datetime
) -> MessageReceived:
    quoted = fields.read_quoted()
    return MessageReceived(
        event=signed.id,
        route=route,
        sender=fields.read_sender(),
        message=signed.id,
        text=fields.read_text("text", needed=not quoted),
        quoted=quoted,
        addressed=fields.read_flag("addressed"),
        sent_at=at,
    )


def _parse_edit(
    fields: _FieldReader, route: Route, signed: WebhookSignature, at: datetime
) -> MessageEdited:
    original, quoted = fields.read_id("message"), fields.read_quoted()
    return MessageEdited(
        event=signed.id,
        route=route,
        sender=fields.read_sender(),
        message=original,
        text=fields.read_text("text", needed=not quoted),
        quoted=quoted,
        addressed=fields.read_flag("addressed"),
        sent_at=at,
        original=original,
    )


def render(message: OutboundMessage, *, longest: int) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    parts = paginate(message, MarkdownMeasure(len), TextCost(longest - len(_REPEAT_NOTICE)))
    bodies: list[Json] = [{"text": write_markdown(part)} for part in parts]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        bodies[-1]["buttons"] = [
            {"label": button.label, "data": button.data} for button in message.buttons
        ]
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: what is known of it, and the caption as its text."""
    said = render(verbatim(file.caption), longest=_MAX_CAPTION)
    body: Json = json.loads(said[0]) if said else {"text": ""}
    named = {
        "name": file.name,
        "media_type": file.media_type,
        "size": file.size,
        "sha256": file.sha256,
    }
    return json.dumps({**body, "file": named}, ensure_ascii=False)


def add_content(chunk: str, content: bytes) -> str:
    """Return the chunk of a file with its content in base64."""
    body: Json = json.loads(chunk)
    body["file"]["content"] = base64.b64encode(content).decode()
    return json.dumps(body, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "text": _REPEAT_NOTICE + body["text"]}, ensure_ascii=False)


def build_message_body(route: Route, chunk: str) -> bytes:
    """Return the request body for a message; the same for the same message."""
    place = {"chat": route.chat, "kind": route.kind, "thread": route.thread}
    told = {"type": "message", "data": {**place, "format": "markdown", **json.loads(chunk)}}
    return json.dumps(told, ensure_ascii=False).encode()


def build_answer_body(
    pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
) -> bytes:
    """Return the request body that answers a pressed button; ``closed`` removes buttons."""
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
