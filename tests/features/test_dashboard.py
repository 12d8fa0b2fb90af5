"""The page of the dashboard and its files, over real HTTP."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from clew.features.dashboard.addresses import find_address, is_own_request
from clew.features.dashboard.settings import DashboardSettings
from clew.features.dashboard.site_files import FOLDER, SiteFiles
from scripts import vendor_web
from tests.integration.api_server import TOKEN, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.config import Settings
    from tests.integration.api_server import Server

#: Bytes, packed, that a browser loads at most, by what they are for.
MOST = {"chat": 200_000, "formulas": 52_000, "operate": 45_000}


def with_dashboard(home: Path, dashboard: DashboardSettings, token: str | None = TOKEN) -> Settings:
    sections = MappingProxyType({"dashboard": dashboard})
    return replace(settings_for(home, token=token), sections=sections)


@asynccontextmanager
async def opened(home: Path, **settings: object) -> AsyncGenerator[Server]:
    chosen = with_dashboard(home, DashboardSettings(**settings))  # pyright: ignore[reportArgumentType]
    async with running(chosen) as server:
        server.http.headers.pop("authorization")
        yield server


async def test_page_and_files_are_served_without_a_token_and_loaded_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as server:
        page = await server.http.get("/")
        assert page.status_code == 200
        assert page.headers["cache-control"] == "no-cache"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert not re.search(r"<script(?! type=\"module\" src=)|<style| style=| on\w+=", page.text)
        *_, script = re.findall(r'<script type="module" src="([^"]+)"', page.text)
        module = await server.http.get(f"/{script}")
        assert module.headers["cache-control"].endswith("immutable")
        assert module.headers["content-type"] == "text/javascript; charset=utf-8"
        assert module.headers["content-encoding"] == "gzip"
        plain = await server.http.get("/web/main.js", headers={"Accept-Encoding": "identity"})
        assert plain.text == module.text
        tag = {"If-None-Match": plain.headers["etag"]}
        assert (await server.http.get("/web/main.js", headers=tag)).status_code == 304
        for wrong in ("/web/nothing.js", "/web/../pyproject.toml", "/web/vendor/packages.json"):
            assert (await server.http.get(wrong)).status_code in (401, 404)
        assert (await server.http.get("/openapi.json")).status_code == 401


async def test_a_dashboard_that_is_off_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path, enabled=False) as server:
        for path in ("/", "/web/main.js"):
            answer = await server.http.get(path)
            assert answer.status_code == 404
            assert "dashboard.enabled" in answer.json()["error"]["message"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", ""])
async def test_a_name_that_was_made_to_lead_here_gets_nothing(tmp_path: Path, host: str) -> None:
    async with opened(tmp_path, origins=("https://clew.example",)) as server:
        for path in ("/", "/web/main.js"):
            answer = await server.http.get(path, headers={"Host": host})
            assert answer.status_code in (400, 403)
        listed = await server.http.get("/", headers={"Host": "clew.example"})
        assert listed.status_code == 200


def test_an_address_is_secure_only_if_every_listed_form_of_it_is() -> None:
    origins = ["https://clew.example", "http://10.0.0.7:8420", "https://both.example"]
    listed = find_address("clew.example", [*origins, "http://both.example"])
    assert listed is not None
    assert (listed.is_secure, listed.origins) == (True, {"https://clew.example"})
    spoken = find_address("10.0.0.7:8420", origins)
    assert spoken is not None
    assert (spoken.is_secure, spoken.port) == (False, 8420)
    both = find_address("both.example", [*origins, "http://both.example"])
    assert both is not None
    assert not both.is_secure
    assert find_address("10.0.0.8:8420", origins) is None
    assert find_address("clew.example:8420", origins) is None


@pytest.mark.parametrize(
    ("origin", "site", "is_change", "is_own"),
    [
        ("http://localhost:8420", "same-origin", True, True),
        ("http://localhost:8420", None, True, True),
        (None, None, False, True),
        (None, "none", False, True),
        (None, None, True, False),
        ("http://localhost:3000", "same-site", True, False),
        ("http://localhost:3000", None, False, False),
        ("https://evil.example", "cross-site", False, False),
        (None, "cross-site", False, False),
        ("null", None, True, False),
    ],
)
def test_only_the_page_itself_may_use_its_cookie(
    origin: str | None, site: str | None, *, is_change: bool, is_own: bool
) -> None:
    address = find_address("localhost:8420", [])
    assert address is not None
    found = is_own_request(address, origin=origin, site=site, must_have_origin=is_change)
    assert found is is_own


def test_the_files_are_few_and_the_libraries_are_those_of_the_lock() -> None:
    lock = vendor_web.read_lock()
    assert vendor_web.find_problems(lock) == []
    assert all(one["license"] and one["integrity"].startswith("sha512-") for one in lock.values())
    listed = (FOLDER / "vendor" / vendor_web.LICENSES_NAME).read_text(encoding="utf-8")
    assert all(f"{name} {one['version']} (" in listed for name, one in lock.items())
    files = SiteFiles().load().files
    sizes = Counter[str]()
    for name, one in files.items():
        # The system shows the pictures of an app; nobody loads the licences.
        if not name.endswith((".png", ".txt")):
            sizes[find_part(name)] += len(one.packed)
    assert {part: size for part, size in sizes.items() if size > MOST[part]} == {}


def find_part(name: str) -> str:
    """Return when a file is loaded: with the page or its languages, or when it is needed."""
    if name in ("vendor/temml.js", "maths.js"):
        return "formulas"
    return "operate" if name.startswith("operate/") else "chat"


def test_no_file_names_another_server() -> None:
    for path in FOLDER.rglob("*"):
        if path.suffix in (".js", ".css", ".html") and path.parent.name != "vendor":
            text = path.read_text(encoding="utf-8")
            assert re.findall(r"https?://(?!www\.w3\.org/)[\w.]+", text) == [], path


def test_an_edited_file_is_served_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<!-- modules -->VERSION<!-- later modules -->")
    (tmp_path / "main.js").write_text('import "./lib.js"; const load = () => import("./chat.js")')
    (tmp_path / "chat.js").write_text('import "./lib.js"; import "./markdown.js"')
    (tmp_path / "lib.js").write_text("1")
    (tmp_path / "markdown.js").write_text("1")
    files = SiteFiles(tmp_path)
    first = files.load()
    assert files.load() is first
    page = first.files["index.html"].content.decode()
    loaded = re.findall(rf'rel="([\w-]+)" href="web/{first.name}/([\w.]+)"', page)
    assert loaded == [
        *(("modulepreload", one) for one in ("main.js", "lib.js")),
        *(("later-modulepreload", one) for one in ("chat.js", "markdown.js")),
    ]
    (tmp_path / "main.js").write_text("22")
    second = files.load()
    assert second.name != first.name
    assert gzip.decompress(second.files["main.js"].packed) == b"22"
    assert f"web/{second.name}/main.js" in second.files["index.html"].content.decode()
