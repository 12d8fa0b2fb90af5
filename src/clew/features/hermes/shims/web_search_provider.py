"""Base class of web searches (``agent.web_search_provider``); Clew does not use them."""

from __future__ import annotations

from typing import Any


class WebSearchProvider:
    """A provider of web searches."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def display_name(self) -> str:
        return self.name

    def is_available(self) -> bool:
        return False

    def supports_search(self) -> bool:
        return False

    def supports_extract(self) -> bool:
        return False

    def search(self, query: str, limit: int = 5) -> dict[str, Any]:
        raise NotImplementedError(f"{self.name} does not search")

    def extract(self, urls: list[str], **more: Any) -> Any:
        raise NotImplementedError(f"{self.name} does not read pages")

    def get_setup_schema(self) -> dict[str, Any]:
        return {}
