"""Messages to Telegram: the stored chunks; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.approval import CLOSED_BUTTON
from clew.gateway.channels.telegram.entities import (
    MAX_ENTITIES,
    MAX_LENGTH,
    TelegramMeasure,
    defuse_mentions,
    write_entities,
)
from clew.gateway.text.markdown_writer import count_utf16_units
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.sent_files import SentFile

_REPEAT_NOTICE = "(may be a repeat)\n"
#: Maximum characters of a button's label.
_MAX_LABEL = 60
_LIMIT = TextCost(MAX_LENGTH - count_utf16_units(_REPEAT_NOTICE), MAX_ENTITIES - 1)


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON: the parameters of ``sendMessage`` without the chat."""
    bodies = [write_entities(part) for part in paginate(message, TelegramMeasure(), _LIMIT)]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        bodies[-1]["buttons"] = [[button.label, button.data] for button in message.buttons]
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name and type, and the caption as its text."""
    named = {"name": file.name, "media_type": file.media_type}
    return json.dumps({"text": file.caption, "document": named}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: dict[str, Any] = json.loads(chunk)
    moved = count_utf16_units(_REPEAT_NOTICE)
    body["text"] = _REPEAT_NOTICE + body["text"]
    if "entities" in body:
        body["entities"] = [
            {**entity, "offset": entity["offset"] + moved} for entity in body["entities"]
        ]
    return json.dumps(body, ensure_ascii=False)


def build_outcome(became: str) -> dict[str, Any]:
    """Return the markup that replaces answered buttons: one without effect, with the outcome."""
    button = {"text": became[:_MAX_LABEL], "callback_data": CLOSED_BUTTON}
    return {"reply_markup": {"inline_keyboard": [[button]]}}


def without_formatting(chunk: str) -> str:
    """Return the chunk without its entities."""
    body: dict[str, Any] = json.loads(chunk)
    body.pop("entities", None)
    body["text"] = defuse_mentions(body["text"])
    return json.dumps(body, ensure_ascii=False)
