"""
Text in a message that its sender did not write: forwarded, quoted, shared.

It reaches the agent as data: under a header that names its source, each line prefixed with
``> ``, so that it cannot end the quotation. It is never searched for commands, codes or
consent.
"""

from __future__ import annotations

import re
from dataclasses import field

from clew.record import Record

#: Characters of a name, of a line that names something, and of a message that is replied to.
_LONGEST_NAME, _LONGEST_LINE = 80, 2_000
LONGEST_REPLY = 1_000
SOMEBODY = "somebody"


class _AgentName(str):
    """Name of the agent: a person of the same name is not it."""

    __slots__ = ()


#: The author of a message of the agent.
AGENT = _AgentName("you")


class Quoted(Record):
    """Text by another person, or by the sender at another time."""

    #: Its source, on one line: "Forwarded from Bob", "In reply to you".
    source: str
    text: str = ""

    #: Somebody else than the agent wrote it.
    is_foreign: bool = field(default=True, compare=False)


def clean_name(name: object, *, longest: int = _LONGEST_NAME) -> str:
    """Return a name without characters that could imitate a sender prefix."""
    cleaned = " ".join(re.sub(r"[^\w .'@-]+", " ", str(name or "")).split())
    return cleaned[:longest].strip()


def quote_forwarded(origin: object, text: str) -> Quoted:
    """Return forwarded text as a quotation."""
    who = clean_name(origin)
    return Quoted(source=f"Forwarded from {who}" if who else "Forwarded message", text=text)


def quote_reply(author: object, text: str) -> Quoted:
    """Return the message that is replied to, or its quoted part; long ones are cut."""
    if len(text) > LONGEST_REPLY:
        text = f"{text[: LONGEST_REPLY - 2]} …"
    return Quoted(
        source=f"In reply to {clean_name(author) or SOMEBODY}",
        text=text,
        is_foreign=author is not AGENT,
    )


def format_item(kind: str, *details: object, separator: str = ", ") -> str:
    """Return a line for content that is not text: ``[location 52.5, 13.4]``."""
    told = separator.join(filter(None, (_collapse_spaces(each) for each in details)))
    line = " ".join(filter(None, [_collapse_spaces(kind), told]))
    return f"[{line[:_LONGEST_LINE]}]"


class OwnLine(str):
    """Line without words that anybody could have written: a place, a throw of dice."""

    __slots__ = ()


def format_titled_item(kind: str, *details: object) -> str:
    """Return a line for titled content: ``[poll: Where to? — Rome / Oslo]``."""
    told = " — ".join(filter(None, (_collapse_spaces(each) for each in details)))
    return format_item(f"{kind}: {told}" if told else kind)


def format_unsupported(kind: str) -> str:
    """Return a line for content of an unknown type."""
    return format_item(f"unsupported: {clean_name(kind) or 'unknown'}")


def format_recording(kind: str, seconds: object) -> str:
    """Return a line for a recording: ``[voice message, 12 s]``."""
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return format_item(f"{kind}, {seconds:.0f} s" if known else kind)


def _collapse_spaces(value: object) -> str:
    return " ".join(str("" if value is None else value).split())


def format_quotation(quoted: Quoted) -> str:
    """Return the quotation as the agent reads it."""
    source = _collapse_spaces(quoted.source)
    if not quoted.text.strip():
        return f"{source}."
    # Splits at every character that some reader treats as a line end.
    return "\n".join([f"{source}:", *(f"> {line}" for line in quoted.text.splitlines())])


def format_message(text: str, lines: tuple[str, ...], quoted: tuple[Quoted, ...]) -> str:
    """Return a message as the agent reads it: own text, other content, quotations."""
    own = "\n".join(filter(None, [text, *lines]))
    return "\n\n".join(filter(None, [own, *map(format_quotation, quoted)]))
