"""Long pastes, each folded to a label in the prompt and sent whole."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: More than this is folded.
LINES: Final = 8
CHARACTERS: Final = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Folds:
    """What stands behind the labels in a prompt."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def folded(self, text: str) -> tuple[Folds, str]:
        """Return what stands in the prompt for a paste: a label, or the text if it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= LINES and len(text) <= CHARACTERS:
            return self, text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        label, number = f"[pasted {size}]", 1
        while label in self.texts:
            number += 1
            label = f"[pasted {size} #{number}]"
        return replace(self, texts={**self.texts, label: text}), label

    def whole(self, written: str) -> str:
        """Return a text with what stands behind its labels in their places."""
        if not self.texts:
            return written
        labels = "|".join(map(re.escape, self.texts))
        return re.sub(labels, lambda found: self.texts[found[0]], written)

    def label_before(self, line: str) -> str:
        """Return the label that a line ends with, or ``""``."""
        return next((label for label in self.texts if line.endswith(label)), "")
