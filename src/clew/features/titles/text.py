"""Texts of automatic titles: the prompt, and what is made of an answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.core.text import truncate_text

if TYPE_CHECKING:
    from clew.core.side_answer import SideAnswer

#: Characters of a title.
MAX_TITLE_CHARS = 60
#: Characters of each side of the exchange sent to the model.
_MAX_EXCERPT_CHARS = 1_500
#: Characters removed at both ends of a title.
_STRIPPED_CHARS = " \t#*_`\"'“”„«»-\N{EN DASH}—.:"

#: A link or a picture, and marks of Markdown around words.
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_INLINE_MARKS = re.compile(r"\*\*|~~|`+|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")

_TITLE_PROMPT = """\
Name the conversation below in 3 to 7 words, in its own language, as a heading without quotes and \
without a full stop. Write only the name.

<person>
{said}
</person>
<assistant>
{answer}
</assistant>\
"""


def write_prompt(*, said: str, answer: str) -> str:
    """Return the prompt that asks for a title."""
    return _TITLE_PROMPT.format(
        said=truncate_text(said, _MAX_EXCERPT_CHARS),
        answer=truncate_text(answer, _MAX_EXCERPT_CHARS),
    )


def parse_title(answer: SideAnswer) -> str | None:
    """Return the title in an answer; ``None`` if it has no usable one."""
    if not answer.is_complete:
        return None
    lines = [line for line in answer.text.splitlines() if line.strip()]
    return None if len(lines) != 1 else clean_title(lines[0])


def make_fallback_title(said: str) -> str | None:
    """Return a title from the first user message; ``None`` if it has no words."""
    first = next((line for line in said.splitlines() if clean_title(line)), "")
    return clean_title(first)


def clean_title(line: str) -> str | None:
    """Return a line as a title: without markup, single-spaced, cut at a word."""
    plain = _INLINE_MARKS.sub("", _LINK.sub(r"\1", line))
    bare = re.sub(r"\s+", " ", plain).strip(_STRIPPED_CHARS)
    if len(bare) <= MAX_TITLE_CHARS:
        return bare or None
    words = bare[: MAX_TITLE_CHARS - 1].rpartition(" ")[0]
    return (
        truncate_text(bare, MAX_TITLE_CHARS) if len(words) < MAX_TITLE_CHARS // 2 else f"{words}…"
    )
