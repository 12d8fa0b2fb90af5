"""Chat commands as people type them."""

from __future__ import annotations

import re
from typing import Final

#: A name, in some chats followed by the bot's name, then nothing or a space; or ``/ONE:TWO``, where
#: ``ONE`` is the name of a server.
COMMAND_PATTERN: Final = re.compile(
    r"/([A-Za-z_?]+|[a-z][a-z0-9_-]{0,39}:[^\s/@:]+)(?:@\w+)?(?:\s+(.*))?", re.DOTALL
)


def is_command(text: str) -> bool:
    """Return whether a text is meant as a command; ``/etc/hosts is broken`` is not."""
    return COMMAND_PATTERN.fullmatch(text.strip()) is not None
