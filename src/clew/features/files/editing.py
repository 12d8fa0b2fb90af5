"""Replacement of text in a file's bytes, whatever else the file contains."""

from __future__ import annotations

from clew.sandbox.errors import FileRefused


def replace_text(path: str, content: bytes, old: str, new: str, *, every: bool) -> bytes:
    r"""
    Return the content with ``old`` replaced.

    Works on bytes, so that a byte order mark and invalid UTF-8 stay. If the lines of the file
    end with CRLF, ``\n`` in both texts stands for CRLF.

    :raises FileRefused: if ``old`` is not in it, or more than once
    """
    if not old:
        raise FileRefused("old is empty: write_file creates a file, edit_file changes one")
    found, wanted = encode_text(old), encode_text(new)
    if found not in content and b"\r\n" in content:
        found, wanted = _with_crlf(found), _with_crlf(wanted)
    times = content.count(found)
    if times == 0:
        there = ", but new is" if wanted and wanted in content else ""
        raise FileRefused(f"old is not in {path!r}{there}: read the file again")
    if times > 1 and not every:
        raise FileRefused(
            f"old is in {path!r} {times:,} times: give more of the text around it, or every=true"
        )
    return content.replace(found, wanted)


def encode_text(text: str) -> bytes:
    """
    Return a text as UTF-8.

    :raises FileRefused: if it contains half of a surrogate pair
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FileRefused(f"the text cannot be written as UTF-8: {error.reason}") from error


def _with_crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
