"""What people read of an export, whatever it is written as: a sequence of blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from clew.core.exported.lines import as_json
from clew.core.exported.shapes import AS_TEXT
from clew.core.session import COMPRESSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.core.exported.shapes import Record

_WHO: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Title:
    """A conversation begins."""

    text: str
    #: Names and values.
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a person or the agent said."""

    who: str
    seq: int
    at: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """What one may want to look at, but not to read through."""

    label: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """Something that happened."""

    text: str


Block: TypeAlias = Title | Said | Folded | Remark


def blocks(kind: str, line: Mapping[str, Any]) -> Iterator[Block]:
    """What is read of one line of an export."""
    match kind:
        case "conversation":
            yield _title(line)
        case "session":
            yield from _session(line)
        case "entry":
            yield from _entry(line)
        case "attachment":
            yield Remark(text=f"Attachment: {line['name']} ({line['media_type']})")
        case "tombstone":
            yield Remark(
                text=f"Conversation {line['conversation']} was deleted at {line['deleted_at']}, "
                f"after entry {line['last_seq']}."
            )
        case _:
            pass


def _title(line: Mapping[str, Any]) -> Title:
    facts = [("id", line["id"]), ("scope", line["scope"]), ("began", line["created_at"])]
    if line["routes"]:
        facts.append(("routes", ", ".join(line["routes"])))
    if line["origin"] is not None:
        facts.append(("from", f"{line['origin']}, entry {line['origin_seq']}"))
    facts.append(("entries", str(line["entries"])))
    return Title(text=line["title"] or line["id"], facts=tuple(facts))


def _session(line: Mapping[str, Any]) -> Iterator[Block]:
    if line["predecessor"] is not None:
        yield Remark(text=f"A new session begins here: {line['opened_by']}.")
        if line["opened_by"] != COMPRESSION:
            return  # what it begins with stood here before
    for item in line["base"]:
        if "message" in item:
            yield Folded(label=f"From before · {_who(item)}", text=text_of(item["message"]))


def _who(item: Mapping[str, Any]) -> str:
    """Who said a message of a base, as far as its format is known."""
    kinds = {part.get("part_kind") for part in _parts(item["message"])}
    if kinds & {"tool-return", "retry-prompt"} and "user-prompt" not in kinds:
        return _WHO["tool"]
    if "user-prompt" in kinds:
        return _WHO["user"]
    return _WHO["assistant"] if "text" in kinds or "tool-call" in kinds else "?"


def _entry(line: Mapping[str, Any]) -> Iterator[Block]:
    if line["kind"] != "message":
        yield Remark(text=f"{line['kind'].capitalize()}: {line['text']}")
    elif line["role"] == "tool":
        yield Folded(label=f"Result, entry {line['seq']}", text=line["text"])
    else:
        yield Said(
            who=_WHO[line["role"]], seq=line["seq"], at=line["created_at"], text=line["text"]
        )
        for part in _parts(line["message"]):
            if part.get("part_kind") == "tool-call":
                yield Folded(
                    label=f"Calls {part.get('tool_name')}", text=_as_text(part.get("args"))
                )


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
