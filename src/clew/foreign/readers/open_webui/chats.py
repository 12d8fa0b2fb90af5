"""Chats of Open WebUI: trees of messages in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.folders import get_nested
from clew.foreign.message_trees import MessageLine, MessageNode, split_tree
from clew.foreign.readers.open_webui.messages import FileFetcher, MessageReader
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.foreign.conversations import ForeignSender
    from clew.foreign.homes import Found


class StoredChat(Record):
    """A chat as it is stored, whatever holds it."""

    id: str
    title: str
    chat: Mapping[str, Any]
    created_at: int
    updated_at: int
    sender: ForeignSender | None = None
    #: Messages that the table has, by their ids.
    more: Mapping[str, Mapping[str, Any]] = {}
    is_growing: bool = False


def read_stored(row: Mapping[str, Any], chat: Mapping[str, Any]) -> StoredChat:
    """Return a row of the database or of an export; older exports are a chat without a row."""
    created = read_moment(row.get("created_at") or chat.get("timestamp"), 0)
    return StoredChat(
        id=as_text(row.get("id") or chat.get("id")),
        title=as_text(row.get("title") or chat.get("title")),
        chat=chat,
        created_at=created,
        updated_at=read_moment(row.get("updated_at"), created),
    )


def list_conversations(stored: StoredChat, files: FileFetcher) -> Iterator[Found]:
    """Yield the conversation of a chat, and its branches."""
    messages = _collect_messages(stored)
    if not stored.id:
        yield ForeignProblem(place="a chat", reason="it has no id")
        return
    nodes = {name: _read_node(as_object(one)) for name, one in messages.items()}
    current = as_text(get_nested(stored.chat, "history.currentId"))
    for line in split_tree(nodes, current):
        yield _make_conversation(stored, line, messages, files)


def _collect_messages(stored: StoredChat) -> dict[str, Any]:
    """Return all messages; the first form of a chat was a list."""
    messages = as_object(get_nested(stored.chat, "history.messages"))
    if not messages:
        before: str | None = None
        for number, one in enumerate(as_list(stored.chat.get("messages")), 1):
            told = as_object(one)
            name = as_text(told.get("id")) or str(number)
            messages[name] = {"parentId": before, **told} if told else one
            before = name
    return {**stored.more, **messages}


def _read_node(told: Mapping[str, Any]) -> MessageNode:
    parent = as_text(told.get("parentId") or told.get("parent_id")) or None
    return MessageNode(parent=parent, is_user=told.get("role") == "user")


def _make_conversation(
    stored: StoredChat, line: MessageLine, messages: Mapping[str, Any], files: FileFetcher
) -> ForeignConversation:
    reader = MessageReader(files, stored.sender, at=stored.created_at)
    if line.leaves_at is None and (prompt := get_nested(stored.chat, "params.system")):
        reader.add("prompt", {"role": "system", "content": prompt})
    for name in line.path:
        reader.add(name, messages[name])
        for other in line.beside.get(name, ()):
            reader.add_beside(other, messages[other])
    found = ForeignConversation(
        id=stored.id,
        title=stored.title,
        created_at=stored.created_at or min((one.at for one in reader.items), default=0),
        items=reader.items,
        is_growing=stored.is_growing,
    )
    if line.leaves_at is None:
        return found
    return replace(found, id=f"{stored.id}/{line.leaves_at}", branch_of=stored.id)
