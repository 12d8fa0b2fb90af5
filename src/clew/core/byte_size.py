"""Numbers of bytes, for people."""

from __future__ import annotations


def format_size(count: int) -> str:
    """Format a number of bytes: ``950 bytes``, ``1.5 KB``, ``64 MB``, ``2 GB``."""
    value, units = float(count), ["bytes", "KB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    shown = f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")
    return f"{shown} {units[0]}"
