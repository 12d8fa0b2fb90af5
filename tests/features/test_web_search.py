"""Search engines: what each is asked, and what its answers, good and bad, become."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.config.secret import Secret
from clew.config.settings import Settings
from clew.features import web
from clew.features.web import searching
from clew.features.web.addresses import WebRefused
from clew.features.web.searching import find_search_host, search_web
from clew.features.web.settings import PROVIDERS, WebSettings
from clew.features.web.tools import WebTools
from clew.plugin.settings_tables import SettingsSection
from clew.testing import Text
from tests.features.test_shell import offered, told
from tests.features.test_turn_context import call, open_engine, say
from tests.features.web_servers import ByteServer, page, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from clew.plugin import Registry

KEY = "search-key-0123456789"
#: Answers of another shape.
SHAPES: tuple[object, ...] = (
    *("text", None, [], {}),
    {"results": 5, "web": []},
    {"web": {"results": {}}},
)
HIT = {"title": " Clews\n", "url": "https://a.org/1"}
#: By engine: the path that is asked for, an answer, and what stands in the request.
ENGINES: Mapping[str, tuple[str, object, str]] = {
    "searxng": (
        "/search",
        {"results": [{**HIT, "content": "about <b>"}, {"url": None}, "odd"]},
        "GET /search?q=ball+of+thread&format=json ",
    ),
    "brave": (
        "/res/v1/web/search",
        {"web": {"results": [{**HIT, "description": "about <b>"}]}},
        f"X-Subscription-Token: {KEY}",
    ),
    "tavily": (
        "/search",
        {"results": [{**HIT, "content": "about <b>"}]},
        f"Authorization: Bearer {KEY}",
    ),
    "exa": ("/search", {"results": [{**HIT, "text": "about <b>"}]}, f"x-api-key: {KEY}"),
}


@pytest.fixture
async def server() -> AsyncIterator[ByteServer]:
    async with serve() as found:
        yield found


def settings_of(engine: str, server: ByteServer) -> WebSettings:
    key = Secret.from_text(KEY)
    return WebSettings(search=engine, search_url=f"{server.url('')}/", search_key=key)


async def refusal_of(settings: WebSettings) -> str:
    with pytest.raises(WebRefused) as refused:
        await search_web(settings, "ball of thread", 5)
    assert KEY not in str(refused.value)
    return str(refused.value)


def answered(
    body: bytes, status: str = "200 OK", kind: str = "application/json", *more: str
) -> bytes:
    return page(body, kind, *more).replace(b"200 OK", status.encode(), 1)


def bind(section: SettingsSection[WebSettings], settings: WebSettings) -> None:
    """Load settings, of which only this section counts."""
    section.bind(Settings(home=Path("/"), sections={"web": settings}))


def test_there_is_an_adapter_for_each_engine() -> None:
    assert {*searching.ENGINES, "none", "ddgs"} == set(PROVIDERS)
    assert ENGINES.keys() == searching.ENGINES.keys()


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_engine_is_asked_and_its_results_are_listed(
    engine: str, server: ByteServer
) -> None:
    path, answer, sent = ENGINES[engine]
    server.answers[path] = answered(json.dumps(answer).encode())
    settings = settings_of(engine, server)
    listed = await search_web(settings, "  ball of\n thread ", 7)
    assert listed == "1. Clews\nhttps://a.org/1\nabout <b>"
    [request] = server.requests
    assert sent.lower() in request.decode().lower()
    assert b"ball" in request
    assert engine == "searxng" or b"7" in request
    assert find_search_host(settings) == "127.0.0.1"
    for shape in SHAPES:
        server.answers[path] = answered(json.dumps(shape).encode())
        assert await search_web(settings, "x", 5) == "no results"


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_goes_wrong_is_said_in_a_sentence(
    engine: str, server: ByteServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_MAX_BYTES", 10_000)
    monkeypatch.setattr(searching, "_SECONDS", 5.0)
    path, settings = ENGINES[engine][0], settings_of(engine, server)
    deep = b"[" * 9_000
    for answer, says in (
        (answered(b"{}", "401 Unauthorized"), "refused the key (401): correct web.search_key"),
        (answered(b"{}", "429 Too Many", "a/b", "Retry-After: 7"), "(429): try again in 7 seconds"),
        (answered(b"{}", "429 Too Many"), "(429): try again later"),
        (answered(b"oh", "500 Internal Server Error"), "failed (500 Internal Server Error)"),
        (answered(b"<html>", kind="text/html"), "answered text/html instead of JSON"),
        (answered(deep), "answered application/json instead of JSON"),
        (answered(b"x" * 20_000), "answered more than 10,000 bytes"),
        (answered(b"", "302 Found", "", "Location: http://169.254.169.254/"), "failed (302 Found)"),
        (b"", "cannot be reached: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", "cannot be reached: "),
    ):
        server.answers[path] = answer
        said = await refusal_of(settings)
        assert said.startswith((engine, f"the limit of {engine}"))
        assert says in said
    server.answers[path] = answered(b"{}", "403 Forbidden")
    said = await refusal_of(settings)
    hint = "add json to search.formats" if engine == "searxng" else "correct web.search_key"
    assert hint in said
    gone = replace(settings, search_url="http://127.0.0.1:1")
    assert (await refusal_of(gone)).startswith(f"{engine} cannot be reached")
    monkeypatch.setattr(searching, "_SECONDS", 0.2)
    hanging = replace(settings, search_url=server.url("/hangs"))
    server.answers[f"/hangs{path}"] = b""
    assert "than 0.2 seconds" in await refusal_of(hanging) or "reached" in await refusal_of(hanging)


async def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set web.search_url" in await refusal_of(WebSettings(search="searxng"))
    for engine in ("brave", "tavily", "exa"):
        said = await refusal_of(WebSettings(search=engine))
        assert said == f"{engine} needs a key: set web.search_key"
        assert find_search_host(WebSettings(search=engine)).endswith(
            ("brave.com", "tavily.com", "exa.ai")
        )
    monkeypatch.setitem(sys.modules, "ddgs", None)
    said = await refusal_of(WebSettings(search="ddgs"))
    assert said == "the search engine ddgs needs a package: pip install 'clew-gateway[ddgs]'"
    with pytest.raises(WebRefused, match="empty"):
        await search_web(WebSettings(search="brave"), " \n", 5)


class FakeDdgs:
    """The package ``ddgs``, as far as we use it."""

    __spec__ = ModuleSpec("ddgs", None)
    broken = False

    def DDGS(self) -> FakeDdgs:  # noqa: N802  (its name)
        return self

    def text(self, query: str, max_results: int) -> list[dict[str, object]]:
        if self.broken:
            raise RuntimeError("202 Ratelimit")
        return [{"href": f"https://a.org/{query}", "title": "A", "body": "b"}] * (max_results + 3)


async def test_ddgs_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    package = FakeDdgs()
    monkeypatch.setitem(sys.modules, "ddgs", package)
    listed = await search_web(WebSettings(search="ddgs"), "x", 2)
    assert listed == "1. A\nhttps://a.org/x\nb\n\n2. A\nhttps://a.org/x\nb"
    package.broken = True
    said = await refusal_of(WebSettings(search="ddgs"))
    assert said == "ddgs failed (202 Ratelimit): set web.search to another one"


async def test_the_tool_is_offered_where_an_engine_is_set(
    tmp_path: Path, server: ByteServer
) -> None:
    server.answers["/search"] = answered(json.dumps(ENGINES["searxng"][1]).encode())
    section = SettingsSection("web", WebSettings)

    def register(registry: Registry) -> None:
        tools = WebTools(section)
        registry.add_tool(tools.web_search, effect="pure", when=tools.can_search)

    bind(section, settings_of("searxng", server))
    step = call("web_search", query="thread")
    async with open_engine(tmp_path, register, step, Text("done")) as (engine, fake):
        await say(engine, "hello")
        assert told(fake) == ["1. Clews\nhttps://a.org/1\nabout <b>"]
        assert "web_search" in offered(fake)


async def test_without_an_engine_only_pages_are_offered(tmp_path: Path) -> None:
    async with open_engine(tmp_path, web.register, Text("done")) as (engine, fake):
        await say(engine, "hello")
        assert offered(fake) == {"web_fetch", "read_result"}


async def test_doctor_says_what_the_engine_lacks() -> None:
    section = SettingsSection("web", WebSettings)
    tools = WebTools(section)
    found: dict[str, str] = {}
    for engine in ("none", "searxng", "brave"):
        bind(section, WebSettings(search=engine))
        found[engine] = ", ".join(each.detail for each in await tools.check_search())
    assert not found["none"]
    assert found["searxng"].startswith("no search engine is set")
    assert found["brave"] == "brave needs a key: set web.search_key"
    bind(section, WebSettings(search="searxng", search_url="http://127.0.0.1:1"))
    assert [each.detail for each in await tools.check_search()] == ["searxng"]


def test_facts_name_the_hosts() -> None:
    section = SettingsSection("web", WebSettings)
    bind(section, WebSettings(search="brave", allow=("docs.org", "*.safe.org")))
    tools = WebTools(section)
    for url, host, outward in (
        ("https://evil.org/?q=secret", "evil.org", True),
        ("https://Docs.org./x", "docs.org", False),
        ("https://a.safe.org", "a.safe.org", False),
    ):
        facts = tools.make_fetch_facts({"url": url})
        assert facts is not None
        assert (facts.hosts, facts.outward, facts.untrusted_result) == ((host,), outward, True)
    with pytest.raises(WebRefused):
        tools.make_fetch_facts({"url": "file:///etc/passwd"})
    assert tools.make_search_facts({"query": "x"}).hosts == ("api.search.brave.com",)
