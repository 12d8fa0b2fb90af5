"""The settings of memory."""

from __future__ import annotations

from dataclasses import dataclass

from clew.config.builtin_types import FLAG
from clew.config.fields import setting


@dataclass(frozen=True, kw_only=True, slots=True)
class MemorySettings:
    """Memory of people and chats."""

    with_conversation: bool = setting(
        FLAG,
        False,
        "Forget what was taken from a conversation when that is deleted for good.",
    )
