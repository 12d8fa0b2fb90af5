"""The table of all quirks."""

from __future__ import annotations

from clew.testing.provider.quirks.chat import CHAT_QUIRKS
from clew.testing.provider.quirks.common import COMMON_QUIRKS
from clew.testing.provider.quirks.framing import FRAMING_QUIRKS
from clew.testing.provider.quirks.responses_and_messages import MESSAGES_QUIRKS, RESPONSES_QUIRKS

QUIRKS = (*FRAMING_QUIRKS, *COMMON_QUIRKS, *CHAT_QUIRKS, *RESPONSES_QUIRKS, *MESSAGES_QUIRKS)
