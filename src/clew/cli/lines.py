"""
The chat line by line: ``clew chat`` on a terminal.

The engine lives in a thread of its own; this one talks to the person. What is typed while an answer
runs is handed in at once and stands in the conversation's line, so it outlives this process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVarTuple

from anyio.from_thread import start_blocking_portal

from clew.cli.logs import logs_to_file
from clew.cli.mailbox import Mailbox
from clew.cli.prompting import Keyboard
from clew.cli.questions import Meaning, Questions, shown
from clew.cli.talk import LOOK, Talk, answers_at_once, command_of
from clew.cli.telling import Teller
from clew.cli.terminal import one_line, outputs
from clew.cli.typed import TypedLines, read_pending
from clew.core.escapes import make_visible
from clew.core.events import Delta, EntryAppended, InputCompleted
from clew.distribution import VERSION
from clew.engine.slash import ChatCommandReply, is_command
from clew.errors import ClewError
from clew.runtime import open_application

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable
    from concurrent.futures import Future

    from anyio.from_thread import BlockingPortal

    from clew.cli.questions import Answer
    from clew.cli.talk import Following, Told
    from clew.cli.terminal import Output
    from clew.cli.typed import TypedLine
    from clew.config import Settings
    from clew.core.approval import Approval
    from clew.core.ids import ApprovalId
    from clew.core.inbox import AcceptResult

Ts = TypeVarTuple("Ts")

LEAVE: Final = frozenset({"/exit", "/quit"})
#: The key of letters about questions: they belong to the conversation, not to an input.
QUESTIONS: Final = "questions"
_CONSENT: Final = frozenset({"approve", "deny"})
STOPPED: Final = 130


def run(settings: Settings, name: str) -> int:
    """Chat until the person leaves; the exit code."""
    out, notes = outputs()
    with logs_to_file(settings):
        keyboard = Keyboard(settings.home / "chat_history")
        return chat(settings, name, keyboard, out=out, notes=notes)


def chat(settings: Settings, name: str, keyboard: Keyboard, *, out: Output, notes: Output) -> int:
    """Chat with whoever sits at this keyboard and before these outputs."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal("asyncio"))
        product = stack.enter_context(
            portal.wrap_async_context_manager(
                open_application(settings, role="chat", own_only=True)
            )
        )
        mailbox = stack.enter_context(Mailbox[Letter]())
        desk = stack.enter_context(Desk(portal, Talk(product.engine, name), mailbox))
        notes.dim(f"clew {VERSION} · {settings.model.name} ({settings.model.chosen_by})")
        notes.dim(f"conversation {name} · Ctrl-C stops an answer, Ctrl-D leaves, /help tells more")
        return LineChat(desk, keyboard, out=out, notes=notes).run()


@dataclass(frozen=True, slots=True)
class Letter:
    """Something that happened to an input, or the reply to a command; an error if that failed."""

    key: str
    event: Told | ChatCommandReply | Asked | BaseException


@dataclass(frozen=True, slots=True)
class Asked:
    """All the tool calls that wait for the person now."""

    questions: tuple[Approval, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """An input or a command that is not answered yet."""

    #: What its letters are marked with.
    key: str
    #: ``None`` for a command.
    accepted: AcceptResult | None
    #: Said before its answer; "" where the text stands right above it.
    remark: str = ""


class Desk:
    """The engine as this thread calls it."""

    def __init__(self, portal: BlockingPortal, talk: Talk, mailbox: Mailbox[Letter]) -> None:
        self._portal, self._talk = portal, talk
        self._tasks: list[Future[None]] = []
        self._commands = 0
        self.mailbox = mailbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what is not answered; the store keeps it."""
        with suppress(ClewError):
            self._portal.call(self._talk.leave)
        for task in self._tasks:
            task.cancel()

    def submit(self, text: str) -> AcceptResult:
        """
        Hand a message in; what happens to it arrives as letters.

        :raises ClewError: if it was not accepted
        """
        accepted, following = self._portal.call(self._submit, text)
        self._start(self._pass_on, accepted.inbox_id, following)
        return accepted

    async def _submit(self, text: str) -> tuple[AcceptResult, Following]:
        accepted = await self._talk.submit(text)
        following = self._talk.follow(accepted)
        await self._talk.attach(accepted.conversation_id)
        return accepted, following

    def command(self, text: str) -> str:
        """Begin to carry out a chat command; the key of the letter that brings the reply."""
        self._commands += 1
        key = f"command {self._commands}"
        self._start(self._carry_out, key, text)
        return key

    async def _carry_out(self, key: str, text: str) -> None:
        try:
            reply = await self._talk.command(text)
            # It may have moved to another one.
            if (conversation := await self._talk.find()) is not None:
                await self._talk.attach(conversation)
        except ClewError as error:
            self.mailbox.put(Letter(key, error))
            return
        following = self._talk.follow(reply.accepted) if reply.accepted else None
        self.mailbox.put(Letter(key, reply))
        if following is not None and reply.accepted is not None:
            await self._pass_on(reply.accepted.inbox_id, following)

    def earlier(self) -> list[Waiting]:
        """What was not answered before; it is taken up, and letters tell of it."""
        found: list[Waiting] = []
        for accepted, text, following in self._portal.call(self._take_up):
            self._start(self._pass_on, accepted.inbox_id, following)
            remark = f"(still to be answered: “{one_line(text, 60)}”)"
            found.append(Waiting(key=accepted.inbox_id, accepted=accepted, remark=remark))
        return found

    async def _take_up(self) -> list[tuple[AcceptResult, str, Following]]:
        conversation = await self._talk.find()
        if conversation is None:
            return []
        earlier = await self._talk.earlier(conversation)
        following = [(one.accepted, one.text, self._talk.follow(one.accepted)) for one in earlier]
        await self._talk.attach(conversation)
        self._talk.attend(conversation)
        return following

    async def _pass_on(self, key: str, following: Following) -> None:
        try:
            async for event in following:
                self.mailbox.put(Letter(key, event))
        except ClewError as error:
            self.mailbox.put(Letter(key, error))
        finally:
            following.close()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Have letters tell of the calls that wait for the person while the block lasts."""
        task = self._portal.start_task_soon(self._watch)
        try:
            yield
        finally:
            task.cancel()

    async def _watch(self) -> None:
        told: tuple[Approval, ...] = ()
        while True:
            # A store that is away for a moment comes back.
            with suppress(ClewError):
                asked = tuple(await self._talk.questions())
                if asked != told:
                    told = asked
                    self.mailbox.put(Letter(QUESTIONS, Asked(asked)))
            await asyncio.sleep(LOOK)

    def answer(self, approval: ApprovalId, *, yes: bool) -> None:
        """:raises ClewError: if the question was answered already, or has expired"""
        self._portal.call(partial(self._talk.answer, approval, yes=yes))

    def interrupt(self, accepted: AcceptResult) -> None:
        """Ask that an input's answer stops; the end of it arrives as a letter."""
        self._start(self._talk.interrupt, accepted)

    def _start(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        task = self._portal.start_task_soon(work, *args)
        self._tasks = [*(one for one in self._tasks if not one.done()), task]


class LineChat:
    """One chat: asks for lines, shows answers in the order of the inputs."""

    def __init__(self, desk: Desk, keyboard: Keyboard, *, out: Output, notes: Output) -> None:
        self._desk, self._keyboard, self._out, self._notes = desk, keyboard, out, notes
        self._waiting: deque[Waiting] = deque()
        self._letters: dict[str, list[Told | ChatCommandReply | Asked | BaseException]] = {}
        #: Keys of commands whose replies are shown as soon as they come.
        self._asides: set[str] = set()
        #: Presses of Ctrl-C that nothing has answered to.
        self._pressed = 0
        self._leaving = False
        self._typed = TypedLines(sys.stdin.encoding or "utf-8")
        self._questions = Questions()
        #: What the next prompt begins with.
        self._begun = ""

    def run(self) -> int:
        """Chat until the person leaves; the exit code."""
        with self._interruptible():
            self._waiting.extend(self._desk.earlier())
            while True:
                if self._waiting and not self._attend():
                    return 0 if self._leaving else STOPPED
                if self._leaving or not self._ask():
                    return 0

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        def pressed(_number: int, _frame: object) -> None:
            self._pressed += 1
            self._desk.mailbox.poke()

        def told(number: int, _frame: object) -> None:
            # Raised, so that the terminal is left as it was found.
            raise SystemExit(128 + number)

        handlers = {signal.SIGINT: pressed, signal.SIGTERM: told}
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
        try:
            yield
        finally:
            for number, each in before.items():
                signal.signal(number, each)

    def _ask(self) -> bool:
        """Ask for a message and hand it in; ``False`` to leave."""
        begun, self._begun = self._begun, ""
        self._out.end_line()
        try:
            text = self._keyboard.ask("> ", begun=begun)
        except KeyboardInterrupt:
            print()
            if self._pressed:
                return False
            self._pressed = 1
            self._notes.dim("(Ctrl-C once more, or Ctrl-D, leaves)")
            return True
        self._pressed = 0
        if text is None:
            print()
            return False
        self._hand_in(text, typed_ahead=False)
        return not self._leaving

    def _hand_in(self, text: str, *, typed_ahead: bool) -> None:
        remark = f"> {text}" if typed_ahead else ""
        if text.strip() in LEAVE:
            self._leaving = True
        elif is_command(text):
            self._command(text, remark)
        elif text.strip():
            self._submit(text, remark)

    def _command(self, text: str, remark: str) -> None:
        if command_of(text) in _CONSENT:
            self._refuse_blind_consent()
            return
        key = self._desk.command(text)
        if self._waiting and answers_at_once(text):
            self._asides.add(key)
        else:
            self._waiting.append(Waiting(key=key, accepted=None, remark=remark))

    def _refuse_blind_consent(self) -> None:
        """Show first what would be answered: nobody agrees to what was not shown here."""
        if not self._waiting:
            self._waiting.extend(self._desk.earlier())
        self._out.end_line()
        if self._waiting:
            self._notes.dim("(no question was shown here yet, so nothing was allowed or refused)")
        else:
            self._notes.dim("(nothing waits for an answer)")

    def _submit(self, text: str, remark: str) -> None:
        try:
            accepted = self._desk.submit(text)
        except ClewError as error:
            self._complain(error)
            self._begun = text
        else:
            self._waiting.append(Waiting(key=accepted.inbox_id, accepted=accepted, remark=remark))

    def _complain(self, error: ClewError) -> None:
        self._out.end_line()
        self._notes.write(f"clew: {error}\n")

    def _attend(self) -> bool:
        """Show answers until nothing waits; ``False`` if the person would not wait any longer."""
        with self._keyboard.typing_ahead() as keyboard, self._desk.watching():
            while self._waiting:
                if not self._show(self._waiting[0], keyboard):
                    return False
                self._waiting.popleft()
                if self._waiting:
                    self._pressed = 0
        self._begun = self._begun or self._typed.take_rest()
        return True

    def _show(self, waiting: Waiting, keyboard: int | None) -> bool:
        teller = Teller(self._out, self._notes)
        if waiting.remark:
            self._notes.dim(waiting.remark)
        heard = 0
        while True:
            for event in self._letters.pop(waiting.key, ()):
                if self._tell(event, teller):
                    return True
            if self._pressed > heard:
                if heard:
                    return False
                heard = self._pressed
                self._interrupt(waiting)
            if self._leaving and self._questions.open:
                self._notes.dim("(the question stays open: clew chat shows it again)")
                return False
            self._wait(keyboard)

    def _tell(self, event: Told | ChatCommandReply | Asked | BaseException, teller: Teller) -> bool:
        """Show a letter; whether it is the last one."""
        match event:
            case Asked():
                return False  # shown where it is read
            case ChatCommandReply():
                self._reply(event)
                return True
            case ClewError():
                self._complain(event)
                return True
            case BaseException():
                raise event
            case _:
                teller.tell(event)
                if isinstance(event, (Delta, EntryAppended, InputCompleted)):
                    self._questions.something_shown()
                return isinstance(event, InputCompleted)

    def _reply(self, reply: ChatCommandReply) -> None:
        if reply.text:
            self._out.end_line()
            self._out.write(reply.text.rstrip("\n") + "\n")
        if reply.accepted is not None:
            key = reply.accepted.inbox_id
            self._waiting.insert(1, Waiting(key=key, accepted=reply.accepted))

    def _interrupt(self, waiting: Waiting) -> None:
        self._out.end_line()
        self._notes.dim("(stopping; Ctrl-C once more leaves)")
        if waiting.accepted is not None:
            self._desk.interrupt(waiting.accepted)

    def _wait(self, keyboard: int | None) -> None:
        if self._desk.mailbox.wait(None if self._leaving else keyboard) and keyboard is not None:
            self._read(keyboard)
        for letter in self._desk.mailbox.take():
            if isinstance(letter.event, Asked):
                self._take_questions(letter.event, keyboard)
            elif letter.key in self._asides:
                self._asides.discard(letter.key)
                self._tell(letter.event, Teller(self._out, self._notes))
            else:
                self._letters.setdefault(letter.key, []).append(letter.event)
        if self._questions.is_to_be_shown():
            self._show_questions(keyboard)

    def _take_questions(self, asked: Asked, keyboard: int | None) -> None:
        self._drain(keyboard)  # typed before anything was asked: messages
        before = [one.id for one in self._questions.open]
        self._questions.update(asked.questions)
        if before and not self._questions.open and asked.questions == ():
            self._out.end_line()
            self._notes.dim("(the question is closed)")

    def _show_questions(self, keyboard: int | None) -> None:
        """Show all that would run; only what is typed from then on may answer it."""
        self._drain(keyboard)
        while self._questions.is_to_be_shown():
            asked = tuple(self._questions.open)
            *listed, invitation = shown(asked)
            self._out.end_line()
            self._notes.write("".join(f"{line}\n" for line in listed))
            self._drain(keyboard)
            if tuple(self._questions.open) != asked:
                continue  # one was answered meanwhile: the rest is shown anew
            self._typed.mark()
            self._questions.arm()
            # Last, so that an answer to it is never taken for one that was typed before.
            self._notes.write(f"{invitation}\n")

    def _drain(self, keyboard: int | None) -> None:
        """Take in what was typed until now."""
        if keyboard is not None:
            self._take_lines(self._typed.feed(read_pending(keyboard)))

    def _read(self, keyboard: int) -> None:
        try:
            data = os.read(keyboard, 65536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._leaving = True
        self._take_lines(self._typed.feed(data))

    def _take_lines(self, lines: Iterable[TypedLine]) -> None:
        for line in lines:
            answer = self._questions.read(line)
            match answer.meaning:
                case Meaning.ANSWER:
                    self._answer(answer)
                case Meaning.STRAY:
                    self._notes.dim(
                        f"(“{line.text.strip()}” answers nothing: no question was shown before it "
                        "was typed)"
                    )
                case Meaning.MESSAGE:
                    self._hand_in(line.text, typed_ahead=True)
                    self._say_that_it_waits(line)

    def _say_that_it_waits(self, line: TypedLine) -> None:
        if self._questions.is_armed() and line.text.strip() and not is_command(line.text):
            self._notes.dim(
                "(sent as a message, which comes after this; it allows nothing: the question still "
                "waits for y or n)"
            )

    def _answer(self, answer: Answer) -> None:
        for question in answer.questions:
            try:
                self._desk.answer(question.id, yes=answer.yes)
            except ClewError as error:
                self._complain(error)
            else:
                name = make_visible(question.tool)
                self._notes.dim(
                    f"(allowed: {name})" if answer.yes else f"✗ {name} is refused and does not run"
                )
