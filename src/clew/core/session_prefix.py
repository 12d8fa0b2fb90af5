"""Prefix of a session's requests: instructions and tools, the same in each of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Name of the part that an old store or an import keeps as one text.
WHOLE_TEXT: Final = "agent"
#: Begins the names of the parts that features add.
FEATURE: Final = "feature:"


class InstructionPart(Record):
    """A part of the instructions, from one source."""

    #: Of the source: ``agent``, ``feature:NAME``, ``toolset:ID`` ...; not unique.
    name: str
    text: str
    #: True if a function made it, so that another session may get another text.
    dynamic: bool = False


class SessionPrefix(Record):
    """Instructions and tools of a session."""

    instructions: tuple[InstructionPart, ...]
    #: Definitions of the tools as JSON text; ``None`` for a session of an older version.
    tools: str | None


def dump_instructions(parts: Sequence[InstructionPart]) -> str:
    """Return the parts as they are stored."""
    return json.dumps([asdict(part) for part in parts], ensure_ascii=False)


def load_instructions(stored: str) -> tuple[InstructionPart, ...]:
    """Return the parts of a session from their stored form."""
    return tuple(InstructionPart(**part) for part in json.loads(stored))


def text_to_instructions(text: str | None) -> str | None:
    """Return the stored form of instructions that are known as one text only."""
    return (
        None if text is None else dump_instructions([InstructionPart(name=WHOLE_TEXT, text=text)])
    )


def join_instructions(parts: Sequence[InstructionPart] | None) -> str | None:
    """Return the parts as one text; ``None`` if there are none."""
    return "\n\n".join(part.text for part in parts or ()) or None


def digest_tools(definitions: str) -> str:
    """Return the key of a list of tools: equal lists are stored once."""
    return hashlib.sha256(definitions.encode()).hexdigest()
