"""Facts as Markdown: one bullet for each, with its id in a comment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.features.memory.facts import Fact

_BULLET: Final = re.compile(r"^\s*[-*+]\s+(?P<text>.+?)\s*(?:<!--\s*(?P<id>mem_\w+)\s*-->)?\s*$")


class Bullet(NamedTuple):
    """One fact of a file."""

    text: str
    #: ``None`` if a person wrote it.
    id: str | None


def write_markdown(scope: str, found: Iterable[Fact]) -> str:
    """Return the facts of a scope as a file that people can read and edit."""
    lines = [f"- {one.text} <!-- {one.id} -->" for one in found]
    return "\n".join([f"# Memory of {scope}", "", *lines, ""])


def read_bullets(text: str) -> Iterator[Bullet]:
    """Yield the bullets of a file; headings and other lines are no facts."""
    for line in text.lstrip("\ufeff").splitlines():
        found = _BULLET.match(line)
        if found is not None:
            yield Bullet(text=found["text"], id=found["id"])
