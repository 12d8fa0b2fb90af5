"""The output of a command, of which only the beginning and the end are kept."""

from __future__ import annotations

from typing import Final

#: Bytes of a line that is left out as a whole where the middle begins or ends.
_LONGEST_LINE: Final = 4096


class BoundedOutput:
    """A buffer of a fixed size for output of any size: its first half and its last."""

    def __init__(self, limit: int) -> None:
        self._head_size = limit // 2
        self._tail_size = limit - self._head_size
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add_output(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]

    @property
    def left_out(self) -> int:
        """The bytes in the middle that are not shown."""
        head, tail = self._split()
        return self.total - len(head) - len(tail)

    def format_text(self) -> str:
        """Return the text, with a line where something is left out."""
        return format_bounded(bytes(self._head), bytes(self._tail[-self._tail_size :]), self.total)

    def _split(self) -> tuple[bytes, bytes]:
        head, tail = bytes(self._head), bytes(self._tail[-self._tail_size :])
        return _cut_lines(head, tail, self.total)


def format_bounded(head: bytes, tail: bytes, total: int) -> str:
    """Return the beginning and the end of an output as text, with a line for what is missing."""
    head, tail = _cut_lines(head, tail, total)
    left_out = total - len(head) - len(tail)
    if not left_out:
        return (head + tail).decode(errors="replace")
    return (
        f"{head.decode(errors='ignore')}\n"
        f"[… {left_out:,} bytes left out …]\n"
        f"{tail.decode(errors='ignore')}"
    )


def _cut_lines(head: bytes, tail: bytes, total: int) -> tuple[bytes, bytes]:
    """Return the beginning and the end, up to whole lines where the middle is left out."""
    if total == len(head) + len(tail):
        return head, tail
    # A line that is cut could show half of a secret, which nobody recognises.
    if (end := head.rfind(b"\n", max(0, len(head) - _LONGEST_LINE))) >= 0:
        head = head[:end]
    if (start := tail.find(b"\n", 0, _LONGEST_LINE)) >= 0:
        tail = tail[start + 1 :]
    return head, tail
