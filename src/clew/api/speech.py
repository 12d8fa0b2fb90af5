"""What of an answer went out: pieces may be missed on the way, so each is held against the log."""

from __future__ import annotations

#: Between the texts of two responses of one turn, as with text beside tool calls.
BREAK = "\n\n"


class Speech:
    """The text that a client was sent."""

    def __init__(self) -> None:
        self._sent = ""
        self._broken = False

    @property
    def open(self) -> bool:
        """Whether something of the response that is being made went out."""
        return bool(self._sent)

    def add(self, piece: str) -> str:
        """What to send for a piece of the response that is being made."""
        lead = BREAK if self._broken and not self._sent else ""
        self._sent += piece
        return lead + piece

    def confirm(self, text: str) -> str | None:
        """What is left to send of a response that is stored; ``None`` if other text went out."""
        missing = rest_of(text, self._sent)
        if missing:
            missing = self.add(missing)
        self._broken = self._broken or bool(self._sent)
        self._sent = ""
        return missing


def rest_of(text: str, beginning: str) -> str | None:
    """What follows ``beginning`` in ``text``; ``None`` if the text does not begin like that."""
    if text.startswith(beginning):
        return text[len(beginning) :]
    # The parts of a response are told one after the other, and joined by line ends in the log.
    at = 0
    for letter in beginning:
        if letter.isspace():
            continue
        while at < len(text) and text[at].isspace():
            at += 1
        if text[at : at + 1] != letter:
            return None
        at += 1
    return text[at:]
