"""Text rendering: Markdown blocks and terminal lines."""

from __future__ import annotations
