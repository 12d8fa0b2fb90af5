"""Pages of the documentation, run: after ``$`` stands a command, below it what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of a page and the lines that follow it; ``…`` stands for anything in a line."""

    command: str
    lines: tuple[str, ...]

    @property
    def typed(self) -> list[str]:
        """Return the input of a person."""
        return [line.removeprefix("> ") for line in self.lines if line.startswith("> ")]

    def matches(self, printed: str) -> bool:
        parts = (re.escape(line).replace("…", ".*") for line in self.lines)
        pattern = "\n".join(re.sub(r"(\\ )+", r"\\s+", part) for part in parts)
        return re.fullmatch(pattern, printed.strip("\n")) is not None


def steps(page: Path) -> list[Step]:
    """The commands of a page's console blocks, in order."""
    found: list[Step] = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            found.append(Step(command, tuple(lines)))
    return found
