"""Messages to Signal: the stored chunks, and the parameters of ``send``; pure."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from clew.core.channel_events import GROUP
from clew.gateway.text.markdown_writer import count_utf16_units
from clew.gateway.text.paging import paginate
from clew.gateway.text.rich_text import BlockFrame, CodeFrame, TextBlock, TextRun, TextStyle
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.channel_events import OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

#: UTF-16 code units of a message: longer ones are sent as a file that not every client shows.
MAX_LENGTH: Final = 2000
_REPEAT_NOTICE: Final = "(may be a repeat)\n"
_STYLES: Final = (
    (TextStyle.BOLD, "BOLD"),
    (TextStyle.ITALIC, "ITALIC"),
    (TextStyle.STRIKE, "STRIKETHROUGH"),
    (TextStyle.CODE, "MONOSPACE"),
)

Json = dict[str, Any]


class SignalMeasure:
    """The measure of Signal: formatting is separate from the text."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        return TextCost(count_utf16_units(run.text))

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        return TextCost(0)

    def text_cost(self, text: str) -> TextCost:
        return TextCost(count_utf16_units(text))

    def can_link(self, address: str) -> bool:
        return False


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON."""
    limit = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE))
    bodies = [_write_styled(part) for part in paginate(message, SignalMeasure(), limit)]
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def _write_styled(part: Sequence[TextBlock]) -> Json:
    """Return the text of a message, and its styles as ``start:length:STYLE``."""
    text, styles = "", list[tuple[int, int, str]]()
    for piece in part:
        text += piece.separator if text else ""
        for run in piece.runs:
            start, length = count_utf16_units(text), count_utf16_units(run.text)
            text += run.text
            style = run.style | (
                TextStyle.CODE if isinstance(piece.frame, CodeFrame) else TextStyle.PLAIN
            )
            styles += [(start, length, name) for kind, name in _STYLES if style & kind]
    return {"text": text, "styles": styles} if styles else {"text": text}


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name and type, and the caption as its text."""
    named = {"name": file.name, "media_type": file.media_type}
    return json.dumps({"text": file.caption, "document": named}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    body["text"] = _REPEAT_NOTICE + body["text"]
    moved = count_utf16_units(_REPEAT_NOTICE)
    if "styles" in body:
        body["styles"] = [[start + moved, *rest] for start, *rest in body["styles"]]
    return json.dumps(body, ensure_ascii=False)


def read_document(chunk: str) -> bytes | None:
    """Return the content of the document of a chunk."""
    found: Json = json.loads(chunk).get("document") or {}
    return found["text"].encode() if "text" in found else None


def build_recipient(route: Route) -> Json:
    """Return the parameters that name a chat."""
    return {"groupId": route.chat} if route.kind == GROUP else {"recipient": [route.chat]}


def build_send(route: Route, chunk: str, content: bytes | None = None) -> Json:
    """Return the parameters of ``send``; ``content`` is that of its file."""
    body: Json = json.loads(chunk)
    told: Json = {**build_recipient(route), "message": body["text"]}
    if body.get("styles"):
        told["textStyle"] = [":".join(map(str, one)) for one in body["styles"]]
    if content is not None:
        named = body["document"]
        media_type = named.get("media_type") or "text/plain"
        data = base64.b64encode(content).decode()
        told["attachments"] = [f"data:{media_type};filename={quote(named['name'])};base64,{data}"]
    return told
