"""What a terminal sends, told apart: keys, and text that was pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.events import Paste

from clew.tui.text.pasted import pasted_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual._xterm_parser import XTermParser
    from textual.message import Message

START: Final = "\x1b[200~"
END: Final = "\x1b[201~"
#: Seconds of silence after which a paste without an end is over: keys must not vanish into it.
SILENCE: Final = 5.0


class TerminalInput:
    """
    Takes pastes out before keys are read.

    Within a paste every byte is text: escape sequences in it are no keys, whatever they look like.
    """

    def __init__(self, parser: XTermParser, clock: Callable[[], float]) -> None:
        self._parser, self._clock = parser, clock
        #: The end of what came, where it may be the beginning of a mark.
        self._held = ""
        #: The paste so far; ``None`` outside of one.
        self._paste: list[str] | None = None
        self._heard = clock()

    @property
    def is_waiting(self) -> bool:
        """Whether something is held back until more comes, or nothing does."""
        return bool(self._held)

    def feed(self, data: str) -> Iterator[Message]:
        """Read what came."""
        self._heard = self._clock()
        data, self._held = self._held + data, ""
        while data:
            mark = START if self._paste is None else END
            before, found, data = data.partition(mark)
            if not found:
                kept = _beginning(before, mark)
                self._held = before[len(before) - kept :]
                before = before[: len(before) - kept]
            yield from self._text(before)
            if found:
                yield from self._toggle()

    def tick(self) -> Iterator[Message]:
        """Nothing came for a moment: what was held back is no mark."""
        if self._paste is None:
            held, self._held = self._held, ""
            yield from self._text(held)
        elif self._clock() - self._heard > SILENCE:
            self._paste.append(self._held)
            self._held = ""
            yield from self._toggle()
        yield from self._parser.tick()

    def _text(self, text: str) -> Iterator[Message]:
        if self._paste is not None:
            self._paste.append(text)
        elif text:
            yield from self._parser.feed(text)

    def _toggle(self) -> Iterator[Message]:
        if self._paste is None:
            self._paste = []
            return
        text = pasted_text("".join(self._paste))
        self._paste = None
        if text:
            yield Paste(text)


def _beginning(text: str, mark: str) -> int:
    """How many characters at the end of a text may begin a mark."""
    sizes = range(min(len(text), len(mark) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)
