"""The settings of the web."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.config.builtin_types import SECRET, TEXTS, URL, choice_type
from clew.config.fields import setting
from clew.record import Record

if TYPE_CHECKING:
    from clew.config.secret import Secret

#: The search engines that there are adapters for.
PROVIDERS: Final = ("none", "searxng", "brave", "tavily", "exa", "ddgs")


class WebSettings(Record):
    """The web, as the tools `web_fetch` and `web_search` may use it."""

    search: str = setting(
        choice_type(PROVIDERS),
        "none",
        "The search engine of `web_search`; with `none` the tool is not offered. `searxng` is a "
        "server of your own; `brave`, `tavily` and `exa` need a key; `ddgs` (the extra `ddgs`) "
        "reads the pages of public search engines, and may break whenever they change.",
    )
    search_url: str | None = setting(
        URL,
        None,
        "The address of the search engine: your SearXNG; for others only if it is not their own.",
    )
    search_key: Secret | None = setting(SECRET, None, "The key for the search engine.")
    allow: tuple[str, ...] = setting(
        TEXTS,
        (),
        "Hosts (`example.org`, `*.example.org`, `*` for all) that may be fetched from without "
        "asking, even after the conversation has read text of strangers.",
        live=True,
    )
    allow_private: tuple[str, ...] = setting(
        TEXTS,
        (),
        "Hosts that may be fetched from although they are on this machine or in a private network. "
        "Addresses that give away credentials of the machine are refused even so.",
        live=True,
    )
