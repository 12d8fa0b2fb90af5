"""Widgets of the screens."""

from __future__ import annotations
