"""Messages to Discord: what is stored of each, and sent as it was stored; pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from clew.gateway.text.marked import Marked, write
from clew.gateway.text.paging import paginate
from clew.gateway.text.splitting import Cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.chat import OutboundMessage

#: UTF-16 code units of a message: at least as many as Discord counts, whichever it does.
LONGEST = 2000
#: Characters of a nonce, and of a button's label; buttons in a row.
_NONCE, _LABEL, _ROW = 25, 80, 5

_REPEATED = "(may be a repeat)\n"
#: What our buttons begin with.
_BUTTON = "clew:"
_SUPPRESS_EMBEDS = 1 << 2

Json = dict[str, Any]


def render(message: OutboundMessage) -> Sequence[str]:
    """The messages, each as JSON."""
    limit = Cost(LONGEST - len(_REPEATED))
    bodies: list[Json] = [{"content": write(part)} for part in paginate(message, Marked(), limit)]
    if bodies and message.reply_to is not None:
        bodies[0]["reply_to"] = message.reply_to
    if bodies and message.buttons:
        buttons = [
            {"type": 2, "style": 2, "label": one.label[:_LABEL], "custom_id": _BUTTON + one.data}
            for one in message.buttons
        ]
        rows = [buttons[begins : begins + _ROW] for begins in range(0, len(buttons), _ROW)]
        bodies[-1]["components"] = [{"type": 1, "components": row} for row in rows]
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def repeated(chunk: str) -> str:
    """The chunk, which says that it may have been sent before."""
    body: Json = json.loads(chunk)
    return json.dumps({**body, "content": _REPEATED + body["content"]}, ensure_ascii=False)


def pressed_data(custom_id: str) -> str | None:
    """What a button of ours was given; ``None`` where it is not ours."""
    return custom_id.removeprefix(_BUTTON) if custom_id.startswith(_BUTTON) else None


def outcome(became: str) -> list[Json]:
    """What stands in the place of buttons: one that cannot be pressed says what became of them."""
    if not became:
        return []
    label = {"type": 2, "style": 2, "label": became[:_LABEL], "custom_id": "closed"}
    return [{"type": 1, "components": [{**label, "disabled": True}]}]


def nonce(key: str) -> str:
    """The same for the same key, in the few characters that Discord remembers a message by."""
    return hashlib.sha256(key.encode()).hexdigest()[:_NONCE]


def changed(chunk: str) -> Json:
    """What a chunk gives to an edit."""
    body: Json = json.loads(chunk)
    return {
        "content": body["content"],
        "components": body.get("components", []),
        # Nobody is told of it, whatever it says.
        "allowed_mentions": {"parse": [], "replied_user": False},
        "flags": _SUPPRESS_EMBEDS,
    }


def new(chunk: str, *, key: str) -> Json:
    """What a chunk gives to a new message."""
    body: Json = json.loads(chunk)
    found = {**changed(chunk), "nonce": nonce(key), "enforce_nonce": True}
    if "reply_to" in body:
        # The answer is sent also where the question was deleted meanwhile.
        reference = {"message_id": body["reply_to"], "fail_if_not_exists": False}
        found["message_reference"] = reference
    return found
