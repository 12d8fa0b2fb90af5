"""A long talk over compactions, restarts and another model: nothing that was promised is lost."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from clew.commands.runner import CommandRunner
from clew.config import load_settings
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.core.session import COMPRESSION
from clew.runtime import open_application
from clew.testing import FakeProvider
from tests.context.checker import complaints
from tests.context.recall import SHORT, TOOLS, WINDOW, Memoryless, carry_on
from tests.contract import invariants

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TALK = local_route("talk")


class InProcess:
    """Carries a talk on in this process; a restart closes the product, and opens it again."""

    def __init__(self, url: str, home: Path, provider: FakeProvider) -> None:
        flags = {
            "store.url": url,
            "model.name": "openai-chat:fake-model",
            "model.base_url": provider.openai_url,
            "model.api_key": "x",
            "model.context_window": str(WINDOW),
            "tools.modules": "recall_tools",
        }
        self._settings = load_settings(home=home, flags=flags, environ={})
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        opening = open_application(self._settings, role="test")
        self.product = await self._stack.enter_async_context(opening)

    async def say(self, text: str) -> str:
        accepted = await self.product.engine.submit(text, target=TALK)
        return (await self.product.engine.wait_for_input(accepted)).text

    async def restart(self) -> None:
        await self.end()
        await self.start()

    async def switch(self) -> None:
        await CommandRunner(self.product.engine).run_command(
            "/model openai:another", target=TALK, viewer=LOCAL
        )

    async def end(self) -> None:
        await self._stack.aclose()


async def test_b013_whatever_was_said_is_known_after_compactions_restarts_and_a_switch(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small form of ``make soak recall``: twice as long, with a server that is killed."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "recall_tools.py").write_text(TOOLS)
    model = Memoryless()
    with FakeProvider(model) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        driver = InProcess(store_url, tmp_path, provider)
        await driver.start()
        recalled = await carry_on(driver, SHORT)
        engine, store = driver.product.engine, driver.product.store
        sessions = (await engine.get_view(await engine.resolve_name(TALK.key))).sessions
        assert await store.read(invariants.check) == []
        await driver.end()
        asked = provider.wait_until_settled()
    assert (recalled.wrong, recalled.right) == ([], SHORT.questions)
    assert model.asked["unknown"] == 0
    assert [one.end_reason for one in sessions].count(COMPRESSION) >= SHORT.compactions
    assert model.asked["summary"] >= SHORT.compactions
    assert {request.format for request in asked} == {"chat", "responses"}
    assert [text for request in asked for text in complaints(request)] == []
