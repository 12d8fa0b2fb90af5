"""
The product as it is run: settings, plugins and tools from files, a provider and a chat platform
behind real connections, and the fronts that people and programs use.

Only the ids of sessions, the clock of the store and the pauses between attempts are a test's own.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clew import runtime
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.models import close_models_on_exit
from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.operation_context import OperationContext
from clew.api.rpc.connection import serve_client
from clew.config import load_settings
from clew.core.session import Head
from clew.engine.engine import Engine
from clew.gateway.gateway import Gateway
from clew.store.opening import open_store
from clew.store.transactions import conversations, inbox, leases, sessions
from clew.testing import FakeProvider, echo
from clew.testing.telegram import FakeTelegram
from clew.tui.client import RpcClient
from clew.tui.transports import in_process
from clew.wire import methods
from clew.wire.params import Named, OpenParams, RunParams, SubmitParams
from tests.contract import invariants
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.filling import EARLIER, fill
from tests.contract.lifecycle.house import Proposals
from tests.failing.compacting import Plays
from tests.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from clew.clock import Clock
    from clew.config import Settings
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.core.session import Session
    from clew.core.session_base import Base
    from clew.engine.services import EngineServices
    from clew.store.contract import Store, Tx
    from clew.wire.results import Submitted

#: Seconds that anything may take; fewer while mutations run, which are to be noticed within 20.
SOON = float(os.environ.get("CLEW_TEST_SOON", PATIENCE))

OLD, NEW = "20260101_000000_aaaaaa", "20260101_000001_bbbbbb"
#: The person who talks on Telegram, and the key of the route.
ADA = 42
CHAT = "agent:main:telegram:dm:42"

#: A plugin in the form that plugins of this field have.
DIARY = '''
"""Writes down what it is told, and what its environment says."""

import json
import os
from pathlib import Path

from clew.hooks.specs import hookimpl

TOLD = Path(__file__).with_name("told.jsonl")


def _note(hook, arguments):
    seen = [os.environ.get(name) for name in ("CLEW_SESSION_ID", "HERMES_SESSION_ID")]
    line = json.dumps([hook, arguments, seen]) + "\\n"
    with TOLD.open("a") as file:
        file.write(line)


'''
HOOKS = (
    "on_session_start",
    "on_session_end",
    "on_session_finalize",
    "on_session_reset",
    "pre_tool_call",
    "post_tool_call",
    "post_llm_call",
    "transform_tool_result",
    "transform_llm_output",
)
_NOTED = '@hookimpl\ndef {hook}(**kwargs):\n    _note("{hook}", kwargs)\n\n\n'


@dataclass(frozen=True, kw_only=True)
class Told:
    """One call of a hook, with its arguments and the ids in the environment."""

    hook: str
    facts: dict[str, Any]
    environment: list[str | None]


@dataclass(frozen=True, kw_only=True)
class Home:
    """The folder of a product: what people write there, and what the plugin has written."""

    path: Path

    def plugin(self, name: str, code: str) -> None:
        folder = self.path / "plugins"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(code, encoding="utf-8")

    def keep_diary(self, *hooks: str) -> None:
        """Have these hooks, or all, written down."""
        noted = "".join(_NOTED.format(hook=hook) for hook in hooks or HOOKS)
        self.plugin("diary", DIARY + noted)

    def told(self, *hooks: str) -> list[Told]:
        """Return the notifications to plugins, of these hooks or of all."""
        file = self.path / "plugins" / "told.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [Told(hook=h, facts=f, environment=e) for h, f, e in map(json.loads, lines)]
        return [one for one in found if not hooks or one.hook in hooks]

    def boundaries(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the notifications to plugins about ended and following sessions, in order."""
        names = {"on_session_finalize": "finalize", "on_session_reset": "reset"}
        return [(names[one.hook], one.facts) for one in self.told(*names)]


@dataclass(frozen=True, kw_only=True)
class Product:
    """A running product; ``means`` and ``store`` are for looking only."""

    home: Home
    settings: Settings
    engine: Engine
    means: EngineServices
    store: CountedStore
    model: Plays
    telegram: FakeTelegram | None = None

    # A person on Telegram

    async def hears(self, count: int = 1) -> list[str]:
        """Return the messages of the bot to the person, once enough are final."""
        telegram = self.telegram
        assert telegram is not None

        def there() -> bool:
            texts = telegram.list_texts(ADA)
            return len(texts) >= count and not any(text.endswith(" …") for text in texts)

        await wait_until(there, f"{count} messages: {telegram.list_texts(ADA)}", seconds=SOON)
        return telegram.list_texts(ADA)

    async def chat(self, text: str) -> str:
        """Write on Telegram; the next message of the bot."""
        assert self.telegram is not None
        before = len(self.telegram.list_texts(ADA))
        self.telegram.post_message(text)
        return (await self.hears(before + 1))[before]

    # A program over JSON-RPC

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[RpcClient]:
        office = OperationContext(
            operations=BUILTIN_OPERATIONS, engine=self.engine, settings=self.settings
        )

        async def serve(frames: AsyncIterator[str], send: Callable[[str], Awaitable[None]]) -> None:
            await serve_client(office, frames, send)

        async with RpcClient(in_process(serve)) as found:
            yield found

    async def submit(self, client: RpcClient, text: str, *, to: str = "talk") -> Submitted:
        return await client.call(methods.SUBMIT, SubmitParams(session_id=to, text=text))

    async def say(self, client: RpcClient, text: str, *, to: str = "talk") -> str:
        """Submit a message and wait until its turn is over; the last thing that was said."""
        sent = await self.submit(client, text, to=to)
        await self.at_rest(sent.conversation)
        return (await self.log(sent.conversation))[-1].text

    async def command(self, client: RpcClient, text: str, *, to: str = "talk") -> str:
        """Carry out a chat command; the reply."""
        return (await client.call(methods.RUN, RunParams(text=text, conversation=to))).text

    async def open(self, client: RpcClient, name: str = "talk") -> ConversationId:
        """The conversation of a name, attached."""
        opened = await client.call(methods.OPEN, OpenParams(conversation=name))
        return await self.engine.resolve_name(opened.conversation.id)

    async def head_by(self, client: RpcClient, name: str) -> str:
        """The current session, as a client is told it."""
        found = await client.call(methods.STATUS, Named(conversation=name))
        return found.conversation.head_session

    # Results

    async def lineage(self, name: str = "talk") -> list[tuple[str, str | None]]:
        """Every session of a conversation with its end reason, oldest first, as people see it."""
        view = await self.engine.get_view(await self.engine.resolve_name(name))
        return [(one.id, one.end_reason) for one in view.sessions]

    async def log(self, name: str = "talk") -> Sequence[Entry]:
        conversation = await self.engine.resolve_name(name)
        return await self.engine.read_entries(conversation, limit=1000)

    async def at_rest(self, name: str = "talk", *, seconds: float = SOON) -> None:
        """Wait until nothing is to be done in a conversation."""

        async def rests() -> bool:
            conversation = await self.engine.resolve_name(name)
            if await self.store.read(inbox.list_open_items, conversation):
                return False
            return await self.engine.get_unfinished_turn(conversation) is None

        await wait_until(rests, f"{name} to be at rest", seconds=seconds)

    async def becomes(self, wanted: list[tuple[str, str | None]], name: str = "talk") -> None:
        """Wait until a conversation has these sessions."""

        async def so() -> bool:
            return await self.lineage(name) == wanted

        with suppress(AssertionError):
            await wait_until(so, seconds=SOON)
        assert await self.lineage(name) == wanted

    async def tells(self, *wanted: tuple[str, dict[str, Any]]) -> None:
        """Wait until plugins were told of these boundaries, and nothing else."""

        def so() -> bool:
            return len(self.home.boundaries()) >= len(wanted)

        with suppress(AssertionError):
            await wait_until(so, seconds=SOON)
        assert self.home.boundaries() == list(wanted)


@dataclass(kw_only=True)
class Plan:
    """Options for starting a product."""

    url: str
    home: Home
    model: Plays = field(default_factory=lambda: Plays(turn=echo))
    session_ids: Sequence[str] = ()
    clock: Clock | None = None
    flags: dict[str, str] = field(default_factory=dict[str, str])
    plugins: tuple[str, ...] = ("diary",)
    around: Callable[[Store], Store] | None = None
    #: The address of a provider of another process; else there is one of its own.
    provider: str | None = None
    #: True if a person writes on Telegram.
    telegram: bool = False
    role: str = "serve"
    #: True if it leaves inputs that other processes accepted to them.
    own_only: bool = False


def plan(url: str, folder: Path, **more: Any) -> Plan:
    """A plan with a diary of all hooks."""
    home = Home(path=folder / "home")
    home.keep_diary()
    return Plan(url=url, home=home, **more)


@asynccontextmanager
async def running(given: Plan, *, telegram: FakeTelegram | None = None) -> AsyncGenerator[Product]:
    """Run the product; leaving the block stops it as SIGTERM does."""
    async with AsyncExitStack() as stack:
        address = given.provider
        if address is None:
            address = stack.enter_context(FakeProvider(given.model)).openai_url
        if telegram is None and given.telegram:
            telegram = stack.enter_context(FakeTelegram())
        settings = _settings(given, address, telegram)
        opened = await open_store(given.url, home=settings.home, clock=given.clock)
        store = await stack.enter_async_context(CountedStore(opened))
        await stack.enter_async_context(close_models_on_exit())
        means = _means(given, settings, store)
        engine = await stack.enter_async_context(
            Engine(means, role=given.role, version="0", own_only=given.own_only)
        )
        if telegram is not None:
            await stack.enter_async_context(Gateway(engine, settings))
        yield Product(
            home=given.home,
            settings=settings,
            engine=engine,
            means=means,
            store=store,
            model=given.model,
            telegram=telegram,
        )
    async with CountedStore(await open_store(given.url, home=settings.home)) as store:
        assert await store.read(invariants.check) == []


def _settings(given: Plan, provider: str, telegram: FakeTelegram | None) -> Settings:
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": provider,
        "plugins.enabled": ",".join(given.plugins),
        # Nobody is waited for who may say more.
        "session.double_text": "queue",
        **given.flags,
    }
    if telegram is not None:
        own = {"token": telegram.token, "base_url": telegram.base_url, "allow": str(ADA)}
        flags |= {f"channels.telegram.{name}": value for name, value in own.items()}
    return load_settings(home=given.home.path, flags=flags, environ={})


def _means(given: Plan, settings: Settings, store: Store) -> EngineServices:
    means = runtime.build_services(settings, given.around(store) if given.around else store)
    ids = Proposals(*given.session_ids)
    for each in (means.compaction, means.titles):
        vars(each)["_session_ids"] = ids
    return replace(
        means,
        models=ModelChain(
            runtime.make_models(settings), RetryPolicy(first_wait=0.001), time.monotonic
        ),
        session_ids=ids,
    )


# Initial content of a store


@asynccontextmanager
async def stored(given: Plan) -> AsyncGenerator[Store]:
    """The store of a plan, with nobody at work on it."""
    given.home.path.mkdir(parents=True, exist_ok=True)
    async with await open_store(given.url, home=given.home.path, clock=given.clock) as store:
        yield store


def open_talk(t: Tx, conversation: ConversationId, *, scope: Scope, session: str) -> None:
    """A conversation that nothing leads to, with two messages in its first session."""
    conversations.open_conversation(t, conversation, scope=scope, session_ids=Proposals(session))
    fill(t, conversation, 2, size=10)


def continue_talk(
    t: Tx,
    conversation: ConversationId,
    *,
    session: str,
    reason: str,
    messages: int = 2,
    base: Base = (),
) -> Session:
    """Go on in another session, after the head has ended for ``reason``."""
    head = sessions.get_head(t, conversation)
    last_seq = conversations.get_conversation(t, conversation).last_seq
    lease = leases.acquire_lease(t, conversation, owner=EARLIER).lease
    following = sessions.rotate_session(
        t,
        lease,
        operation=f"op_{session}",
        expected=Head(session=head.id, last_seq=last_seq),
        base=base,
        reason=reason,
        session_ids=Proposals(session),
    )
    leases.release_lease(t, lease)
    if messages:
        fill(t, conversation, messages, size=10)
    return following
