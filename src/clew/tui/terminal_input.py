"""Terminal input: separates pasted text from keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.events import Paste

from clew.tui.text.pasted import decode_paste

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual._xterm_parser import XTermParser
    from textual.message import Message

PASTE_START: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
#: Seconds of silence that end an unterminated paste: it must not swallow keys.
PASTE_TIMEOUT: Final = 5.0


class TerminalInput:
    """
    Parser that extracts pastes before keys are read.

    Within a paste every byte is text: its escape sequences are not keys.
    """

    def __init__(self, parser: XTermParser, clock: Callable[[], float]) -> None:
        self._parser, self._clock = parser, clock
        #: The end of the input, if it may be a partial marker.
        self._held = ""
        #: The paste so far; ``None`` outside of one.
        self._paste: list[str] | None = None
        self._heard = clock()

    @property
    def is_waiting(self) -> bool:
        """Return whether a partial marker is held back."""
        return bool(self._held)

    def feed(self, data: str) -> Iterator[Message]:
        """Yield the messages of a chunk of input."""
        self._heard = self._clock()
        data, self._held = self._held + data, ""
        while data:
            mark = PASTE_START if self._paste is None else PASTE_END
            before, found, data = data.partition(mark)
            if not found:
                kept = _partial_marker_length(before, mark)
                self._held = before[len(before) - kept :]
                before = before[: len(before) - kept]
            yield from self._feed_text(before)
            if found:
                yield from self._toggle_paste()

    def tick(self) -> Iterator[Message]:
        """Yield held-back input after a silence: it was not a marker."""
        if self._paste is None:
            held, self._held = self._held, ""
            yield from self._feed_text(held)
        elif self._clock() - self._heard > PASTE_TIMEOUT:
            self._paste.append(self._held)
            self._held = ""
            yield from self._toggle_paste()
        yield from self._parser.tick()

    def _feed_text(self, text: str) -> Iterator[Message]:
        if self._paste is not None:
            self._paste.append(text)
        elif text:
            yield from self._parser.feed(text)

    def _toggle_paste(self) -> Iterator[Message]:
        if self._paste is None:
            self._paste = []
            return
        text = decode_paste("".join(self._paste))
        self._paste = None
        if text:
            yield Paste(text)


def _partial_marker_length(text: str, mark: str) -> int:
    """Return how many characters at the end of a text may start a marker."""
    sizes = range(min(len(text), len(mark) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)
