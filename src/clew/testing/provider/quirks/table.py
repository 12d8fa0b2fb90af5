"""All quirks."""

from __future__ import annotations

from clew.testing.provider.quirks.chat_shapes import CHAT
from clew.testing.provider.quirks.framing import FRAMING
from clew.testing.provider.quirks.other_shapes import MESSAGES, RESPONSES
from clew.testing.provider.quirks.shapes import SHAPES

QUIRKS = (*FRAMING, *SHAPES, *CHAT, *RESPONSES, *MESSAGES)
