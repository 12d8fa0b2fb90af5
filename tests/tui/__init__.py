"""What the tests of the terminal UI share."""

from __future__ import annotations
