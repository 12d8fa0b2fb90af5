"""The web for the model: ``web_fetch`` reads a page, ``web_search`` asks a search engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.web.settings import WebSettings
from clew.features.web.tools import WebTools

if TYPE_CHECKING:
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the feature."""
    tools = WebTools(registry.add_settings(WebSettings))
    registry.add_tool(tools.web_fetch, effect="pure", facts=tools.make_fetch_facts, untrusted=True)
    registry.add_tool(
        tools.web_search,
        effect="pure",
        facts=tools.make_search_facts,
        untrusted=True,
        when=tools.can_search,
    )
    registry.add_watch_source(
        "url", tools.read_watched_url, facts=lambda url: tools.make_fetch_facts({"url": url})
    )
    registry.add_doctor_check("web search", tools.check_search)
