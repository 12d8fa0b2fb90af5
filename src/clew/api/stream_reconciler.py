"""Reconciliation of streamed text with the log: pieces may be lost on the way."""

from __future__ import annotations

#: Between the texts of two responses of one turn, such as text beside tool calls.
RESPONSE_SEPARATOR = "\n\n"


class StreamedText:
    """The text that a client was sent."""

    def __init__(self) -> None:
        self._sent = ""
        self._needs_separator = False

    @property
    def sent(self) -> str:
        """Return the text of the current response that was sent."""
        return self._sent

    @property
    def has_partial_response(self) -> bool:
        """Return True if text of the current response was sent."""
        return bool(self._sent)

    def add_piece(self, piece: str) -> str:
        """Return the text to send for a piece of the current response."""
        lead = RESPONSE_SEPARATOR if self._needs_separator and not self._sent else ""
        self._sent += piece
        return lead + piece

    def reconcile(self, text: str) -> str | None:
        """Return the unsent text of a stored response; ``None`` if other text was sent."""
        missing = remaining_text(text, self._sent)
        if missing:
            missing = self.add_piece(missing)
        self._needs_separator = self._needs_separator or bool(self._sent)
        self._sent = ""
        return missing


def remaining_text(text: str, beginning: str) -> str | None:
    """Return the text after ``beginning``; ``None`` if the text starts differently."""
    if text.startswith(beginning):
        return text[len(beginning) :]
    # The parts of a response are streamed one by one, and joined by line breaks in the log.
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
