"""Random keys and pastes at the terminal, before a server that is slow, dies and comes back."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

from textual.screen import Screen

from clew.config.settings import ToolsSettings
from clew.core.approval import ApprovalState
from clew.core.entry import Role
from clew.core.ids import ApprovalId
from clew.testing import FakeProvider, Text
from clew.testing.provider import Calls, ScriptedCall
from clew.tui.screens.approval import ApprovalScreen
from clew.tui.screens.chat import ChatScreen
from clew.tui.state.typing_guard import MIN_PAUSE
from clew.tui.transports import ConnectionLost
from clew.tui.widgets.prompt import Prompt
from clew.wire import methods
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import over_pipe
from tests.tui import asking_tools
from tests.tui.terminal_session import at_terminal
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.testing import ProviderRequest, Reply
    from clew.tui.transports import Connect, FrameConnection
    from tests.integration.api_server import Server
    from tests.tui.terminal_session import TerminalSession

#: Keys that neither leave the program nor make text of their own.
_KEYS: Final = (
    *("enter",) * 12,
    *("backspace", "left", "right", "up", "down", "home", "end", "tab", "ctrl+a", "ctrl+k"),
    *("escape", "escape", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f7", "pageup", "pagedown"),
    *("ctrl+s", "ctrl+j", "ctrl+n", "ctrl+u"),
)
_CODES: Final = ("\x1b[13;1u", "\x1b[31m", "\x1b[0m", "\r\n", "\n", "\t", "\x1b[200~")
#: Letters that answer a question.
_ANSWERS: Final = "yna"
_MOVES: Final = frozenset({"up", "down", "home", "end", "pageup", "pagedown", "tab"})
#: Presses of a key that has to open a screen.
_TRIES: Final = 24
#: Seconds after which a screen that was not built yet is told to close again.
_AGAIN: Final = 2.0
#: Bursts between two moments at which everything is compared.
_BURSTS: Final = 25


@dataclass(kw_only=True)
class Played:
    """Result of the keystrokes."""

    keys: int = 0
    pastes: int = 0
    quiet_points: int = 0
    losses: int = 0
    sent: Counter[str] = field(default_factory=Counter[str])
    stored: Counter[str] = field(default_factory=Counter[str])
    allowed: Counter[str] = field(default_factory=Counter[str])
    ran: Counter[str] = field(default_factory=Counter[str])
    deleted: int = 0

    @property
    def wrong(self) -> int:
        """Messages that are lost, doubled or changed, and calls that nobody allowed."""
        lost, made = self.sent - self.stored, self.stored - self.sent
        return sum((lost + made + (self.ran - self.allowed)).values()) + self.deleted


class Moody:
    """A way to a server that is slow, and goes away."""

    def __init__(self, connect: Connect, chance: random.Random) -> None:
        self._connect, self._chance = connect, chance
        self.is_away = False
        self.losses = 0
        self._over = asyncio.Event()
        self._closing: list[asyncio.Task[None]] = []

    def lose(self) -> None:
        """Lose every connection, until it is back."""
        self.is_away = True
        self.losses += 1
        self._over.set()
        self._over = asyncio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[FrameConnection]:
        if self.is_away:
            raise ConnectionLost("it is away")
        stack = AsyncExitStack()
        try:
            connection = await stack.enter_async_context(self._connect())
            yield _Link(connection, self._chance, self._over)
        finally:
            # The server may work on for a while: a client that comes back does not wait for that.
            self._closing.append(asyncio.create_task(stack.aclose(), name="closing"))

    async def close(self) -> None:
        """Wait until the server has let go of every connection."""
        await asyncio.gather(*self._closing)


class _Link:
    def __init__(self, inner: FrameConnection, chance: random.Random, over: asyncio.Event) -> None:
        self._inner, self._chance, self._over = inner, chance, over

    async def send(self, frame: str) -> None:
        if self._over.is_set():
            raise ConnectionLost("it has gone")
        if self._chance.random() < 0.2:
            await asyncio.sleep(self._chance.random() / 20)
        await self._inner.send(frame)

    async def receive(self) -> str | bytes:
        frame = asyncio.ensure_future(self._inner.receive())
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({frame, over}, return_when=asyncio.FIRST_COMPLETED)
            if not frame.done():
                raise ConnectionLost("it has gone")
            return frame.result()
        finally:
            frame.cancel()
            over.cancel()


def _answer(request: ProviderRequest) -> Reply:
    asked = request.last_user_text
    if "please" in asked and not request.new_results:
        return Calls([ScriptedCall("run", {"command": asked[:40]})])
    return Text(f"echo: {asked[:200]}", chunks=2)


class Player:
    """Plays from one seed, and knows what has to come of it."""

    def __init__(self, session: TerminalSession, server: Server, way: Moody, seed: int) -> None:
        self._session, self._server, self._way = session, server, way
        self._chance = random.Random(seed)
        self.played = Played()
        #: Screens that were told to close, and when.
        self._left = WeakKeyDictionary[Screen[Any], float]()
        #: By the id of a call: what it was answered.
        self._letters: dict[str, str] = {}
        self._observe()

    def _observe(self) -> None:
        """Note what is sent, at the key, and what is changed and taken back on purpose."""
        prompt = self._session.app.screen_stack[0].query_one(Prompt)
        post = prompt.post_message

        def posted(message: object) -> bool:
            if isinstance(message, Prompt.MessageSubmitted):
                self.played.sent[message.text] += 1
            return post(message)  # pyright: ignore[reportArgumentType]

        prompt.post_message = posted
        desk = self._session.app.controller
        call = desk.call

        async def called(method: Any, params: Any) -> Any:
            queue = desk.view.state.queue if desk.view.state else []
            waiting = {one.inbox_id: one.text for one in queue}
            answer = await call(method, params)
            if method is methods.EDIT and answer.edited:
                self.played.sent[waiting[params.inbox_id]] -= 1
                self.played.sent[params.text] += 1
            elif method is methods.CANCEL and answer.cancelled:
                self.played.sent[waiting[params.inbox_id]] -= 1
            elif method is methods.DELETE:
                self.played.deleted += 1
            return answer

        desk.call = called  # pyright: ignore[reportAttributeAccessIssue]

    async def play(self, keys: int) -> None:
        """Press so many keys, and compare from time to time."""
        while self.played.keys < keys:
            for _ in range(_BURSTS):
                await self._burst()
            await self._compare()

    async def _burst(self) -> None:
        chance, session = self._chance, self._session
        if chance.random() < 0.06:
            self._way.lose()
        elif chance.random() < 0.4:
            self._way.is_away = False
        if chance.random() < 0.3:
            session.clock.now += 3 * MIN_PAUSE * chance.random()
        if chance.random() < 0.1:
            session.paste(self._pasted())
            self.played.pastes += 1
        keys = self._keys()
        session.press(*keys)
        self.played.keys += len(keys)
        await self._taken()

    def _keys(self) -> list[str]:
        """Some keys, none of which answers a question on purpose."""
        chance = self._chance
        found: list[str] = []
        for _ in range(chance.randrange(2, 7)):
            if chance.random() < 0.45:
                for _ in range(chance.randrange(1, 9)):
                    found += chance.choice(("tell ", "please ", "go ", "yes ", "no ", "any "))
                found += str(self.played.keys + len(found))
            else:
                found.append(chance.choice(_KEYS))
        meant = [key for key in found if key not in _MOVES]
        if meant[:1] and meant[0] in _ANSWERS and meant[1:2] in ([], ["enter"]):
            found.append("x")
            found.insert(0, "x")
        # A choice is never the last thing, to be carried out later.
        return [*found, "x"] if meant and meant[-1] in _ANSWERS else found

    def _pasted(self) -> str:
        chance = self._chance
        pieces = [f"p{chance.randrange(10**6)} {chance.choice(_CODES)}" for _ in range(3)]
        return "".join(pieces)

    async def _taken(self) -> None:
        """Wait until the program has read the keys."""
        queue = cast("asyncio.Queue[object]", getattr(self._session.app, "_message_queue"))  # noqa: B009
        for _ in range(3):
            await asyncio.sleep(0.002)
            await self._until(lambda: not queue.qsize(), "the keys", pause=0.001)

    async def _until(
        self, condition: Callable[[], object], what: str, *, pause: float = 0.02
    ) -> None:
        """Wait for something on the screen; a program that has ended shows nothing any more."""
        app = self._session.app

        def come() -> object:
            return not app.is_running or condition()

        await wait_until(come, what, pause=pause)
        if not app.is_running:
            log = app._fault_file  # pyright: ignore[reportPrivateUsage]
            told = log.read_text("utf-8")[-4000:] if log.exists() else "and nothing is in its log"
            raise AssertionError(f"the program has ended: {told}")

    async def _compare(self) -> None:
        """Let everything end, and compare the screen with the store."""
        try:
            await self._compare_quiet()
        except AssertionError as error:
            raise AssertionError(f"{error}: {self._facts()}") from error

    def _facts(self) -> tuple[object, ...]:
        desk = self._session.app.controller
        view, unsent = desk.view, desk.outbox.unsent
        following = desk._following  # pyright: ignore[reportPrivateUsage]
        asked = [(one.id, one.id in view.answered) for one in view.approvals]
        followed = desk._client._followed  # pyright: ignore[reportPrivateUsage]
        return (
            (view.conversation, view.seq, view.link, view.state, view.trouble, asked),
            (unsent, following, list(followed)),
            self._session.text,
        )

    async def _compare_quiet(self) -> None:
        session, self._way.is_away = self._session, False
        desk = session.app.controller
        await self._until(self._is_first_screen, "the first screen", pause=0.05)
        await self._until(lambda: not desk.outbox.unsent, "everything to be sent", pause=0.02)
        while True:
            await self._until(lambda: desk.view.approvals or self._is_quiet(), "quiet", pause=0.05)
            if not desk.view.approvals:
                break
            await self._decide()
        await self._until(self._has_last_entry, "the last entry")
        await self._session.same()
        self.played.quiet_points += 1

    def _is_quiet(self) -> bool:
        """Nothing is being done, and nothing waits to be done."""
        state = self._session.app.controller.view.state
        return state is not None and state.turn is None and not state.queue

    def _is_first_screen(self) -> bool:
        stack = self._session.app.screen_stack
        # Not again at once: a second one would reach the chat below, and stop the turn there.
        now = time.monotonic()
        if len(stack) > 1 and self._left.get(stack[-1], 0) < now - _AGAIN:
            self._left[stack[-1]] = now
            self._session.press("escape")
        chat = stack[0]
        assert isinstance(chat, ChatScreen)
        # A key whose screen waits for the server is not done yet.
        return len(stack) == 1 and not chat._actions._opening  # pyright: ignore[reportPrivateUsage]

    async def _decide(self) -> None:
        """Answer the call that the screen shows, on purpose."""
        session = self._session
        for _ in range(_TRIES):
            # A screen that a key of before has opened goes first.
            await self._until(self._is_first_screen, "the first screen")
            if not session.app.controller.view.approvals:
                return
            # A screen that closes swallows the key: press it again.
            session.press("f7")
            with suppress(AssertionError):
                await wait_until(lambda: len(session.app.screen_stack) > 1, seconds=5)
            if isinstance(session.app.screen, ApprovalScreen):
                break
        screen = session.app.screen
        await self._taken()
        if not isinstance(screen, ApprovalScreen) or session.app.screen is not screen:
            return  # the call was withdrawn meanwhile
        # An answer that a lost connection has swallowed is asked for again, and given again.
        letter = self._letters.get(screen.current_call.id) or self._chance.choice("yn")
        answered = await session.decide(letter)
        self._letters[answered] = letter
        await self._taken()
        if session.app.screen is screen:
            return  # the calls have changed, which takes the choice back: they are shown again
        await self._until(
            lambda: answered not in {one.id for one in session.app.controller.view.approvals},
            "the answer",
        )
        await self._until(lambda: len(session.app.screen_stack) == 1, "the way back")

    async def _has_last_entry(self) -> bool:
        """Read both anew: what was asked for before may have come since."""
        view = self._session.app.controller.view
        assert view.conversation is not None
        conversation = await self._server.engine.resolve_name(view.conversation.id)
        stored = await self._server.engine.read_entries(conversation, after=0, limit=100_000)
        return view.seq == len(stored)

    async def finish(self) -> Played:
        """Compare everything that was sent with everything that is stored."""
        await self._compare()
        played, engine = self.played, self._server.engine
        for one in await self._conversations():
            conversation = await engine.resolve_name(one)
            await wait_until(partial(self._is_settled, conversation), "what was left behind")
            for entry in await engine.read_entries(conversation, after=0, limit=100_000):
                if entry.role is Role.USER and entry.kind.value == "message":
                    played.stored[entry.text] += 1
        played.ran = Counter(
            # As the model wrote it: a line break within is written out.
            json.dumps({"command": each}, separators=(",", ":"), ensure_ascii=False)
            for each in asking_tools.ran
        )
        for one, letter in self._letters.items():
            asked = await engine.get_approval(ApprovalId(one))
            # A message that was under way may have withdrawn the call before the answer came.
            if letter == "y" and asked.state is ApprovalState.APPROVED:
                played.allowed[asked.args] += 1
        played.losses = self._way.losses
        return played

    async def _is_settled(self, conversation: ConversationId) -> bool:
        """
        Deny what waits, and say whether everything has been answered.

        Whoever has gone to another conversation leaves messages behind that wait for an answer.
        """
        engine = self._server.engine
        for asked in await engine.list_approvals(conversation):
            await engine.answer_approval(asked.id, yes=False)
        is_running = await engine.get_unfinished_turn(conversation) is not None
        return not is_running and not await engine.list_queue(conversation)

    async def _conversations(self) -> list[str]:
        found: list[str] = []
        asked: dict[str, str | int] = {"limit": 100}
        while True:
            answer = await self._server.http.get("/api/conversations", params=asked)
            page = answer.json()
            found += [one["id"] for one in page["items"]]
            if page["next"] is None:
                return found
            asked["cursor"] = page["next"]


async def play(home: Path, *, keys: int, seed: int) -> Played:
    """Play so many keys on a new home."""
    asking_tools.ran.clear()
    with FakeProvider(_answer) as provider:
        settings = settings_for(home, provider=provider)
        settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.asking_tools",)))
        async with running(settings) as server:
            way = Moody(over_pipe(server), random.Random(seed))
            async with at_terminal(way.connect, home) as session:
                player = Player(session, server, way, seed)
                await player.play(keys)
                played = await player.finish()
            await way.close()
            return played
