"""What people read of an export, whatever it is written as: a sequence of blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from clew.core.exported.lines import as_json
from clew.core.exported.shapes import AS_TEXT
from clew.core.route import LOCAL
from clew.core.session import COMPRESSION, IMPORT, REOPEN, RESTORE, REWIND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clew.core.exported.shapes import Record

YOU: Final = "You"
USER: Final = "User"
ASSISTANT: Final = "Assistant"
TOOL: Final = "Tool"
_OPENED: Final = {
    COMPRESSION: "Earlier messages were summarised here.",
    RESTORE: "A summary was undone here.",
    REWIND: "The conversation was rewound here.",
    REOPEN: "The conversation was continued here.",
    IMPORT: "The conversation was imported here.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Title:
    """The heading of a conversation."""

    text: str
    #: When it started and how long it is.
    about: str
    #: Names and values that a program may look for.
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """A message of a person or of the agent."""

    who: str
    #: The model that answered, where that is known.
    model: str = ""
    seq: int
    #: The moment as it is stored, and in local time.
    at: str
    time: str
    text: str
    conversation: str = ""

    @property
    def is_answer(self) -> bool:
        return self.who == ASSISTANT


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """Something that one may want to look at, but not to read through."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """Something that happened."""

    text: str


Block: TypeAlias = Title | Said | Folded | Remark


class BlockReader:
    """
    Reads the lines of an export, in order, as blocks.

    ``local`` turns an aware moment into one of the reader's time zone.
    """

    def __init__(self, local: Callable[[datetime], datetime]) -> None:
        self._local = local
        self._is_local = True
        self._models: dict[str, str] = {}
        #: Id and name of the person whose message is the next one.
        self._sender: tuple[str, str] | None = None

    def blocks(self, kind: str, line: Mapping[str, Any]) -> Iterator[Block]:
        """Yield what people read of one line."""
        match kind:
            case "conversation":
                yield self._title(line)
            case "session":
                yield from _session(line)
            case "turn":
                self._models[line["id"]] = (line["model"] or "").partition(":")[2] or line["model"]
            case "input":
                self._sender = _sender(line["payload"])
            case "entry":
                yield from self._entry(line)
            case "attachment":
                yield Remark(text=f"Attachment: {line['name']} ({line['media_type']})")
            case "tombstone":
                yield Remark(
                    text=f"Conversation {line['conversation']} was deleted on "
                    f"{self._time(line['deleted_at'])}, after message {line['last_seq']}."
                )
            case _:
                pass

    def _time(self, moment: str) -> str:
        return self._local(datetime.fromisoformat(moment)).strftime("%Y-%m-%d %H:%M")

    def _title(self, line: Mapping[str, Any]) -> Title:
        self._is_local, self._models, self._sender = line["scope"] == LOCAL, {}, None
        facts = [("id", line["id"]), ("scope", line["scope"])]
        if line["routes"]:
            facts.append(("routes", ", ".join(line["routes"])))
        if line["origin"] is not None:
            facts.append(("from", f"{line['origin']}, entry {line['origin_seq']}"))
        count = line["entries"]
        entries = f"{count} {'entry' if count == 1 else 'entries'}"
        return Title(
            text=line["title"] or _route_name(line["routes"]) or line["id"],
            about=f"Started {self._time(line['created_at'])} · {entries}",
            facts=tuple(facts),
        )

    def _entry(self, line: Mapping[str, Any]) -> Iterator[Block]:
        text: str = line["text"]
        if line["kind"] != "message":
            yield Remark(text=text if line["kind"] == "event" else f"No answer: {text}")
        elif line["role"] == "tool":
            yield from _results(line)
        else:
            who, text = (ASSISTANT, text) if line["role"] == "assistant" else self._person(text)
            if text.strip():
                yield Said(
                    who=who,
                    model=self._models.get(line["turn"], "") if who is ASSISTANT else "",
                    seq=line["seq"],
                    at=line["created_at"],
                    time=self._time(line["created_at"]),
                    text=text,
                    conversation=line["conversation"],
                )
            for part in _parts(line["message"]):
                if part.get("part_kind") == "tool-call":
                    name = part.get("tool_name")
                    yield Folded(label=f"Tool call: {name}", text=_as_text(part.get("args")))

    def _person(self, text: str) -> tuple[str, str]:
        """The name of who wrote a message, and the text without it."""
        sender, self._sender = self._sender, None
        if sender is None:
            return YOU if self._is_local else USER, text
        found = re.match(rf"[\w .'-]{{1,40}} \({re.escape(sender[0])}\): ", text)
        # In a group, where it is written for the model as well.
        return sender[1] or USER, text[found.end() :] if found else text


def _sender(payload: object) -> tuple[str, str] | None:
    """Id and name of the sender, where an input came from a chat."""
    told = cast("Record", payload).get("sender") if isinstance(payload, dict) else None
    if not isinstance(told, dict):
        return None
    sender = cast("Record", told)
    return str(sender.get("id", "")), " ".join(str(sender.get("name", "")).split())


def _route_name(routes: Sequence[str]) -> str:
    return routes[0].rpartition(":")[2] if routes else ""


def _session(line: Mapping[str, Any]) -> Iterator[Block]:
    if line["predecessor"] is not None:
        opened = line["opened_by"]
        yield Remark(text=_OPENED.get(opened, f"A new session starts here: {opened}."))
        if opened != COMPRESSION:
            return  # what it begins with stood here before
    for item in line["base"]:
        if "message" in item:
            yield Folded(label=_carried(item["message"]), text=text_of(item["message"]))


def _carried(message: object) -> str:
    """The label of a message that a session begins with, as far as its format is known."""
    kinds = {part.get("part_kind") for part in _parts(message)}
    if kinds & {"tool-return", "retry-prompt"} and "user-prompt" not in kinds:
        return "From before: Tool"
    if "user-prompt" in kinds:
        return "From before: User"
    return "From before: Assistant" if "text" in kinds or "tool-call" in kinds else "From before"


def _results(line: Mapping[str, Any]) -> Iterator[Block]:
    """The results of tools, one by one where they can be told apart."""
    results = [
        (part.get("tool_name"), _as_text(part.get("content")))
        for part in _parts(line["message"])
        if part.get("part_kind") in ("tool-return", "retry-prompt")
    ]
    for name, text in results or [(None, line["text"])]:
        yield Folded(label=f"Result: {name}" if name else "Result", text=text)


def text_of(message: object) -> str:
    """The texts in a message, as far as its format is known; else the message as it is."""
    contents = [part.get("content") for part in _parts(message)]
    texts = [_as_text(content) for content in contents if content is not None]
    return "\n".join(texts) or _as_text(message)


def _parts(message: object) -> Sequence[Record]:
    if not isinstance(message, dict):
        return []
    parts = cast("Record", message).get("parts")
    if not isinstance(parts, list):
        return []
    return [cast("Record", part) for part in cast("list[Any]", parts) if isinstance(part, dict)]


def _as_text(value: object) -> str:
    if isinstance(value, dict) and AS_TEXT in value:
        value = cast("object", value[AS_TEXT])
    return value if isinstance(value, str) else as_json(value)
