"""Text for Telegram: plain, with entities in UTF-16 code units; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.gateway.text.markdown_writer import JOINER, count_utf16_units, is_linkable
from clew.gateway.text.rich_text import (
    BlockFrame,
    CodeFrame,
    QuoteFrame,
    TextBlock,
    TextRun,
    TextStyle,
)
from clew.gateway.text.splitting import TextCost, group_by_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Maximum characters of a message, and entities that are shown.
MAX_LENGTH = 4096
MAX_ENTITIES = 100
#: Maximum characters of a link's address: Telegram silently drops longer ones.
_MAX_ADDRESS = 2048

#: A mention; a word joiner after the sign prevents it.
_MENTION = re.compile(r"(?<!\w)@(?=\w)")

_STYLE_ENTITIES = (
    (TextStyle.BOLD, "bold"),
    (TextStyle.ITALIC, "italic"),
    (TextStyle.STRIKE, "strikethrough"),
)


class TelegramMeasure:
    """The measure of Telegram."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        # Code is counted like text, in case Telegram rejects the formatting.
        return TextCost(
            count_utf16_units(defuse_mentions(run.text)), len(_run_entities(run, frame))
        )

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        return TextCost(0, 1)

    def text_cost(self, text: str) -> TextCost:
        return TextCost(count_utf16_units(text))

    def can_link(self, address: str) -> bool:
        return is_linkable(address) and len(address) <= _MAX_ADDRESS


def _display_text(run: TextRun, frame: BlockFrame | None) -> str:
    # Code with a link is shown as a link.
    if isinstance(frame, CodeFrame) or (run.style & TextStyle.CODE and not _has_link(run)):
        return run.text
    return defuse_mentions(run.text)


def defuse_mentions(text: str) -> str:
    """Return the text without mentions."""
    return _MENTION.sub(f"@{JOINER}", text)


def _has_link(run: TextRun) -> bool:
    return run.link is not None and run.link != run.text


def _run_entities(run: TextRun, frame: BlockFrame | None) -> list[dict[str, object]]:
    """Return the entities of a run, without offsets."""
    if isinstance(frame, CodeFrame):
        return []
    link: list[dict[str, object]] = []
    if _has_link(run):
        link = [{"type": "text_link", "url": run.link}]
    if run.style & TextStyle.CODE:
        # Telegram combines code with no other format.
        return link or [{"type": "code"}]
    return [*({"type": name} for style, name in _STYLE_ENTITIES if run.style & style), *link]


def write_entities(part: Sequence[TextBlock]) -> dict[str, object]:
    """Return the text of one message and its entities."""
    writer = _EntityWriter()
    for frame, pieces in group_by_frame(part):
        writer.add_blocks(frame, pieces)
    return writer.to_message()


class _EntityWriter:
    """Writes text blocks as a text with entities."""

    def __init__(self) -> None:
        self._text = ""
        self._length = 0
        self._entities: list[dict[str, object]] = []

    def _append_text(self, text: str) -> int:
        """Append a text and return its offset."""
        begins = self._length
        self._text += text
        self._length += count_utf16_units(text)
        return begins

    def _add_entity(self, kind: dict[str, object], begins: int) -> None:
        if self._length > begins:
            entity = {**kind, "offset": begins, "length": self._length - begins}
            self._entities.append(entity)

    def add_blocks(self, frame: BlockFrame | None, pieces: Sequence[TextBlock]) -> None:
        if self._text:
            self._append_text(pieces[0].separator)
        begins = self._length
        place = len(self._entities)
        for number, piece in enumerate(pieces):
            if number:
                self._append_text(piece.separator)
            for run in piece.runs:
                start = self._append_text(_display_text(run, frame))
                for kind in _run_entities(run, frame):
                    self._add_entity(kind, start)
        inner = self._entities[place:]
        del self._entities[place:]
        if isinstance(frame, CodeFrame):
            language = {"language": frame.language} if frame.language else {}
            self._add_entity({"type": "pre", **language}, begins)
        elif isinstance(frame, QuoteFrame):
            self._add_entity({"type": "blockquote"}, begins)
        self._entities += inner

    def to_message(self) -> dict[str, object]:
        if not self._entities:
            return {"text": self._text}
        return {"text": self._text, "entities": self._entities}
