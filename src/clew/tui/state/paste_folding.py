"""Long pastes, each folded to a label in the prompt and sent in full."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Final

from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Longer pastes are folded.
MAX_LINES: Final = 8
MAX_CHARACTERS: Final = 2000


class PasteFolds(Record):
    """Pasted texts behind the labels in a prompt."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def fold_paste(self, text: str) -> tuple[PasteFolds, str]:
        """Return the prompt text of a paste: a label, or the paste itself if it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MAX_LINES and len(text) <= MAX_CHARACTERS:
            return self, text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        label, number = f"[pasted {size}]", 1
        while label in self.texts:
            number += 1
            label = f"[pasted {size} #{number}]"
        return replace(self, texts={**self.texts, label: text}), label

    def expand_labels(self, written: str) -> str:
        """Return a text with its labels replaced by the pasted texts."""
        if not self.texts:
            return written
        labels = "|".join(map(re.escape, self.texts))
        return re.sub(labels, lambda found: self.texts[found[0]], written)

    def label_before(self, line: str) -> str:
        """Return the label that a line ends with, or ``""``."""
        return next((label for label in self.texts if line.endswith(label)), "")
