"""The sentences that people read and that are stored in the same commit as what they tell."""

from __future__ import annotations

from typing import Final

NOT_ALLOWED_NOTICE: Final = "Only whoever asked for it, or an operator, may answer that."
