"""The tools of the web, and the facts about their calls."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from clew.core.tool_facts import ToolFacts

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from clew.core.doctor_finding import DoctorFinding
    from clew.core.scope import Scope
    from clew.features.web.settings import WebSettings
    from clew.plugin import FeatureContext, SettingsSection, TurnContext, WatchedText

#: Pages that are read at the same time: hosts are looked up in threads that others need as well.
_AT_ONCE: Final = 3


class WebTools:
    """The two tools, with the settings that they follow."""

    def __init__(self, section: SettingsSection[WebSettings]) -> None:
        self._section = section

    @cached_property
    def _permits(self) -> asyncio.Semaphore:
        import asyncio  # noqa: PLC0415  (declared by every command, needed by few)

        return asyncio.Semaphore(_AT_ONCE)

    async def web_fetch(self, url: str) -> str:
        """Read a public web page or text file (GET); HTML becomes Markdown."""
        from clew.features.web.page_text import read_url  # noqa: PLC0415  (declared by every command, needed by few)

        async with self._permits:
            return await read_url(url, allow_private=self._section.get().allow_private)

    async def read_watched_url(self, _: FeatureContext, scope: Scope, url: str) -> WatchedText:
        """Return the text of a URL that a job watches, as ``web_fetch`` reads it."""
        from clew.plugin.declarations import WatchedText  # noqa: PLC0415  (declared by every command, needed by few)

        return WatchedText(text=await self.web_fetch(url), untrusted=True)

    async def web_search(self, query: str, count: int = 5) -> str:
        """Search the web; return titles, URLs and excerpts."""
        from clew.features.web.searching import search_web  # noqa: PLC0415  (declared by every command, needed by few)

        return await search_web(self._section.get(), query, count)

    async def check_search(self) -> Sequence[DoctorFinding]:
        """Return whether the search engine of the settings has what it needs."""
        from clew.core.doctor_finding import ok, warn  # noqa: PLC0415  (declared by every command, needed by few)
        from clew.features.web.searching import find_problem  # noqa: PLC0415  (imports the HTTP client)

        settings = self._section.get()
        if settings.search == "none":
            return ()
        if (problem := find_problem(settings)) is not None:
            return [warn("web search", problem, fix="docs/how-to/search-the-web.md")]
        return [ok("web search", settings.search)]

    def can_search(self, _: TurnContext) -> bool:
        """Return whether a search engine is set."""
        return self._section.get().search != "none"

    def make_fetch_facts(self, arguments: Mapping[str, Any]) -> ToolFacts | None:
        """Return the host of a fetch; an address can carry data to hosts that are not allowed."""
        from clew.features.web.addresses import parse_url  # noqa: PLC0415  (imports the HTTP client)
        from clew.sandbox.public_addresses import matches_host  # noqa: PLC0415  (as below)

        host = parse_url(arguments["url"]).host
        trusted = any(matches_host(host, one) for one in self._section.get().allow)
        return ToolFacts(hosts=(host,), network=True, outward=not trusted, untrusted_result=True)

    def make_search_facts(self, _: Mapping[str, Any]) -> ToolFacts:
        """Return the host of the search engine."""
        from clew.features.web.searching import find_search_host  # noqa: PLC0415  (imports the HTTP client)

        host = find_search_host(self._section.get())
        return ToolFacts(hosts=(host,), network=True, untrusted_result=True)
