"""
Messages to Slack: what is stored of each, and sent as it was stored; pure.

Written as rich text: its formats are told beside the text, so no sign of it is taken for a mark and
nothing of it mentions anybody. ``text`` is what notifications show.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.gateway.text.marked import linkable
from clew.gateway.text.paging import paginate
from clew.gateway.text.pieces import Code, Frame, Piece, Quote, Run, Style, plain
from clew.gateway.text.splitting import Cost, framed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.chat import OutboundMessage

#: Characters of a message that can still be changed, as they are escaped; and parts of its text.
LONGEST = 4000
_MOST_PARTS = 400

_REPEATED = "(may be a repeat)\n"
_LIMIT = Cost(LONGEST - len(_REPEATED), _MOST_PARTS)
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
_STYLES = (
    (Style.BOLD, "bold"),
    (Style.ITALIC, "italic"),
    (Style.STRIKE, "strike"),
    (Style.CODE, "code"),
)
#: Characters of an address behind a text, and of a button's label.
_LONGEST_ADDRESS = 3000
_LONGEST_LABEL = 75

Json = dict[str, Any]


def escape(text: str) -> str:
    """The text as mrkdwn: with the three signs escaped it holds no mention, channel or link."""
    for sign, written in _ESCAPES:
        text = text.replace(sign, written)
    return text


def unescape(text: str) -> str:
    for sign, written in reversed(_ESCAPES):
        text = text.replace(written, sign)
    return text


class Slack:
    """How Slack counts, at most."""

    def run(self, run: Run, frame: Frame | None) -> Cost:
        return Cost(len(escape(run.text)), 1)

    def frame(self, frame: Frame) -> Cost:
        return Cost(1, 1)

    def text(self, text: str) -> Cost:
        return Cost(len(text), 1)

    def links(self, address: str) -> bool:
        return linkable(address) and len(address) <= _LONGEST_ADDRESS


def render(message: OutboundMessage) -> Sequence[str]:
    """The messages, each as JSON."""
    bodies = [_body(part) for part in paginate(message, Slack(), _LIMIT)]
    if bodies and message.buttons:
        buttons = [
            {
                "type": "button",
                "action_id": f"clew:{number}",
                "text": {"type": "plain_text", "text": button.label[:_LONGEST_LABEL]},
                "value": button.data,
            }
            for number, button in enumerate(message.buttons)
        ]
        bodies[-1]["blocks"].append({"type": "actions", "elements": buttons})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def _body(part: Sequence[Piece]) -> Json:
    elements = [_element(frame, pieces) for frame, pieces in framed(part)]
    return {
        "text": escape(plain(part)),
        "blocks": [{"type": "rich_text", "elements": elements}],
    }


def _element(frame: Frame | None, pieces: Sequence[Piece]) -> Json:
    if isinstance(frame, Code):
        # Slack takes no empty text.
        text = "\n".join(piece.text for piece in pieces) or " "
        return {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]}
    inner: list[Json] = []
    for number, piece in enumerate(pieces):
        if number and piece.glue:
            inner.append({"type": "text", "text": piece.glue})
        inner += [_written(run) for run in piece.runs if run.text]
    kind = "rich_text_quote" if isinstance(frame, Quote) else "rich_text_section"
    return {"type": kind, "elements": inner or [{"type": "text", "text": " "}]}


def _written(run: Run) -> Json:
    style = {name: True for kind, name in _STYLES if run.style & kind}
    styled = {"style": style} if style else {}
    if run.link is not None:
        return {"type": "link", "url": run.link, "text": run.text, **styled}
    return {"type": "text", "text": run.text, **styled}


def repeated(chunk: str) -> str:
    """The chunk, which says that it may have been sent before."""
    body: Json = json.loads(chunk)
    body["text"] = escape(_REPEATED) + body["text"]
    for block in body.get("blocks", ()):
        if block["type"] == "rich_text":
            says = [{"type": "text", "text": _REPEATED.rstrip()}]
            block["elements"].insert(0, {"type": "rich_text_section", "elements": says})
    return json.dumps(body, ensure_ascii=False)


def plain_chunk(chunk: str) -> str:
    """The chunk without its formats."""
    body: Json = json.loads(chunk)
    return json.dumps({"text": body["text"]}, ensure_ascii=False)


def without_buttons(message: Json, became: str = "") -> Json:
    """A message of ours as Slack shows it, with what became of its buttons in their place."""
    blocks: list[Json] = message.get("blocks") or []
    kept = [block for block in blocks if block.get("type") != "actions"]
    if became:
        says = {"type": "plain_text", "text": became[:_LONGEST_LABEL]}
        kept.append({"type": "context", "elements": [says]})
    return {"text": message.get("text", ""), "blocks": kept}
