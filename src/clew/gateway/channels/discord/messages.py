"""Messages to Discord: the stored chunks and their API payloads; pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from clew.core.channel_events import verbatim
from clew.gateway.text.markdown_writer import MarkdownMeasure, write_markdown
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.sent_files import SentFile

#: Maximum UTF-16 code units of a message: never fewer than Discord counts, whatever its unit.
MAX_LENGTH = 2000
#: Characters of a nonce, and of a button's label; buttons per row.
_NONCE_LENGTH, _MAX_LABEL, _BUTTONS_PER_ROW = 25, 80, 5

_REPEAT_NOTICE = "(may be a repeat)\n"
#: The prefix of our buttons' ids.
_BUTTON_PREFIX = "clew:"
_SUPPRESS_EMBEDS = 1 << 2

Json = dict[str, Any]


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    limit = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE))
    bodies: list[Json] = [
        {"content": write_markdown(part)} for part in paginate(message, MarkdownMeasure(), limit)
    ]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        buttons = [
            {
                "type": 2,
                "style": 2,
                "label": one.label[:_MAX_LABEL],
                "custom_id": _BUTTON_PREFIX + one.data,
            }
            for one in message.buttons
        ]
        rows = [
            buttons[begins : begins + _BUTTONS_PER_ROW]
            for begins in range(0, len(buttons), _BUTTONS_PER_ROW)
        ]
        bodies[-1]["components"] = [{"type": 1, "components": row} for row in rows]
    if bodies and message.document is not None:
        bodies.insert(0, {"content": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name and type, and the caption as its text."""
    said = render(verbatim(file.caption))
    body: Json = json.loads(said[0]) if said else {"content": ""}
    named = {"name": file.name, "media_type": file.media_type}
    return json.dumps({**body, "document": named}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "content": _REPEAT_NOTICE + body["content"]}, ensure_ascii=False)


def parse_button_data(custom_id: str) -> str | None:
    """Return the data of one of our buttons; ``None`` for other buttons."""
    return custom_id.removeprefix(_BUTTON_PREFIX) if custom_id.startswith(_BUTTON_PREFIX) else None


def build_outcome(became: str) -> list[Json]:
    """Return the components that replace answered buttons: a disabled one with the outcome."""
    if not became:
        return []
    label = {"type": 2, "style": 2, "label": became[:_MAX_LABEL], "custom_id": "closed"}
    return [{"type": 1, "components": [{**label, "disabled": True}]}]


def compute_nonce(key: str) -> str:
    """Return a nonce for a key, short enough for Discord: the same for the same key."""
    return hashlib.sha256(key.encode()).hexdigest()[:_NONCE_LENGTH]


def build_edit(chunk: str) -> Json:
    """Return the payload of an edit."""
    body: Json = json.loads(chunk)
    return {
        "content": body["content"],
        "components": body.get("components", []),
        # It mentions no user, whatever the text.
        "allowed_mentions": {"parse": [], "replied_user": False},
        "flags": _SUPPRESS_EMBEDS,
    }


def build_message(chunk: str, *, key: str) -> Json:
    """Return the payload of a new message."""
    body: Json = json.loads(chunk)
    found = {**build_edit(chunk), "nonce": compute_nonce(key), "enforce_nonce": True}
    if "reply_to" in body:
        # The answer is sent even if the question was deleted meanwhile.
        reference = {"message_id": body["reply_to"], "fail_if_not_exists": False}
        found["message_reference"] = reference
    return found


def build_upload(chunk: str) -> tuple[str, str]:
    """Return name and media type of the file of a chunk."""
    told: Json = json.loads(chunk)["document"]
    return told["name"], told["media_type"]


def build_file(chunk: str) -> tuple[str, bytes] | None:
    """Return name and content of the file to send with a chunk."""
    found: Json | None = json.loads(chunk).get("document")
    return None if found is None else (found["name"], found["text"].encode())
