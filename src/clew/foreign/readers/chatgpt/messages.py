"""Messages of ChatGPT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import make_event, read_content, read_moment
from clew.foreign.conversations import (
    ForeignCall,
    ForeignEvent,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
)
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clew.foreign.conversations import ForeignItem

#: Kinds of content that are shown to nobody, or are made from others.
_EVENTS: Final = {
    "user_editable_context": "instructions",
    "model_editable_context": "memory",
    "reasoning_recap": "reasoning",
    "system_error": "error",
}
_EVERYONE: Final = ("all", "")


class LineReader:
    """Reader of one line of messages: results find their calls, thoughts their answers."""

    def __init__(self, fetch: Callable[[str], tuple[str, bytes | None]], *, at: int) -> None:
        self._fetch = fetch
        self._at = at
        self._open: list[ForeignCall] = []
        self._thoughts: list[ForeignEvent] = []
        self.items: list[ForeignItem] = []

    def add(self, name: str, message: object) -> None:
        """Add a message of the line."""
        told = as_object(message)
        self._at = read_moment(told.get("create_time"), self._at)
        content = as_object(told.get("content"))
        kind = as_text(content.get("content_type"))
        role = as_text(as_object(told.get("author")).get("role"))
        text = _read_text(content)
        if kind == "thoughts":
            event = self._make_event(name, told, "reasoning", _read_thoughts(content))
            self._thoughts.append(event)
        elif role not in ("user", "assistant", "tool") or kind in _EVENTS or _is_hidden(told):
            usual = "system" if role == "system" else "unknown" if told else "damaged"
            event = self._make_event(name, message, _EVENTS.get(kind, usual), text)
            self.items.append(event)
        else:
            self._add_message(name, told, Role(role), text)

    def add_beside(self, name: str, message: object) -> None:
        """Add a message that was replaced by another one."""
        told = as_object(message)
        text = _read_text(as_object(told.get("content"))) or "An empty message"
        self.items.append(self._make_event(name, message, "variant", text))

    def finish(self) -> Sequence[ForeignItem]:
        """Return the items."""
        self.items += self._thoughts
        self._thoughts = []
        return self.items

    def _make_event(self, name: str, message: object, kind: str, text: str) -> ForeignEvent:
        text = text or f"A message without a text ({kind})"
        return make_event(message, name=name, at=self._at, kind=kind, text=text)

    def _add_message(self, name: str, told: Mapping[str, Any], role: Role, text: str) -> None:
        item = ForeignMessage(id=name, role=role, at=self._at)
        author = as_text(as_object(told.get("author")).get("name"))
        if role is Role.USER:
            self.items += self._thoughts
            item = replace(item, text=text, files=[*self._list_files(told)])
        elif role is Role.TOOL:
            result = ForeignResult(call_id=self._find_call(author), name=author, text=text)
            item = replace(item, results=(result,), files=[*self._list_files(told)])
        else:
            item = self._make_answer(item, told, text)
        if role is not Role.TOOL:
            self._thoughts = []
        self.items.append(item)

    def _make_answer(
        self, item: ForeignMessage, told: Mapping[str, Any], text: str
    ) -> ForeignMessage:
        recipient = as_text(told.get("recipient"))
        calls: tuple[ForeignCall, ...] = ()
        if recipient not in _EVERYONE:
            calls = (ForeignCall(id=item.id, name=recipient, arguments=text),)
            self._open = [*self._open, *calls]
        return replace(
            item,
            text="" if calls else text,
            reasoning="\n\n".join(thought.text for thought in self._thoughts),
            calls=calls,
            model=as_text(as_object(told.get("metadata")).get("model_slug")),
        )

    def _find_call(self, author: str) -> str:
        """Return the id of the newest open call of a tool; of its parts, ``a.b`` is of ``a``."""
        for call in reversed(self._open):
            if call.name == author or call.name.partition(".")[0] == author.partition(".")[0]:
                self._open.remove(call)
                return call.id
        return ""

    def _list_files(self, told: Mapping[str, Any]) -> Iterator[ForeignFile]:
        about = [
            as_object(one) for one in as_list(as_object(told.get("metadata")).get("attachments"))
        ]
        names = {as_text(one.get("id")): one for one in about}
        pointers = [
            as_text(as_object(part).get("asset_pointer"))
            for part in as_list(as_object(told.get("content")).get("parts"))
        ]
        found = [pointer.rpartition("/")[2].partition("?")[0] for pointer in pointers if pointer]
        for asset in dict.fromkeys([*filter(None, names), *found]):
            known = names.get(asset, {})
            name, content = self._fetch(asset)
            yield ForeignFile(
                name=as_text(known.get("name")) or name,
                media_type=as_text(known.get("mime_type") or known.get("mimeType")),
                content=content,
            )


def _is_hidden(told: Mapping[str, Any]) -> bool:
    about = as_object(told.get("metadata"))
    return about.get("is_user_system_message") is True


def _read_text(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = [
            part for part in as_list(content["parts"]) if not as_object(part).get("asset_pointer")
        ]
        return read_content(texts)
    for key in ("text", "result", "content", "user_profile", "model_set_context"):
        if text := as_text(content.get(key)):
            title = as_text(content.get("title"))
            return f"{title}\n{text}" if title else text
    return "" if set(content) <= {"content_type"} else json.dumps(dict(content))


def _read_thoughts(content: Mapping[str, Any]) -> str:
    thoughts = [as_object(one) for one in as_list(content.get("thoughts"))]
    texts = [
        "\n".join(filter(None, (as_text(one.get("summary")), as_text(one.get("content")))))
        for one in thoughts
    ]
    return "\n\n".join(filter(None, texts))
