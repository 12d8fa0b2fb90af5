"""Input history of the prompt, and file mentions in a text."""

from __future__ import annotations

import json
import re
from typing import Final

from clew.record import Record, replace

#: Texts in the history.
MAX_TEXTS: Final = 500
#: A file mention: ``@path`` or ``@"path with spaces"``, at the start or after a space.
_FILE = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
#: The lines that name the files of a stored message, at its end.
_FILE_LINES = re.compile(r"(\n\[file [^\n]*\])+\Z")


class InputHistory(Record):
    """Texts from the oldest to the newest, and the current position."""

    texts: tuple[str, ...] = ()
    #: ``len(texts)`` is the text that is being written.
    at: int = 0
    #: The unsent text when navigation started.
    draft: str = ""

    @classmethod
    def from_texts(cls, texts: tuple[str, ...]) -> InputHistory:
        kept = texts[-MAX_TEXTS:]
        return cls(texts=kept, at=len(kept))

    def append_text(self, text: str) -> InputHistory:
        """Return the history with one more text; a repetition is not added."""
        same = self.texts[-1:] == (text,)
        return InputHistory.from_texts(self.texts if same else (*self.texts, text))

    def previous_text(self, writing: str) -> tuple[InputHistory, str]:
        """Return the history one step back, and the text there."""
        if self.at == 0:
            return self, writing
        draft = writing if self.at == len(self.texts) else self.draft
        moved = replace(self, at=self.at - 1, draft=draft)
        return moved, self.texts[moved.at]

    def next_text(self, writing: str) -> tuple[InputHistory, str]:
        """Return the history one step forward, and the text there; at the end the draft."""
        if self.at >= len(self.texts):
            return self, writing
        moved = replace(self, at=self.at + 1)
        return moved, self.draft if moved.at == len(self.texts) else self.texts[moved.at]


def serialize_text(text: str) -> str:
    """Return a text as a line of the history file."""
    return json.dumps(text, ensure_ascii=False)


def parse_history(lines: str) -> InputHistory:
    """Return the history in a file; invalid lines are ignored."""
    found: list[str] = []
    for line in lines.splitlines():
        try:
            text: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and text.strip():
            found.append(text)
    return InputHistory.from_texts(tuple(found))


def strip_file_lines(text: str) -> str:
    """Return the typed text of a message that was stored with lines for its files."""
    return _FILE_LINES.sub("", text)


def find_file_mentions(text: str) -> list[str]:
    """Return the files that a text names."""
    return [quoted or plain for quoted, plain in _FILE.findall(text)]
