"""The screens."""

from __future__ import annotations
