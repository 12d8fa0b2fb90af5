"""
Messages to Slack: the stored chunks; pure.

Written as rich text: formatting is separate from the text, so that no character of it is
read as markup and nothing mentions anybody. ``text`` is shown in notifications.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from clew.gateway.text.markdown_writer import is_linkable
from clew.gateway.text.paging import paginate
from clew.gateway.text.rich_text import (
    BlockFrame,
    CodeFrame,
    QuoteFrame,
    TextBlock,
    TextRun,
    TextStyle,
    to_plain_text,
)
from clew.gateway.text.splitting import TextCost, group_by_frame
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.sent_files import SentFile

#: Maximum escaped characters of an editable message, and elements of its text.
MAX_LENGTH = 4000
_MAX_ELEMENTS = 400

_REPEAT_NOTICE = "(may be a repeat)\n"
_LIMIT = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE), _MAX_ELEMENTS)
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_STYLES = (
    (TextStyle.BOLD, "bold"),
    (TextStyle.ITALIC, "italic"),
    (TextStyle.STRIKE, "strike"),
    (TextStyle.CODE, "code"),
)
#: Maximum characters of a link's address, and of a button's label.
_MAX_ADDRESS = 3000
_MAX_LABEL = 75

#: Digits in the name of a file, by which it is found again.
_NAME_DIGITS = 12

Json = dict[str, Any]


class UploadedDocument(Record):
    """A file to upload to Slack."""

    name: str
    title: str
    content: bytes
    comment: str


def escape_mrkdwn(text: str) -> str:
    """Escape the three special characters of mrkdwn: the text has no mention or link then."""
    for sign, written in _ESCAPES:
        text = text.replace(sign, written)
    return text


def unescape_mrkdwn(text: str) -> str:
    for sign, written in reversed(_ESCAPES):
        text = text.replace(written, sign)
    return text


class SlackMeasure:
    """The measure of Slack, as an upper bound."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        return TextCost(len(escape_mrkdwn(run.text)), 1)

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        return TextCost(1, 1)

    def text_cost(self, text: str) -> TextCost:
        return TextCost(len(text), 1)

    def can_link(self, address: str) -> bool:
        return is_linkable(address) and len(address) <= _MAX_ADDRESS


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    bodies = [_build_body(part) for part in paginate(message, SlackMeasure(), _LIMIT)]
    if bodies and message.buttons:
        buttons = [
            {
                "type": "button",
                "action_id": f"clew:{number}",
                "text": {"type": "plain_text", "text": button.label[:_MAX_LABEL]},
                "value": button.data,
            }
            for number, button in enumerate(message.buttons)
        ]
        bodies[-1]["blocks"].append({"type": "actions", "elements": buttons})
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def _build_body(part: Sequence[TextBlock]) -> Json:
    elements = [_build_element(frame, pieces) for frame, pieces in group_by_frame(part)]
    return {
        "text": escape_mrkdwn(to_plain_text(part)),
        "blocks": [{"type": "rich_text", "elements": elements}],
    }


def _build_element(frame: BlockFrame | None, pieces: Sequence[TextBlock]) -> Json:
    if isinstance(frame, CodeFrame):
        # Slack rejects empty texts.
        text = "\n".join(piece.text for piece in pieces) or " "
        return {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    inner: list[Json] = []
    for number, piece in enumerate(pieces):
        if number and piece.separator:
            inner.append({"type": "text", "text": piece.separator})
        inner += [_build_inline(run) for run in piece.runs if run.text]
    kind = "rich_text_quote" if isinstance(frame, QuoteFrame) else "rich_text_section"
    return {"type": kind, "elements": inner or [{"type": "text", "text": " "}]}


def _build_inline(run: TextRun) -> Json:
    style = {name: True for kind, name in _STYLES if run.style & kind}
    styled = {"style": style} if style else {}
    if run.link is not None:
        return {"type": "link", "url": run.link, "text": run.text, **styled}
    return {"type": "text", "text": run.text, **styled}


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name, and the caption as its text."""
    body = {"text": escape_mrkdwn(file.caption), "document": {"name": file.name}}
    return json.dumps(body, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    body["text"] = escape_mrkdwn(_REPEAT_NOTICE) + body["text"]
    for block in body.get("blocks", ()):
        if block["type"] == "rich_text":
            says = [{"type": "text", "text": _REPEAT_NOTICE.rstrip()}]
            block["elements"].insert(0, {"type": "rich_text_section", "elements": says})
    return json.dumps(body, ensure_ascii=False)


def without_formatting(chunk: str) -> str:
    """Return the chunk without formatting."""
    body: Json = json.loads(chunk)
    body.pop("blocks", None)
    return json.dumps(body, ensure_ascii=False)


def build_document(chunk: str, *, key: str, content: bytes = b"") -> UploadedDocument | None:
    """
    Return the document of a chunk, if it is one; its file name is the same for the same key.

    ``content`` is that of a stored file; of a text, the chunk has it.
    """
    body: Json = json.loads(chunk)
    if "document" not in body:
        return None
    name, dot, suffix = body["document"]["name"].rpartition(".")
    if not dot:
        name, suffix = suffix, ""
    digest = hashlib.sha256(key.encode()).hexdigest()[:_NAME_DIGITS]
    return UploadedDocument(
        name=f"{name}-{digest}{dot}{suffix}",
        title=body["document"]["name"],
        content=body["document"].get("text", "").encode() or content,
        comment=body["text"].strip(),
    )


def replace_buttons(message: Json, became: str = "") -> Json:
    """Return our message, as Slack returned it, with the outcome in place of its buttons."""
    blocks: list[Json] = message.get("blocks") or []
    kept = [block for block in blocks if block.get("type") != "actions"]
    if became:
        says = {"type": "plain_text", "text": became[:_MAX_LABEL]}
        kept.append({"type": "context", "elements": [says]})
    return {"text": message.get("text", ""), "blocks": kept}
