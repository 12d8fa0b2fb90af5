"""The table of all quirks."""

from __future__ import annotations

from clew.testing.provider.quirks.chat_shapes import CHAT_QUIRKS
from clew.testing.provider.quirks.framing import FRAMING_QUIRKS
from clew.testing.provider.quirks.other_shapes import MESSAGES_QUIRKS, RESPONSES_QUIRKS
from clew.testing.provider.quirks.shapes import COMMON_QUIRKS

QUIRKS = (*FRAMING_QUIRKS, *COMMON_QUIRKS, *CHAT_QUIRKS, *RESPONSES_QUIRKS, *MESSAGES_QUIRKS)
