"""One export of ChatGPT."""

from __future__ import annotations

import zipfile
import zlib
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.homes import PlainHome
from clew.foreign.json_arrays import BrokenArray, iter_array
from clew.foreign.message_trees import MessageLine, MessageNode, split_tree
from clew.foreign.readers.chatgpt.messages import LineReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clew.foreign.homes import Found
    from clew.foreign.readers.chatgpt.archive import Archive


class ChatGptHome(PlainHome):
    """The conversations of an export, in its order."""

    def __init__(self, path: Path, archive: Archive) -> None:
        self._archive = archive
        self.description = f"data export of ChatGPT, {path}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        for name in self._archive.conversations:
            yield from self._read_file(name, since)

    def _read_file(self, name: str, since: int) -> Iterator[Found]:
        number = 0
        try:
            with self._archive.open_text(name) as file:
                for number, record in enumerate(iter_array(file), 1):
                    yield from self._read_record(as_object(record), f"{name}, {number}", since)
        except BrokenArray as error:
            place = f"{name}, after conversation {number}"
            yield ForeignProblem(place=place, reason=f"{error}: download the export again")
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            yield ForeignProblem(place=name, reason=f"the zip is damaged ({error})")

    def _read_record(self, told: Mapping[str, Any], place: str, since: int) -> Iterator[Found]:
        mapping = as_object(told.get("mapping"))
        name = as_text(told.get("conversation_id") or told.get("id"))
        if not mapping or not name:
            yield ForeignProblem(place=place, reason="it has no messages or no id")
            return
        created = read_moment(told.get("create_time"), 0)
        if read_moment(told.get("update_time"), created) < since:
            return
        nodes = {key: _read_node(as_object(node)) for key, node in mapping.items()}
        current = as_text(told.get("current_node"))
        title = as_text(told.get("title"))
        for line in split_tree(nodes, current):
            yield self._make_conversation(line, mapping, name, title, created)

    def _make_conversation(
        self, line: MessageLine, mapping: Mapping[str, Any], name: str, title: str, created: int
    ) -> ForeignConversation:
        reader = LineReader(self._archive.read_asset, at=created)
        for key in line.path:
            _add(reader.add, key, mapping)
            for other in line.beside.get(key, ()):
                _add(reader.add_beside, other, mapping)
        items = reader.finish()
        return ForeignConversation(
            id=name if line.leaves_at is None else f"{name}/{line.leaves_at}",
            title=title,
            created_at=created or min((item.at for item in items), default=0),
            items=items,
            branch_of=None if line.leaves_at is None else name,
        )


def _read_node(node: Mapping[str, Any]) -> MessageNode:
    author = as_object(as_object(node.get("message")).get("author"))
    parent = as_text(node.get("parent")) or None
    return MessageNode(parent=parent, is_user=author.get("role") == "user")


def _add(add: Any, key: str, mapping: Mapping[str, Any]) -> None:
    """Add a message; a node without one only holds the tree together."""
    node = as_object(mapping[key])
    message = node.get("message") if node else mapping[key]
    if message is not None:
        add(key, message)
