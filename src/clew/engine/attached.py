"""Messages as the model reads them: with what the files hold that came with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import messages
from clew.agent.files import collect_attachment_digests, insert_attachment_contents
from clew.store.transactions import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.messages import ModelMessage
    from clew.store.contract import Store


async def read_messages(
    store: Store, stored: Sequence[str], *, pictures: bool
) -> list[ModelMessage]:
    """The messages that ``dump`` wrote; without ``pictures`` they say that there is one."""
    found = [messages.load_message(each) for each in stored]
    if not (digests := collect_attachment_digests(found)):
        return found
    contents = await store.read(files.read_contents, digests)
    return [insert_attachment_contents(message, contents, pictures=pictures) for message in found]
