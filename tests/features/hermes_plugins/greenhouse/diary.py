"""What the plugin has seen, for the tests."""

from __future__ import annotations

import threading
from typing import Any

told: list[tuple[str, dict[str, Any], str]] = []


def note(hook: str, arguments: dict[str, Any]) -> None:
    told.append((hook, arguments, threading.current_thread().name))


def find(hook: str) -> list[dict[str, Any]]:
    return [arguments for name, arguments, _ in told if name == hook]
