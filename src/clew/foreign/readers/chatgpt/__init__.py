"""
ChatGPT: the data export, as the zip or unpacked.

::

    conversations.json, conversations-000.json …     a list of conversations, each a tree
    file-ID-NAME.png, dalle-generations/…            files of messages, by their ids
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.foreign.readers.chatgpt.home import ChatGptHome


def find_home(home: Path) -> Path | None:
    """Return nothing: an export is downloaded to any place."""
    return None


def open_home(path: Path) -> ChatGptHome:
    """
    Open the zip, the unpacked folder, or a ``conversations.json``.

    :raises UsageError: if there are no conversations
    """
    from clew.foreign.readers.chatgpt.archive import open_archive  # noqa: PLC0415
    from clew.foreign.readers.chatgpt.home import ChatGptHome  # noqa: PLC0415

    archive = open_archive(path)
    if not archive.conversations:
        raise UsageError(
            f"{path} is no data export of ChatGPT: it has no conversations.json. "
            "Name the zip, the unpacked folder, or that file"
        )
    return ChatGptHome(path, archive)
