"""Pages of other origins may call the API where the settings name them, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.config import load_settings
from clew.errors import SettingsError
from clew.testing import FakeProvider, count_user_texts
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = "http://localhost:5173"
OTHER = "https://evil.example"
ASKS = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,authorization,x-clew-conversation",
}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.mark.parametrize("token", [None, "a-token-of-ours"], ids=["no token", "token"])
async def test_a_page_that_is_named_can_ask_and_read(
    tmp_path: Path, provider: FakeProvider, token: str | None
) -> None:
    named = settings_for(tmp_path, provider=provider, token=token, origins=[PAGE, OTHER])
    async with running(named) as server:
        path = "/v1/chat/completions"
        preflight = await server.http.options(path, headers={"Origin": PAGE, **ASKS})
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == PAGE
        allowed = preflight.headers["access-control-allow-headers"].lower()
        assert "x-clew-conversation" in allowed
        for origin in (PAGE, OTHER):
            said = await server.say("hello", Origin=origin)
            assert said.status_code == 200
            assert said.headers["access-control-allow-origin"] == origin
            assert "X-Clew-Turn" in said.headers["access-control-expose-headers"]
        wrong = await server.http.get("/api/conversations/none", headers={"Origin": PAGE})
        assert wrong.status_code == 404
        assert wrong.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origins", [[], [PAGE]], ids=["none named", "another named"])
async def test_a_page_that_is_not_named_can_neither_ask_nor_read(
    tmp_path: Path, provider: FakeProvider, origins: list[str]
) -> None:
    async with running(
        settings_for(tmp_path, provider=provider, token=None, origins=origins)
    ) as server:
        preflight = await server.http.options(
            "/v1/chat/completions", headers={"Origin": OTHER, **ASKS}
        )
        assert preflight.status_code in (400, 403)
        assert "access-control-allow-origin" not in preflight.headers
        said = await server.say("hello", Origin=OTHER)
        assert said.status_code == 403
        assert "api.origins" in said.json()["error"]["message"]
    assert provider.requests == []


@pytest.mark.parametrize("wrong", ["*", "localhost:5173", "http://localhost:5173/page", "null"])
def test_an_invalid_origin_is_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"api\.origins"):
        load_settings(home=tmp_path, flags={"api.origins": wrong}, environ={})
