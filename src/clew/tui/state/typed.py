"""What a person typed before: the history of the prompt, and files that a text names."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final

#: Texts that the history keeps.
MOST: Final = 500
#: A file in a text: ``@path`` or ``@"path with blanks"``, at its start or after a blank.
_FILE = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
#: The lines that name the files of a stored message, at its end.
_FILE_LINES = re.compile(r"(\n\[file [^\n]*\])+\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """Texts from the oldest to the newest, and where the person is in them."""

    texts: tuple[str, ...] = ()
    #: ``len(texts)`` is the text that is being written.
    at: int = 0
    #: What was being written when the person began to look back.
    draft: str = ""

    @classmethod
    def of(cls, texts: tuple[str, ...]) -> History:
        kept = texts[-MOST:]
        return cls(texts=kept, at=len(kept))

    def said(self, text: str) -> History:
        """With one more; the same twice in a row is one."""
        same = self.texts[-1:] == (text,)
        return History.of(self.texts if same else (*self.texts, text))

    def back(self, writing: str) -> tuple[History, str]:
        """One further back, and the text there."""
        if self.at == 0:
            return self, writing
        draft = writing if self.at == len(self.texts) else self.draft
        moved = replace(self, at=self.at - 1, draft=draft)
        return moved, self.texts[moved.at]

    def forth(self, writing: str) -> tuple[History, str]:
        """One further forth; in the end what was being written."""
        if self.at >= len(self.texts):
            return self, writing
        moved = replace(self, at=self.at + 1)
        return moved, self.draft if moved.at == len(self.texts) else self.texts[moved.at]


def dumped(text: str) -> str:
    """A text as a line of the history's file."""
    return json.dumps(text, ensure_ascii=False)


def loaded(lines: str) -> History:
    """The history in a file; lines that are none are left out."""
    found: list[str] = []
    for line in lines.splitlines():
        try:
            text: object = json.loads(line)
        except ValueError:
            continue
        if isinstance(text, str) and text.strip():
            found.append(text)
    return History.of(tuple(found))


def without_file_lines(text: str) -> str:
    """What somebody typed, of a message that was stored with lines for its files."""
    return _FILE_LINES.sub("", text)


def files_in(text: str) -> list[str]:
    """The files that a text names."""
    return [quoted or plain for quoted, plain in _FILE.findall(text)]
