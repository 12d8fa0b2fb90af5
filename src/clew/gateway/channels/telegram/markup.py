"""Text as Telegram takes it: plain, with entities counted in UTF-16 code units; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.gateway.text.marked import JOINER, linkable, utf16
from clew.gateway.text.pieces import Code, Frame, Piece, Quote, Run, Style
from clew.gateway.text.splitting import Cost, framed

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of a message, and entities that are shown.
LONGEST = 4096
MOST_ENTITIES = 100
#: Characters of an address behind a text: Telegram leaves longer ones out without a word.
_LONGEST_ADDRESS = 2048

#: What would mention somebody; a word joiner behind the sign keeps it from doing so.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")

_ENTITIES = (
    (Style.BOLD, "bold"),
    (Style.ITALIC, "italic"),
    (Style.STRIKE, "strikethrough"),
)


class Telegram:
    """How Telegram counts."""

    def run(self, run: Run, frame: Frame | None) -> Cost:
        # Code, too, is counted as it stands where Telegram refused the formats.
        return Cost(utf16(unmentioned(run.text)), len(_kinds(run, frame)))

    def frame(self, frame: Frame) -> Cost:
        return Cost(0, 1)

    def text(self, text: str) -> Cost:
        return Cost(utf16(text))

    def links(self, address: str) -> bool:
        return linkable(address) and len(address) <= _LONGEST_ADDRESS


def _shown(run: Run, frame: Frame | None) -> str:
    # Code behind which a link lies is shown as a link.
    if isinstance(frame, Code) or (run.style & Style.CODE and not _linked(run)):
        return run.text
    return unmentioned(run.text)


def unmentioned(text: str) -> str:
    """Return the text, so that it mentions nobody."""
    return _MENTION.sub(f"@{JOINER}", text)


def _linked(run: Run) -> bool:
    return run.link is not None and run.link != run.text


def _kinds(run: Run, frame: Frame | None) -> list[dict[str, object]]:
    """The entities of a run, without their place."""
    if isinstance(frame, Code):
        return []
    link: list[dict[str, object]] = []
    if _linked(run):
        link = [{"type": "text_link", "url": run.link}]
    if run.style & Style.CODE:
        # Telegram shows code in no other format.
        return link or [{"type": "code"}]
    return [*({"type": name} for style, name in _ENTITIES if run.style & style), *link]


def write(part: Sequence[Piece]) -> dict[str, object]:
    """The text of one message and its entities."""
    writer = _Writer()
    for frame, pieces in framed(part):
        writer.add(frame, pieces)
    return writer.message()


class _Writer:
    def __init__(self) -> None:
        self._text = ""
        self._length = 0
        self._entities: list[dict[str, object]] = []

    def _put(self, text: str) -> int:
        """Append a text; where it begins."""
        begins = self._length
        self._text += text
        self._length += utf16(text)
        return begins

    def _mark(self, kind: dict[str, object], begins: int) -> None:
        if self._length > begins:
            entity = {**kind, "offset": begins, "length": self._length - begins}
            self._entities.append(entity)

    def add(self, frame: Frame | None, pieces: Sequence[Piece]) -> None:
        if self._text:
            self._put(pieces[0].glue)
        begins = self._length
        place = len(self._entities)
        for number, piece in enumerate(pieces):
            if number:
                self._put(piece.glue)
            for run in piece.runs:
                start = self._put(_shown(run, frame))
                for kind in _kinds(run, frame):
                    self._mark(kind, start)
        inner = self._entities[place:]
        del self._entities[place:]
        if isinstance(frame, Code):
            language = {"language": frame.language} if frame.language else {}
            self._mark({"type": "pre", **language}, begins)
        elif isinstance(frame, Quote):
            self._mark({"type": "blockquote"}, begins)
        self._entities += inner

    def message(self) -> dict[str, object]:
        if not self._entities:
            return {"text": self._text}
        return {"text": self._text, "entities": self._entities}
