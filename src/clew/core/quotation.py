"""
Text that came with a message although its sender did not write it: forwarded, quoted, shared.

It reaches the agent as data: under a header that says where it is from, each line of it behind a
``> ``, so that nothing in it can end the quotation. It is never looked at for commands, codes or
consent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Characters of a name, of a line that names something, and of a message that is replied to.
_LONGEST_NAME, _LONGEST_LINE = 80, 2_000
LONGEST_REPLY = 1_000
SOMEBODY = "somebody"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quoted:
    """Somebody else's text, or the sender's own of another time."""

    #: Where it is from, on one line: "Forwarded from Bob", "In reply to you".
    source: str
    text: str = ""


def person(name: object, *, longest: int = _LONGEST_NAME) -> str:
    """A name without anything that may look as if somebody had said it."""
    cleaned = " ".join(re.sub(r"[^\w .'@-]+", " ", str(name or "")).split())
    return cleaned[:longest].strip()


def forwarded(origin: object, text: str) -> Quoted:
    """Text that the sender passed on."""
    who = person(origin)
    return Quoted(source=f"Forwarded from {who}" if who else "Forwarded message", text=text)


def replied(author: object, text: str) -> Quoted:
    """The message that is answered, or the part of it that is quoted; long ones are shortened."""
    if len(text) > LONGEST_REPLY:
        text = f"{text[: LONGEST_REPLY - 2]} …"
    return Quoted(source=f"In reply to {person(author) or SOMEBODY}", text=text)


def named(kind: str, *details: object, separator: str = ", ") -> str:
    """A line that names something that is no text: ``[location 52.5, 13.4]``."""
    told = separator.join(filter(None, (_one_line(each) for each in details)))
    line = " ".join(filter(None, [_one_line(kind), told]))
    return f"[{line[:_LONGEST_LINE]}]"


def titled(kind: str, *details: object) -> str:
    """As ``named``, for what has a title: ``[poll: Where to? — Rome / Oslo]``."""
    told = " — ".join(filter(None, (_one_line(each) for each in details)))
    return named(f"{kind}: {told}" if told else kind)


def unsupported(kind: str) -> str:
    """A line for what nobody here knows."""
    return named(f"unsupported: {person(kind) or 'unknown'}")


def lasting(kind: str, seconds: object) -> str:
    """A recording: ``[voice message, 12 s]``."""
    known = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    return named(f"{kind}, {seconds:.0f} s" if known else kind)


def _one_line(value: object) -> str:
    return " ".join(str("" if value is None else value).split())


def quotation(quoted: Quoted) -> str:
    """The quotation as the agent reads it."""
    source = _one_line(quoted.source)
    if not quoted.text.strip():
        return f"{source}."
    # Every sign that some reader takes for the end of a line is one.
    return "\n".join([f"{source}:", *(f"> {line}" for line in quoted.text.splitlines())])


def written(text: str, lines: tuple[str, ...], quoted: tuple[Quoted, ...]) -> str:
    """What the agent reads of a message: own words, what else was sent, then the quotations."""
    own = "\n".join(filter(None, [text, *lines]))
    return "\n\n".join(filter(None, [own, *map(quotation, quoted)]))
