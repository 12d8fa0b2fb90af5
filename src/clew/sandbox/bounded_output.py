"""The text of an output of which only the beginning and the end were kept."""

from __future__ import annotations

from typing import Final

#: Bytes of a line that is left out as a whole where the middle begins or ends.
_LONGEST_LINE: Final = 4096


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
