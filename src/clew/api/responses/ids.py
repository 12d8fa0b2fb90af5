"""Ids of responses and items: each is made from an id of the store, so none is stored."""

from __future__ import annotations

import re

from clew.core.ids import InboxId, TurnId
from clew.errors import NotFound

_RESPONSE = re.compile(r"resp_([0-9a-f]{28})")


def response_id(inbox_id: InboxId) -> str:
    """Return the id of the response to an input."""
    return f"resp_{inbox_id.removeprefix('inb_')}"


def parse_response_id(name: str) -> InboxId:
    """
    Return the input of a response.

    :raises NotFound: if it cannot be the id of a response
    """
    found = _RESPONSE.fullmatch(name)
    if found is None:
        raise NotFound("response", name)
    return InboxId(f"inb_{found[1]}")


def output_id(turn: TurnId, position: int) -> str:
    """Return the id of a turn's output item, known before its text is stored."""
    return f"msg_{turn.removeprefix('trn_')}_{position}"


def input_id(inbox_id: InboxId) -> str:
    """Return the id of the message that an input is."""
    return f"msg_{inbox_id.removeprefix('inb_')}"
