"""Messages to Telegram: what is stored of each, and sent as it was stored; pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.approval import CLOSED_BUTTON
from clew.gateway.channels.telegram.markup import (
    LONGEST,
    MOST_ENTITIES,
    Telegram,
    unmentioned,
    write,
)
from clew.gateway.text.marked import utf16
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import Cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.chat import OutboundMessage

_REPEATED = "(may be a repeat)\n"
#: Characters of a button's label.
_LABEL = 60
_LIMIT = Cost(LONGEST - utf16(_REPEATED), MOST_ENTITIES - 1)


def render(message: OutboundMessage) -> Sequence[str]:
    """The messages, each as JSON: the parameters of ``sendMessage`` without the chat."""
    bodies = [write(part) for part in paginate(message, Telegram(), _LIMIT)]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        bodies[-1]["buttons"] = [[button.label, button.data] for button in message.buttons]
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def repeated(chunk: str) -> str:
    """The chunk, which says that it may have been sent before."""
    body: dict[str, Any] = json.loads(chunk)
    moved = utf16(_REPEATED)
    body["text"] = _REPEATED + body["text"]
    if "entities" in body:
        body["entities"] = [
            {**entity, "offset": entity["offset"] + moved} for entity in body["entities"]
        ]
    return json.dumps(body, ensure_ascii=False)


def outcome(became: str) -> dict[str, Any]:
    """What stands in the place of buttons: one that does nothing says what became of them."""
    button = {"text": became[:_LABEL], "callback_data": CLOSED_BUTTON}
    return {"reply_markup": {"inline_keyboard": [[button]]}}


def plain(chunk: str) -> str:
    """The chunk without its entities."""
    body: dict[str, Any] = json.loads(chunk)
    body.pop("entities", None)
    body["text"] = unmentioned(body["text"])
    return json.dumps(body, ensure_ascii=False)
