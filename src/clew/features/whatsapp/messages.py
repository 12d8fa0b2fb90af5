"""Messages to WhatsApp: the stored chunks and the API's payloads; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import GROUP
from clew.features.whatsapp.formatting import WhatsAppMeasure, write_formatted
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import TextCost
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

#: Characters of a text, and of the body above buttons.
MAX_LENGTH: Final = 4096
_MAX_BUTTON_BODY: Final = 1024
#: Buttons under a message, rows of a list, and characters of their titles.
_MAX_BUTTONS, _MAX_BUTTON_TITLE = 3, 20
_MAX_ROWS, _MAX_ROW_TITLE = 10, 24
_LIST_LABEL: Final = "Answer"
_REPEAT_NOTICE: Final = "(may be a repeat)\n"
#: The most bytes of a file that the API takes, by the kind of its message.
MAX_FILE_BYTES: Final = 100_000_000
_KIND_BYTES: Final = {"image": 5_000_000, "video": 16_000_000, "audio": 16_000_000}
_KINDS: Final = {
    "image/jpeg": "image", "image/png": "image", "video/mp4": "video", "video/3gpp": "video",
    "audio/aac": "audio", "audio/mp4": "audio", "audio/mpeg": "audio", "audio/amr": "audio",
}  # fmt: skip

_TEXT_TYPES: Final = ("application/json", "application/xml", "application/x-yaml")

Json = dict[str, Any]


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    limit = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE))
    parts = paginate(message, WhatsAppMeasure(), limit)
    bodies: list[Json] = [{"text": write_formatted(part)} for part in parts]
    if bodies and message.buttons:
        bodies[-1]["buttons"] = [[one.label, one.data] for one in message.buttons]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name and type, and the caption as its text."""
    named = {"name": file.name, "media_type": file.media_type}
    return json.dumps({"text": file.caption, "document": named}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "text": _REPEAT_NOTICE + body["text"]}, ensure_ascii=False)


def read_document(chunk: str) -> tuple[str, bytes] | None:
    """Return name and content of the document of a chunk."""
    found: Json | None = json.loads(chunk).get("document")
    return None if found is None or "text" not in found else (found["name"], found["text"].encode())


class UploadType(Record):
    """How a file is uploaded, and shown."""

    media_type: str
    #: The kind of its message: ``image``, ``video``, ``audio`` or ``document``.
    kind: str


def choose_upload_type(chunk: str, size: int) -> UploadType:
    """Return how the file of a chunk is uploaded."""
    media_type = read_file(chunk)[1].partition(";")[0].strip().lower()
    kind = _KINDS.get(media_type, "document")
    # A recording has no caption.
    if size > _KIND_BYTES.get(kind, MAX_FILE_BYTES) or (
        kind == "audio" and json.loads(chunk)["text"]
    ):
        kind = "document"
    # The API takes no other text; the name keeps the ending.
    is_text = media_type.startswith("text/") or media_type in _TEXT_TYPES
    return UploadType(media_type="text/plain" if is_text else media_type, kind=kind)


def read_file(chunk: str) -> tuple[str, str]:
    """Return the name and the media type of the file of a chunk."""
    named: Json = json.loads(chunk)["document"]
    return str(named["name"]), str(named.get("media_type") or "text/plain")


def build_message(route: Route, chunk: str, *, key: str) -> Json:
    """Return the payload of a text, with its buttons."""
    body: Json = json.loads(chunk)
    if "buttons" in body:
        told: Json = {"type": "interactive", "interactive": _build_interactive(body)}
    else:
        told = {"type": "text", "text": {"body": body["text"], "preview_url": False}}
    if body.get("reply_to"):
        told["context"] = {"message_id": body["reply_to"]}
    return address(route, told, key=key)


def build_media(route: Route, chunk: str, media: str, kind: str, *, key: str) -> Json:
    """Return the payload of a message that shows an uploaded file."""
    text, (name, _) = json.loads(chunk)["text"], read_file(chunk)
    shown: Json = {"id": media}
    if kind == "document":
        shown["filename"] = name
    if kind != "audio" and text:
        shown["caption"] = text
    return address(route, {"type": kind, kind: shown}, key=key)


def build_template(route: Route, name: str, language: str) -> Json:
    """Return the payload of a template without parameters."""
    template = {"name": name, "language": {"code": language}}
    return address(route, {"type": "template", "template": template}, key="")


def address(route: Route, told: Json, *, key: str) -> Json:
    """Return a payload with its recipient, and with the key that receipts repeat."""
    marked = {"biz_opaque_callback_data": key} if key else {}
    # A person who hides the number has an id with letters.
    named = "to" if route.kind == GROUP or route.chat.isdigit() else "recipient"
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "group" if route.kind == GROUP else "individual",
        named: route.chat,
        **told,
        **marked,
    }


def _build_interactive(body: Json) -> Json:
    """Return buttons where they fit, else a list to choose from."""
    buttons: list[tuple[str, str]] = [tuple(one) for one in body["buttons"]]
    text = {"body": {"text": body["text"]}}
    if len(buttons) <= _MAX_BUTTONS and len(body["text"]) <= _MAX_BUTTON_BODY:
        replies = [
            {"type": "reply", "reply": {"id": data, "title": label[:_MAX_BUTTON_TITLE]}}
            for label, data in buttons
        ]
        return {"type": "button", **text, "action": {"buttons": replies}}
    rows = [{"id": data, "title": label[:_MAX_ROW_TITLE]} for label, data in buttons[:_MAX_ROWS]]
    action = {"button": _LIST_LABEL, "sections": [{"rows": rows}]}
    return {"type": "list", **text, "action": action}


def build_read_mark(message: str, *, typing: bool) -> Json:
    """Return the payload that marks a message as read, with the typing indicator."""
    shown = {"typing_indicator": {"type": "text"}} if typing else {}
    return {"messaging_product": "whatsapp", "status": "read", "message_id": message, **shown}
