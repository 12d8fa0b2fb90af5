"""
``clew chat`` on a terminal: the line-by-line chat.

The engine runs in a thread of its own, this one handles the terminal. Messages typed during
an answer are submitted at once and queued in the conversation, so they survive this
process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeVarTuple

from anyio.from_thread import start_blocking_portal

from clew.cli.approval_prompt import ApprovalPrompt, LineMeaning, format_prompts
from clew.cli.chat_client import POLL_INTERVAL, ChatClient, open_client
from clew.cli.event_printer import EventPrinter
from clew.cli.line_editor import LineEditor
from clew.cli.logs import logs_to_file
from clew.cli.output import get_outputs, to_single_line
from clew.cli.selectable_queue import SelectableQueue
from clew.cli.typeahead import TypeaheadParser, read_pending
from clew.commands.registry import ChatCommandReply
from clew.core.command_text import is_command
from clew.core.escapes import make_visible
from clew.core.events import Delta, EntryAppended, InputCompleted
from clew.distribution import VERSION
from clew.errors import ClewError
from clew.record import Record
from clew.runtime import open_application

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable
    from concurrent.futures import Future

    from anyio.from_thread import BlockingPortal

    from clew.cli.approval_prompt import InterpretedLine
    from clew.cli.chat_client import InputEvent, InputEventStream
    from clew.cli.output import Output
    from clew.cli.typeahead import TypedLine
    from clew.commands.registry import ChatCommand
    from clew.config import Settings
    from clew.core.approval import Approval
    from clew.core.ids import ApprovalId
    from clew.core.inbox import AcceptResult

Ts = TypeVarTuple("Ts")

EXIT_COMMANDS: Final = frozenset({"/exit", "/quit"})
#: The key of approval events: they belong to the conversation, not to an input.
APPROVALS_KEY: Final = "questions"
_APPROVAL_COMMANDS: Final = frozenset({"approve", "deny"})
EXIT_INTERRUPTED: Final = 130


def run_line_chat(settings: Settings, name: str) -> int:
    """Chat until the user exits, and return the exit code."""
    out, notes = get_outputs()
    with logs_to_file(settings):
        keyboard = LineEditor(settings.home / "chat_history")
        return chat_with_editor(settings, name, keyboard, out=out, notes=notes)


def chat_with_editor(
    settings: Settings, name: str, keyboard: LineEditor, *, out: Output, notes: Output
) -> int:
    """Chat through this line editor and these outputs, and return the exit code."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal("asyncio"))
        product = stack.enter_context(
            portal.wrap_async_context_manager(
                open_application(settings, role="chat", own_only=True)
            )
        )
        mailbox = stack.enter_context(SelectableQueue[ChatEvent]())
        client = portal.call(open_client, product, name, notes)
        desk = stack.enter_context(EnginePortal(portal, client, mailbox))
        notes.print_dim(f"clew {VERSION} · {settings.model.name} ({settings.model.chosen_by})")
        notes.print_dim(
            f"conversation {name} · Ctrl-C stops an answer, Ctrl-D leaves, /help tells more"
        )
        return LineChat(desk, keyboard, out=out, notes=notes).run()


class ChatEvent(Record, kw_only=False):
    """Event of an input, or the reply to a command; an exception if that failed."""

    key: str
    event: InputEvent | ChatCommandReply | OpenApprovals | BaseException


class OpenApprovals(Record, kw_only=False):
    """All tool calls that wait for approval now."""

    approvals: tuple[Approval, ...]


class PendingReply(Record):
    """An input or a command that is not answered yet."""

    #: The key of its events.
    key: str
    #: ``None`` for a command.
    accepted: AcceptResult | None
    #: Printed before its answer; "" if the text is right above it.
    remark: str = ""


class EnginePortal:
    """Thread-safe access to the engine for the terminal thread."""

    def __init__(
        self, portal: BlockingPortal, talk: ChatClient, mailbox: SelectableQueue[ChatEvent]
    ) -> None:
        self._portal, self._talk = portal, talk
        self._tasks: list[Future[None]] = []
        self._commands = 0
        self.events = mailbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Abandon unanswered inputs; the store keeps them."""
        with suppress(ClewError):
            self._portal.call(self._talk.detach)
        for task in self._tasks:
            task.cancel()

    def submit_message(self, text: str) -> AcceptResult:
        """
        Submit a message; its events arrive in the queue.

        :raises ClewError: if it was not accepted
        """
        accepted, following = self._portal.call(self._submit_and_follow, text)
        self._start_task(self._forward_events, accepted.inbox_id, following)
        return accepted

    async def _submit_and_follow(self, text: str) -> tuple[AcceptResult, InputEventStream]:
        accepted = await self._talk.submit_message(text)
        following = self._talk.follow_input(accepted)
        await self._talk.attach_to(accepted.conversation_id)
        return accepted, following

    def find_command(self, text: str) -> ChatCommand | None:
        """Return the chat command in a text; ``None`` for an unknown one."""
        return self._talk.find_command(text)

    def start_command(self, text: str) -> str:
        """Start a chat command, and return the key of the event that brings its reply."""
        self._commands += 1
        key = f"command {self._commands}"
        self._start_task(self._run_command, key, text)
        return key

    async def _run_command(self, key: str, text: str) -> None:
        try:
            reply = await self._talk.run_command(text)
            # The command may have switched the conversation.
            if (conversation := await self._talk.find_conversation()) is not None:
                await self._talk.attach_to(conversation)
        except ClewError as error:
            self.events.put(ChatEvent(key, error))
            return
        following = self._talk.follow_input(reply.accepted) if reply.accepted else None
        self.events.put(ChatEvent(key, reply))
        if following is not None and reply.accepted is not None:
            await self._forward_events(reply.accepted.inbox_id, following)

    def follow_pending_inputs(self) -> list[PendingReply]:
        """Return the inputs that are still unanswered; their events arrive in the queue."""
        found: list[PendingReply] = []
        for accepted, text, following in self._portal.call(self._find_pending_inputs):
            self._start_task(self._forward_events, accepted.inbox_id, following)
            remark = f"(not answered yet: “{to_single_line(text, 60)}”)"
            found.append(PendingReply(key=accepted.inbox_id, accepted=accepted, remark=remark))
        return found

    async def _find_pending_inputs(self) -> list[tuple[AcceptResult, str, InputEventStream]]:
        conversation = await self._talk.find_conversation()
        if conversation is None:
            return []
        earlier = await self._talk.list_pending_inputs(conversation)
        following = [
            (one.accepted, one.text, self._talk.follow_input(one.accepted)) for one in earlier
        ]
        await self._talk.attach_to(conversation)
        self._talk.wake_conversation(conversation)
        return following

    async def _forward_events(self, key: str, following: InputEventStream) -> None:
        try:
            async for event in following:
                self.events.put(ChatEvent(key, event))
        except ClewError as error:
            self.events.put(ChatEvent(key, error))
        finally:
            following.close()

    @contextmanager
    def watch_approvals(self) -> Generator[None]:
        """Queue an event for each change of the open approvals while the block lasts."""
        task = self._portal.start_task_soon(self._poll_approvals)
        try:
            yield
        finally:
            task.cancel()

    async def _poll_approvals(self) -> None:
        told: tuple[Approval, ...] = ()
        while True:
            # The store may be unavailable for a moment.
            with suppress(ClewError):
                asked = tuple(await self._talk.list_open_approvals())
                if asked != told:
                    told = asked
                    self.events.put(ChatEvent(APPROVALS_KEY, OpenApprovals(asked)))
            await asyncio.sleep(POLL_INTERVAL)

    def answer_approval(self, approval: ApprovalId, answer: InterpretedLine) -> None:
        """
        Allow or refuse a tool call.

        :raises ClewError: if the approval was already answered, or has expired
        """
        self._portal.call(
            partial(
                self._talk.answer_approval,
                approval,
                yes=answer.yes,
                keep=answer.keep,
                note=answer.note,
            )
        )

    def interrupt_input(self, accepted: AcceptResult) -> None:
        """Stop the answer to an input; its end arrives as an event."""
        self._start_task(self._talk.interrupt_input, accepted)

    def _start_task(self, work: Callable[[*Ts], Awaitable[None]], *args: *Ts) -> None:
        task = self._portal.start_task_soon(work, *args)
        self._tasks = [*(one for one in self._tasks if not one.done()), task]


class LineChat:
    """A line-by-line chat that prints answers in the order of the inputs."""

    def __init__(
        self, desk: EnginePortal, keyboard: LineEditor, *, out: Output, notes: Output
    ) -> None:
        self._engine, self._keyboard, self._out, self._notes = desk, keyboard, out, notes
        self._pending: deque[PendingReply] = deque()
        self._unread_events: dict[
            str, list[InputEvent | ChatCommandReply | OpenApprovals | BaseException]
        ] = {}
        #: Keys of commands whose replies are printed as soon as they arrive.
        self._immediate_commands: set[str] = set()
        #: Presses of Ctrl-C without a reaction yet.
        self._pressed = 0
        self._leaving = False
        self._typed = TypeaheadParser(sys.stdin.encoding or "utf-8")
        self._approvals = ApprovalPrompt()
        #: The initial text of the next prompt.
        self._initial_text = ""

    def run(self) -> int:
        """Chat until the user exits, and return the exit code."""
        with self._handle_signals():
            self._pending.extend(self._engine.follow_pending_inputs())
            while True:
                if self._pending and not self._print_answers():
                    return 0 if self._leaving else EXIT_INTERRUPTED
                if self._leaving or not self._prompt_message():
                    return 0

    @contextmanager
    def _handle_signals(self) -> Generator[None]:
        def on_sigint(_number: int, _frame: object) -> None:
            self._pressed += 1
            self._engine.events.wake()

        def on_sigterm(number: int, _frame: object) -> None:
            # Raised, so that the terminal mode is restored.
            raise SystemExit(128 + number)

        handlers = {signal.SIGINT: on_sigint, signal.SIGTERM: on_sigterm}
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
        try:
            yield
        finally:
            for number, each in before.items():
                signal.signal(number, each)

    def _prompt_message(self) -> bool:
        """Prompt for a message and submit it; return ``False`` to exit."""
        begun, self._initial_text = self._initial_text, ""
        self._out.end_line()
        try:
            text = self._keyboard.read_message("> ", begun=begun)
        except KeyboardInterrupt:
            print()
            if self._pressed:
                return False
            self._pressed = 1
            self._notes.print_dim("(Ctrl-C once more, or Ctrl-D, leaves)")
            return True
        self._pressed = 0
        if text is None:
            print()
            return False
        self._handle_input(text, typed_ahead=False)
        return not self._leaving

    def _handle_input(self, text: str, *, typed_ahead: bool) -> None:
        remark = f"> {text}" if typed_ahead else ""
        if text.strip() in EXIT_COMMANDS:
            self._leaving = True
        elif is_command(text):
            self._start_command(text, remark)
        elif text.strip():
            self._submit_message(text, remark)

    def _start_command(self, text: str, remark: str) -> None:
        command = self._engine.find_command(text)
        if command is not None and command.name in _APPROVAL_COMMANDS:
            self._reject_unseen_approval()
            return
        key = self._engine.start_command(text)
        # An unknown command is answered at once, too.
        if self._pending and (command is None or command.control):
            self._immediate_commands.add(key)
        else:
            self._pending.append(PendingReply(key=key, accepted=None, remark=remark))

    def _reject_unseen_approval(self) -> None:
        """Reject an approval that was not shown here, and show the pending ones first."""
        if not self._pending:
            self._pending.extend(self._engine.follow_pending_inputs())
        self._out.end_line()
        if self._pending:
            self._notes.print_dim(
                "(no question was shown here yet, so nothing was allowed or refused)"
            )
        else:
            self._notes.print_dim("(nothing waits for an answer)")

    def _submit_message(self, text: str, remark: str) -> None:
        try:
            accepted = self._engine.submit_message(text)
        except ClewError as error:
            self._print_error(error)
            self._initial_text = text
        else:
            self._pending.append(
                PendingReply(key=accepted.inbox_id, accepted=accepted, remark=remark)
            )

    def _print_error(self, error: ClewError) -> None:
        self._out.end_line()
        self._notes.write(f"clew: {error}\n")

    def _print_answers(self) -> bool:
        """Print answers until none is pending; return ``False`` if the user stops waiting."""
        with self._keyboard.enable_typeahead() as keyboard, self._engine.watch_approvals():
            while self._pending:
                if not self._print_answer(self._pending[0], keyboard):
                    return False
                self._pending.popleft()
                if self._pending:
                    self._pressed = 0
        self._initial_text = self._initial_text or self._typed.take_unfinished()
        return True

    def _print_answer(self, waiting: PendingReply, keyboard: int | None) -> bool:
        teller = EventPrinter(self._out, self._notes)
        if waiting.remark:
            self._notes.print_dim(waiting.remark)
        heard = 0
        while True:
            for event in self._unread_events.pop(waiting.key, ()):
                if self._print_event(event, teller):
                    return True
            if self._pressed > heard:
                if heard:
                    return False
                heard = self._pressed
                self._interrupt_input(waiting)
            if self._leaving and self._approvals.open:
                self._notes.print_dim("(the question stays open: clew chat shows it again)")
                return False
            self._wait_for_events(keyboard)

    def _print_event(
        self,
        event: InputEvent | ChatCommandReply | OpenApprovals | BaseException,
        teller: EventPrinter,
    ) -> bool:
        """Print an event; return ``True`` if it is the last one of its input."""
        match event:
            case OpenApprovals():
                return False  # printed when it is received
            case ChatCommandReply():
                self._print_reply(event)
                return True
            case ClewError():
                self._print_error(event)
                return True
            case BaseException():
                raise event
            case _:
                teller.print_event(event)
                if isinstance(event, (Delta, EntryAppended, InputCompleted)):
                    self._approvals.note_output()
                return isinstance(event, InputCompleted)

    def _print_reply(self, reply: ChatCommandReply) -> None:
        if reply.text:
            self._out.end_line()
            self._out.write_reply(reply.text)
        if reply.accepted is not None:
            key = reply.accepted.inbox_id
            self._pending.insert(1, PendingReply(key=key, accepted=reply.accepted))

    def _interrupt_input(self, waiting: PendingReply) -> None:
        self._out.end_line()
        self._notes.print_dim("(stopping; Ctrl-C once more leaves)")
        if waiting.accepted is not None:
            self._engine.interrupt_input(waiting.accepted)

    def _wait_for_events(self, keyboard: int | None) -> None:
        if self._engine.events.wait(None if self._leaving else keyboard) and keyboard is not None:
            self._read_keyboard(keyboard)
        for letter in self._engine.events.take_all():
            if isinstance(letter.event, OpenApprovals):
                self._update_approvals(letter.event, keyboard)
            elif letter.key in self._immediate_commands:
                self._immediate_commands.discard(letter.key)
                self._print_event(letter.event, EventPrinter(self._out, self._notes))
            else:
                self._unread_events.setdefault(letter.key, []).append(letter.event)
        if self._approvals.needs_display():
            self._show_approvals(keyboard)

    def _update_approvals(self, asked: OpenApprovals, keyboard: int | None) -> None:
        self._drain_keyboard(keyboard)  # typed before the question was shown: messages
        before = [one.id for one in self._approvals.open]
        self._approvals.update(asked.approvals)
        if before and not self._approvals.open and asked.approvals == ():
            self._out.end_line()
            self._notes.print_dim("(the question is closed)")

    def _show_approvals(self, keyboard: int | None) -> None:
        """Show every open approval; only lines typed after that can answer them."""
        self._drain_keyboard(keyboard)
        while self._approvals.needs_display():
            asked = tuple(self._approvals.open)
            *listed, invitation = format_prompts(asked)
            self._out.end_line()
            self._notes.write("".join(f"{line}\n" for line in listed))
            self._drain_keyboard(keyboard)
            if tuple(self._approvals.open) != asked:
                continue  # one was answered meanwhile: show the rest again
            self._typed.mark_boundary()
            self._approvals.arm_answers()
            # Last, so that an answer to it never counts as typed before it.
            self._notes.write(f"{invitation}\n")

    def _drain_keyboard(self, keyboard: int | None) -> None:
        """Read everything typed so far."""
        if keyboard is not None:
            self._handle_lines(self._typed.feed_bytes(read_pending(keyboard)))

    def _read_keyboard(self, keyboard: int) -> None:
        try:
            data = os.read(keyboard, 65536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._leaving = True
        self._handle_lines(self._typed.feed_bytes(data))

    def _handle_lines(self, lines: Iterable[TypedLine]) -> None:
        for line in lines:
            answer = self._approvals.interpret_line(line)
            match answer.meaning:
                case LineMeaning.ANSWER:
                    self._answer_approvals(answer)
                case LineMeaning.STRAY:
                    self._notes.print_dim(
                        f"(“{line.text.strip()}” answers nothing: no question was shown before it "
                        "was typed)"
                    )
                case LineMeaning.MESSAGE:
                    self._handle_input(line.text, typed_ahead=True)
                    self._note_open_approval(line)

    def _note_open_approval(self, line: TypedLine) -> None:
        if self._approvals.is_armed() and line.text.strip() and not is_command(line.text):
            self._notes.print_dim(
                "(sent as a message, which comes after this; it allows nothing: the question still "
                "waits for y or n)"
            )

    def _answer_approvals(self, answer: InterpretedLine) -> None:
        for question in answer.approvals:
            try:
                self._engine.answer_approval(question.id, answer)
            except ClewError as error:
                self._print_error(error)
            else:
                name = make_visible(question.tool)
                self._notes.print_dim(
                    f"(allowed: {name})" if answer.yes else f"✗ {name} is refused and does not run"
                )
