"""Readable document of an export, independent of its output format: a sequence of blocks."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from clew.core.export_format.schema import TEXT_KEY
from clew.core.export_format.sealed_lines import encode_json
from clew.core.route import LOCAL
from clew.core.session import COMPRESSION, IMPORT, REOPEN, RESTORE, REWIND
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from clew.core.export_format.schema import ExportRecord

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


class HeadingBlock(Record):
    """Heading of a conversation."""

    text: str
    #: When it started and how long it is.
    about: str
    #: Names and values for programs to parse.
    facts: tuple[tuple[str, str], ...]


class MessageBlock(Record):
    """Message of a person or of the agent."""

    who: str
    #: The model that answered, if known.
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


class CollapsibleBlock(Record):
    """Content for inspection rather than reading."""

    label: str
    text: str


class NoteBlock(Record):
    """Note about an event."""

    text: str


DocumentBlock: TypeAlias = HeadingBlock | MessageBlock | CollapsibleBlock | NoteBlock


class BlockReader:
    """
    Converter of an export's lines, in order, to blocks.

    ``local`` converts an aware time to the reader's time zone.
    """

    def __init__(self, local: Callable[[datetime], datetime]) -> None:
        self._local = local
        self._is_local = True
        self._models: dict[str, str] = {}
        #: Id and name of the next message's sender.
        self._sender: tuple[str, str] | None = None

    def read_line(self, kind: str, line: Mapping[str, Any]) -> Iterator[DocumentBlock]:
        """Yield the blocks of one line."""
        match kind:
            case "conversation":
                yield self._build_heading(line)
            case "session":
                yield from _read_session(line)
            case "turn":
                self._models[line["id"]] = (line["model"] or "").partition(":")[2] or line["model"]
            case "input":
                self._sender = _parse_sender(line["payload"])
            case "entry":
                yield from self._read_entry(line)
            case "attachment":
                yield NoteBlock(text=f"Attachment: {line['name']} ({line['media_type']})")
            case "tombstone":
                yield NoteBlock(
                    text=f"Conversation {line['conversation']} was deleted on "
                    f"{self._format_time(line['deleted_at'])}, after message {line['last_seq']}."
                )
            case _:
                pass

    def _format_time(self, moment: str) -> str:
        return self._local(datetime.fromisoformat(moment)).strftime("%Y-%m-%d %H:%M")

    def _build_heading(self, line: Mapping[str, Any]) -> HeadingBlock:
        self._is_local, self._models, self._sender = line["scope"] == LOCAL, {}, None
        facts = [("id", line["id"]), ("scope", line["scope"])]
        if line["routes"]:
            facts.append(("routes", ", ".join(line["routes"])))
        if line["origin"] is not None:
            facts.append(("from", f"{line['origin']}, entry {line['origin_seq']}"))
        count = line["entries"]
        entries = f"{count} {'entry' if count == 1 else 'entries'}"
        return HeadingBlock(
            text=line["title"] or _route_name(line["routes"]) or line["id"],
            about=f"Started {self._format_time(line['created_at'])} · {entries}",
            facts=tuple(facts),
        )

    def _read_entry(self, line: Mapping[str, Any]) -> Iterator[DocumentBlock]:
        text: str = line["text"]
        if line["kind"] != "message":
            yield NoteBlock(text=text if line["kind"] == "event" else f"No answer: {text}")
        elif line["role"] == "tool":
            yield from _read_results(line)
        else:
            who, text = (
                (ASSISTANT, text) if line["role"] == "assistant" else self._split_sender(text)
            )
            if text.strip():
                yield MessageBlock(
                    who=who,
                    model=self._models.get(line["turn"], "") if who is ASSISTANT else "",
                    seq=line["seq"],
                    at=line["created_at"],
                    time=self._format_time(line["created_at"]),
                    text=text,
                    conversation=line["conversation"],
                )
            for part in _message_parts(line["message"]):
                if part.get("part_kind") == "tool-call":
                    name = part.get("tool_name")
                    yield CollapsibleBlock(
                        label=f"Tool call: {name}", text=_to_text(part.get("args"))
                    )

    def _split_sender(self, text: str) -> tuple[str, str]:
        """Return the sender's name of a message, and the text without it."""
        sender, self._sender = self._sender, None
        if sender is None:
            return YOU if self._is_local else USER, text
        found = re.match(rf"[\w .'-]{{1,40}} \({re.escape(sender[0])}\): ", text)
        # In a group the text carries a sender prefix for the model.
        return sender[1] or USER, text[found.end() :] if found else text


def _parse_sender(payload: object) -> tuple[str, str] | None:
    """Return the id and name of the sender if an input came from a chat."""
    told = cast("ExportRecord", payload).get("sender") if isinstance(payload, dict) else None
    if not isinstance(told, dict):
        return None
    sender = cast("ExportRecord", told)
    return str(sender.get("id", "")), " ".join(str(sender.get("name", "")).split())


def _route_name(routes: Sequence[str]) -> str:
    return routes[0].rpartition(":")[2] if routes else ""


def _read_session(line: Mapping[str, Any]) -> Iterator[DocumentBlock]:
    if line["predecessor"] is not None:
        opened = line["opened_by"]
        yield NoteBlock(text=_OPENED.get(opened, f"A new session starts here: {opened}."))
        if opened != COMPRESSION:
            return  # its base was shown before
    for item in line["base"]:
        if "message" in item:
            yield CollapsibleBlock(
                label=_base_label(item["message"]), text=extract_text(item["message"])
            )


def _base_label(message: object) -> str:
    """Return the label of a base message, as far as its format is known."""
    kinds = {part.get("part_kind") for part in _message_parts(message)}
    if kinds & {"tool-return", "retry-prompt"} and "user-prompt" not in kinds:
        return "From before: Tool"
    if "user-prompt" in kinds:
        return "From before: User"
    return "From before: Assistant" if "text" in kinds or "tool-call" in kinds else "From before"


def _read_results(line: Mapping[str, Any]) -> Iterator[DocumentBlock]:
    """Yield the results of tools, one by one where they can be separated."""
    results = [
        (part.get("tool_name"), _to_text(part.get("content")))
        for part in _message_parts(line["message"])
        if part.get("part_kind") in ("tool-return", "retry-prompt")
    ]
    for name, text in results or [(None, line["text"])]:
        yield CollapsibleBlock(label=f"Result: {name}" if name else "Result", text=text)


def extract_text(message: object) -> str:
    """Return the texts in a message if its format is known; else the message itself."""
    contents = [part.get("content") for part in _message_parts(message)]
    texts = [_to_text(content) for content in contents if content is not None]
    return "\n".join(texts) or _to_text(message)


def _message_parts(message: object) -> Sequence[ExportRecord]:
    if not isinstance(message, dict):
        return []
    parts = cast("ExportRecord", message).get("parts")
    if not isinstance(parts, list):
        return []
    return [
        cast("ExportRecord", part) for part in cast("list[Any]", parts) if isinstance(part, dict)
    ]


def _to_text(value: object) -> str:
    if isinstance(value, dict) and TEXT_KEY in value:
        value = cast("object", value[TEXT_KEY])
    return value if isinstance(value, str) else encode_json(value)
