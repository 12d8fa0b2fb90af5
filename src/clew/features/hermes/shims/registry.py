"""Results of tools (``tools.registry``); there is no registry of all tools."""

from __future__ import annotations

import json
from typing import Any


def tool_error(message: object, **more: Any) -> str:
    """Return an error as the result of a tool."""
    return json.dumps({"error": str(message), **more}, default=str, ensure_ascii=False)


def tool_result(data: object = None, **more: Any) -> str:
    """Return data as the result of a tool."""
    found = more if data is None else data
    return json.dumps(found, default=str, ensure_ascii=False)


class _Registry:
    """The tools of Hermes Agent, of which there are none."""

    def get_entry(self, name: str) -> None:
        return None

    def get_all_tool_names(self) -> list[str]:
        return []

    def get_schema(self, name: str) -> None:
        return None


registry = _Registry()
