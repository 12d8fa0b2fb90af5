"""Search engines: one request, and titles, URLs and excerpts from its answer."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2

from clew.distribution import VERSION, format_install_command
from clew.features.web.addresses import WebRefused
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from clew.features.web.settings import WebSettings

_SECONDS: Final = 20.0
_MAX_BYTES: Final = 2_000_000
_MOST_RESULTS: Final = 20
_LONGEST_QUERY: Final = 500
_LONGEST_EXCERPT: Final = 500
_KEY_SETTING: Final = "web.search_key"


class FoundPage(Record):
    """One result of a search."""

    title: str
    url: str
    excerpt: str


class SearchRequest(Record):
    """The request to a search engine."""

    method: str = "GET"
    path: str
    params: Mapping[str, str | int] = field(default_factory=dict[str, "str | int"])
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class SearchEngine(Record):
    """One search engine: its request, and the place of the results in its answer."""

    #: Of the engine; ``None`` where the settings must name it.
    url: str | None
    needs_key: bool
    #: Given the query, the number of results and the key.
    make_request: Callable[[str, int, str], SearchRequest]
    #: The path to the list of results, and the names of URL, title and excerpt in each.
    results: tuple[str, ...]
    names: tuple[str, str, str]


def _ask_searxng(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest(path="search", params={"q": query, "format": "json"})


def _ask_brave(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest(
        path="res/v1/web/search",
        params={"q": query, "count": count, "text_decorations": "false"},
        headers={"X-Subscription-Token": key},
    )


def _ask_tavily(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest(
        method="POST",
        path="search",
        body={"query": query, "max_results": count},
        headers={"Authorization": f"Bearer {key}"},
    )


def _ask_exa(query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest(
        method="POST",
        path="search",
        body={
            "query": query,
            "numResults": count,
            "contents": {"text": {"maxCharacters": _LONGEST_EXCERPT}},
        },
        headers={"x-api-key": key},
    )


ENGINES: Final[Mapping[str, SearchEngine]] = {
    "searxng": SearchEngine(
        url=None,
        needs_key=False,
        make_request=_ask_searxng,
        results=("results",),
        names=("url", "title", "content"),
    ),
    "brave": SearchEngine(
        url="https://api.search.brave.com",
        needs_key=True,
        make_request=_ask_brave,
        results=("web", "results"),
        names=("url", "title", "description"),
    ),
    "tavily": SearchEngine(
        url="https://api.tavily.com",
        needs_key=True,
        make_request=_ask_tavily,
        results=("results",),
        names=("url", "title", "content"),
    ),
    "exa": SearchEngine(
        url="https://api.exa.ai",
        needs_key=True,
        make_request=_ask_exa,
        results=("results",),
        names=("url", "title", "text"),
    ),
}


async def search_web(settings: WebSettings, query: str, count: int) -> str:
    """
    Return the results of a search as a numbered list.

    :raises WebRefused: saying what is wrong, and which setting to correct
    """
    query = " ".join(query.split())[:_LONGEST_QUERY]
    if not query:
        raise WebRefused("the query is empty")
    count = min(max(count, 1), _MOST_RESULTS)
    if (problem := find_problem(settings)) is not None:
        raise WebRefused(problem)
    ask = _ask_ddgs if settings.search == "ddgs" else _ask_engine
    found = [each for each in await ask(settings, query, count) if each.url][:count]
    if not found:
        return "no results"
    return "\n\n".join(
        f"{number}. {each.title or each.url}\n{each.url}\n{each.excerpt}".rstrip()
        for number, each in enumerate(found, 1)
    )


def find_problem(settings: WebSettings) -> str | None:
    """Return what the search engine of the settings lacks."""
    name, engine = settings.search, ENGINES.get(settings.search)
    if engine is not None and settings.search_url is None and engine.url is None:
        return "no search engine is set: set web.search_url to the address of SearXNG"
    if engine is not None and engine.needs_key and settings.search_key is None:
        return f"{name} needs a key: set {_KEY_SETTING}"
    if name == "ddgs" and importlib.util.find_spec("ddgs") is None:
        return f"the search engine ddgs needs a package: {format_install_command('ddgs')}"
    return None


def find_search_host(settings: WebSettings) -> str:
    """Return the host of the search engine; empty if it is not one host."""
    engine = ENGINES.get(settings.search)
    url = settings.search_url or (engine and engine.url)
    return httpx2.URL(url).host if url else ""


async def _ask_engine(settings: WebSettings, query: str, count: int) -> Iterable[FoundPage]:
    name, engine = settings.search, ENGINES[settings.search]
    url = settings.search_url or engine.url or ""
    key = settings.search_key.reveal() if settings.search_key else ""
    request = engine.make_request(query, count, key)
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await _send(f"{url.rstrip('/')}/{request.path}", request, name)
    except TimeoutError:
        raise WebRefused(f"{name} took longer than {_SECONDS:g} seconds") from None
    return [*_iter_results(answer, engine)]


async def _send(url: str, request: SearchRequest, name: str) -> object:
    headers = {"User-Agent": f"Clew/{VERSION}", "Accept": "application/json", **request.headers}
    terms: dict[str, Any] = {"params": dict(request.params) or None, "json": request.body}
    try:
        async with (
            httpx2.AsyncClient(timeout=_SECONDS) as client,
            client.stream(request.method, url, headers=headers, **terms) as answer,
        ):
            body = await _read_body(answer, name)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise WebRefused(f"{name} cannot be reached: {reason}") from None
    if answer.status_code != 200:
        raise WebRefused(_explain_status(answer, name))
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        kind = answer.headers.get("Content-Type") or "nothing that it names"
        raise WebRefused(f"{name} answered {kind} instead of JSON{_HINTS.get(name, '')}") from None


async def _read_body(answer: httpx2.Response, name: str) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > _MAX_BYTES:
            raise WebRefused(f"{name} answered more than {_MAX_BYTES:,} bytes")
    return bytes(body)


_HINTS: Final = {"searxng": ": add json to search.formats in its settings.yml"}


def _explain_status(answer: httpx2.Response, name: str) -> str:
    status = answer.status_code
    if status == 403 and name in _HINTS:
        return f"{name} refused (403){_HINTS[name]}"
    if status in (401, 403):
        return f"{name} refused the key ({status}): correct {_KEY_SETTING}"
    if status in (402, 429, 432, 433):
        wait = answer.headers.get("Retry-After", "")
        later = f" in {wait} seconds" if wait.isdecimal() else " later"
        return f"the limit of {name} is reached ({status}): try again{later}"
    return f"{name} failed ({status} {answer.reason_phrase})"


def _iter_results(answer: object, engine: SearchEngine) -> Iterable[FoundPage]:
    """Yield the usable results; an answer of another shape has none."""
    found: object = answer
    for step in engine.results:
        found = cast("dict[str, object]", found).get(step) if isinstance(found, dict) else None
    for each in cast("list[object]", found) if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield _make_result(cast("dict[str, object]", each), engine.names)


def _make_result(each: dict[str, object], names: tuple[str, str, str]) -> FoundPage:
    url, title, excerpt = (" ".join(str(each.get(name) or "").split()) for name in names)
    return FoundPage(url=url, title=title[:200], excerpt=excerpt[:_LONGEST_EXCERPT])


async def _ask_ddgs(settings: WebSettings, query: str, count: int) -> Iterable[FoundPage]:
    """Ask public search engines through their pages, with an optional package."""
    ddgs: Any = importlib.import_module("ddgs")
    try:
        async with asyncio.timeout(_SECONDS):
            found = await asyncio.to_thread(_search_ddgs, ddgs, query, count)
    except TimeoutError:
        raise WebRefused(f"ddgs took longer than {_SECONDS:g} seconds") from None
    except Exception as error:  # whatever it raises says that it does not work today
        raise WebRefused(f"ddgs failed ({error}): set web.search to another one") from error
    return [_make_result(each, ("href", "title", "body")) for each in found]


def _search_ddgs(ddgs: Any, query: str, count: int) -> list[dict[str, object]]:
    return ddgs.DDGS().text(query, max_results=count)
