"""The output of a command, of which only the beginning and the end are kept."""

from __future__ import annotations


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
        """The bytes in the middle that were not kept."""
        return max(0, self.total - self._head_size - self._tail_size)

    def format_text(self) -> str:
        """Return the text, with a line where something is left out."""
        if not self.left_out:
            return (self._head + self._tail).decode(errors="replace")
        tail = self._tail[-self._tail_size :]
        return (
            f"{self._head.decode(errors='ignore')}\n"
            f"[… {self.left_out:,} bytes left out …]\n"
            f"{tail.decode(errors='ignore')}"
        )
