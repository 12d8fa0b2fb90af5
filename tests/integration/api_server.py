"""A real server of the API in the test's own loop, over a real store, and its clients."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx2
import structlog
from openai import AsyncOpenAI

from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.models import close_models_on_exit
from clew.api.server import serve_api
from clew.api.timeouts import DEFAULT_TIMEOUTS, ApiTimeouts
from clew.config.secret import Secret
from clew.config.settings import ApiSettings, ModelSettings, Settings, StoreSettings
from clew.engine.engine import Engine
from clew.errors import NotFound
from clew.runtime import build_services, make_models
from clew.store.opening import open_store
from clew.testing import reply_in_sequence
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path

    from clew.store.contract import Store
    from clew.testing import FakeProvider, Reply, Script

TOKEN = "s3cret"

# Pretty tracebacks take seconds each.
structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
)


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that is running."""

    url: str
    http: httpx2.AsyncClient
    engine: Engine
    store: Store
    settings: Settings

    def openai(self, *, max_retries: int = 0) -> AsyncOpenAI:
        """The official client."""
        return AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key=TOKEN, max_retries=max_retries, timeout=60
        )

    async def say(
        self, text: str, conversation: str | None = "talk", **headers: str
    ) -> httpx2.Response:
        """One plain request with one message."""
        named = {} if conversation is None else {"X-Clew-Conversation": conversation}
        return await self.http.post(
            "/v1/chat/completions",
            json={"messages": [{"role": "user", "content": text}]},
            headers={**named, **{name.replace("_", "-"): value for name, value in headers.items()}},
        )

    async def begun(self, name: str = "talk") -> None:
        """Return once a turn of the conversation is under way."""
        await until(lambda: self._running(name))

    async def _running(self, name: str) -> bool:
        try:
            conversation = await self.engine.resolve_name(name)
        except NotFound:
            return False
        return await self.engine.get_unfinished_turn(conversation) is not None


def always(reply: Reply) -> Script:
    return reply_in_sequence([], default=reply)


def events_of(stream: str) -> list[Any]:
    """The data of each event that is JSON."""
    lines = (line.removeprefix("data: ") for line in stream.splitlines() if line[:5] == "data:")
    return [json.loads(line) for line in lines if line != "[DONE]"]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    await wait_until(condition)


def settings_for(
    home: Path,
    *,
    provider: FakeProvider | None = None,
    store_url: str = "sqlite:///clew.db",
    token: str | None = TOKEN,
    port: int = 0,
    origins: Sequence[str] = (),
) -> Settings:
    model = (
        ModelSettings()
        if provider is None
        else ModelSettings(name="openai-chat:fake-model", base_url=provider.openai_url)
    )
    return Settings(
        home=home,
        model=model,
        store=StoreSettings(url=store_url),
        api=ApiSettings(
            port=port,
            token=None if token is None else Secret.from_text(token),
            origins=tuple(origins),
        ),
    )


@asynccontextmanager
async def running(
    settings: Settings, *, pace: ApiTimeouts = DEFAULT_TIMEOUTS, opened: Store | None = None
) -> AsyncGenerator[Server]:
    """Serve, over the ``opened`` store if there is one; failures of the model make nobody wait."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(
            opened or await open_store(settings.store.url, home=settings.home)
        )
        await stack.enter_async_context(close_models_on_exit())
        means = replace(
            build_services(settings, store),
            models=ModelChain(make_models(settings), RetryPolicy(first_wait=0.001), time.monotonic),
        )
        engine = await stack.enter_async_context(Engine(means, role="serve", version="test"))
        token = settings.api.token
        headers = {} if token is None else {"Authorization": f"Bearer {token.reveal()}"}
        # Closed after the server, whose last answers it hears.
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
        url = await stack.enter_async_context(serving(engine, settings, pace=pace))
        http.base_url = url
        yield Server(url=url, http=http, engine=engine, store=store, settings=settings)


@asynccontextmanager
async def serving(
    engine: Engine,
    settings: Settings,
    *,
    pace: ApiTimeouts = DEFAULT_TIMEOUTS,
) -> AsyncGenerator[str]:
    """The base URL of a server that stops at the end of the block."""
    ready = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_api(engine, settings, on_ready=ready.set_result, pace=pace))
    await asyncio.wait({ready, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield ready.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
