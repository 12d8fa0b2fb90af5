"""Messages that a chat command sends in the name of the person who wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.ids import new_session_id
from clew.core.inbox import NewInput

if TYPE_CHECKING:
    from clew.plugin.declarations import CommandCall


def describe_writer(call: CommandCall) -> str:
    """Return the writer of a command as inputs name them: JSON."""
    who = call.who
    if who is None:
        return "{}"
    account = [who.account.channel, who.account.account]
    return json.dumps({"account": account, "sender": {"id": who.user, "name": ""}})


async def send_message(call: CommandCall, text: str, *, untrusted: bool = False) -> None:
    """
    Send a message where a command was written; it begins a turn or waits for one.

    ``untrusted``: strangers may have written a part of the text.
    """
    # Every command loads the features, and few send.
    from clew.store.transactions.inbox import accept_input  # noqa: PLC0415

    target = call.route or call.conversation_id
    assert target is not None
    ids = call.services.ids
    item = NewInput(
        id=ids.new_inbox_id(), text=text, payload=describe_writer(call), untrusted=untrusted
    )
    await call.services.store.write(
        accept_input,
        item,
        target=target,
        new_conversation=ids.new_conversation_id(),
        session_ids=new_session_id,
    )
