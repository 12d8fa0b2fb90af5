"""The text file that shows a call which is too long for messages: all of it, to the letter."""

from __future__ import annotations

from typing import Final

from clew.core.channel_events import TextDocument

#: Longer calls are shown by a file, of up to so many characters (a platform takes 10 MB).
MAX_IN_MESSAGES: Final = 30_000
MAX_DOCUMENT_CHARS: Final = 2_000_000
#: Characters of a preview that the message beside the file shows.
_EXCERPT_LINES, _EXCERPT_CHARS = 40, 2_000
#: Before each line of a preview, so that none of them can look like a line of ours.
_MARGIN: Final = "  "


def make_document(name: str, *, tool: str, args: str, preview: str, otherwise: str) -> TextDocument:
    """
    Return the file for a call.

    The arguments come last: whatever follows their headline is theirs. ``otherwise`` is said
    where the file cannot be sent.
    """
    parts = [f"The agent wants to run {tool}. This file shows the whole call, to the letter."]
    if preview:
        shown = "".join(f"{_MARGIN}{line}\n" for line in preview.split("\n"))
        parts += ["WHAT IT CHANGES (each line is indented):", shown.rstrip("\n")]
    parts += [f"ARGUMENTS ({len(args):,} characters, to the end of this file):", args]
    return TextDocument(name=name, text="\n\n".join(parts), otherwise=otherwise)


def make_excerpt(preview: str) -> tuple[str, int]:
    """Return the first lines of a preview, and the number of lines left out."""
    lines = preview.rstrip("\n").split("\n")
    taken, length = 0, 0
    while taken < min(len(lines), _EXCERPT_LINES):
        length += len(lines[taken]) + 1
        if length > _EXCERPT_CHARS:
            break
        taken += 1
    return "\n".join(lines[:taken]), len(lines) - taken
