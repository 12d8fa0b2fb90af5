"""``clew chat TEXT``: one message, one answer."""

from __future__ import annotations

import asyncio
import io
import shlex
import signal
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from clew.cli import unattended
from clew.cli.chat_client import open_client
from clew.cli.common import print_json
from clew.cli.event_printer import EventPrinter, is_success
from clew.cli.logs import logs_to_file
from clew.cli.output import Output, get_outputs, to_single_line
from clew.cli.stdout_guard import reserve_stdout
from clew.config.settings import OFFLINE
from clew.core.command_text import is_command
from clew.core.events import InputCompleted
from clew.runtime import open_application

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, TextIO

    from clew.cli.chat_client import ChatClient, InputEventStream
    from clew.cli.unattended import ApprovalWatcher
    from clew.commands.registry import ChatCommandReply
    from clew.config import Settings
    from clew.core.inbox import AcceptResult
    from clew.runtime import Application

    WatcherFactory = Callable[[ChatClient, AcceptResult, Output], ApprovalWatcher]

T = TypeVar("T")

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


def run_once(
    settings: Settings,
    name: str,
    text: str,
    *,
    as_json: bool,
    command: str = "clew",
    patience: float = 60.0,
) -> int:
    """
    Submit one message, print the answer, and return the exit code.

    :param command: ``clew`` with the global options of this run, for the commands that it prints
    :raises ApprovalTimeout: if a tool call waited ``patience`` seconds for an approval
    """
    place = f"{command} chat -c {shlex.quote(name)}"

    def watch(talk: ChatClient, accepted: AcceptResult, notes: Output) -> ApprovalWatcher:
        return unattended.ApprovalWatcher(talk, accepted, notes, command=place, patience=patience)

    with logs_to_file(settings), reserve_stdout() as stdout:
        return asyncio.run(_run_async(settings, name, text, stdout, watch, as_json=as_json))


async def _run_async(
    settings: Settings,
    name: str,
    text: str,
    stdout: TextIO,
    watch: WatcherFactory,
    *,
    as_json: bool,
) -> int:
    out, notes = get_outputs(stdout)
    if settings.model.name == OFFLINE and "model.name" not in settings.origins:
        notes.print_dim(f"(the offline model answers: {settings.model.chosen_by})")
    async with open_application(settings, role="chat", own_only=True) as product:
        talk = await open_client(product, name, notes)
        if not is_command(text):
            accepted = await talk.submit_message(text)
        else:
            await unattended.require_named_approval(talk, text)
            reply = await talk.run_command(text)
            going_on = reply.accepted or await unattended.find_resumed_input(talk, text)
            if going_on is None:
                await _print_command_reply(product, reply, out, stdout if as_json else None)
                return 0
            notes.print_dim(reply.text)
            accepted = going_on
        answer = AnswerPrinter(
            talk,
            accepted,
            out=Output(io.StringIO()) if as_json else out,
            notes=notes,
            watch=watch(talk, accepted, notes),
        )
        end = await answer.print_until_end()
        if as_json and is_success(end):
            print_json(await _answer_json(product, end), stdout)
    if answer.interrupted:
        return EXIT_INTERRUPTED
    out.raise_if_closed()
    return 0 if is_success(end) else EXIT_FAILED


async def _print_command_reply(
    product: Application, reply: ChatCommandReply, out: Output, json_to: TextIO | None
) -> None:
    """Print the reply to a chat command."""
    if json_to is None:
        out.write_reply(reply.text)
        return
    session = None
    if reply.conversation is not None:
        session = (await product.engine.get_view(reply.conversation)).conversation.head
    print_json(
        {
            "conversation": reply.conversation,
            "session": session,
            "turn": None,
            "text": reply.text,
            "usage": asdict(await product.engine.requests.get_usage(None)),
        },
        json_to,
    )


async def _answer_json(product: Application, end: InputCompleted) -> dict[str, object]:
    used = await product.engine.requests.get_usage(end.turn)
    return {
        "conversation": end.conversation,
        "session": end.session,
        "turn": end.turn.id if end.turn else None,
        "text": end.text,
        "usage": asdict(used),
    }


class AnswerPrinter:
    """Printer of the answer to one input; Ctrl-C cancels the input or stops its turn."""

    def __init__(
        self,
        talk: ChatClient,
        accepted: AcceptResult,
        *,
        out: Output,
        notes: Output,
        watch: ApprovalWatcher,
    ) -> None:
        self._talk, self._accepted, self._watch = talk, accepted, watch
        self._out, self._notes = out, notes
        self.interrupted = False

    async def print_until_end(self) -> InputCompleted:
        """
        Print events until the input has ended, and return its end.

        Answers to inputs queued before it are printed as remarks. A second Ctrl-C exits at
        once and leaves the turn to the next process.

        :raises ApprovalTimeout: if a tool call waits too long for an approval
        """
        following = self._talk.follow_input(self._accepted)
        before = asyncio.create_task(self._print_earlier_answers(), name="before")
        watching = asyncio.create_task(self._watch.run(), name="watch")
        stopping: list[asyncio.Task[None]] = []
        me = asyncio.current_task()
        assert me is not None

        def interrupt_answer() -> None:
            if self.interrupted:
                me.cancel()
                return
            self.interrupted = True
            before.cancel()
            stopping.append(asyncio.create_task(self._talk.interrupt_input(self._accepted)))

        try:
            with on_interrupt(interrupt_answer):
                return await _run_unless_raised(watching, self._print_after(before, following))
        except asyncio.CancelledError:
            if self.interrupted:
                raise click.Abort from None
            raise
        finally:
            following.close()
            before.cancel()
            watching.cancel()
            if stopping:
                await asyncio.wait(stopping)

    async def _print_after(
        self, before: asyncio.Task[None], following: InputEventStream
    ) -> InputCompleted:
        await asyncio.wait([before])
        if not before.cancelled():
            before.result()
        return await print_events(following, EventPrinter(self._out, self._notes))

    async def _print_earlier_answers(self) -> None:
        conversation, mine = self._accepted.conversation_id, self._accepted.inbox_id
        for earlier in await self._talk.list_pending_inputs(conversation, before=mine):
            self._notes.print_dim(
                f"(first, not answered yet: “{to_single_line(earlier.text, 60)}”)"
            )
            following = self._talk.follow_input(earlier.accepted)
            try:
                await print_events(following, EventPrinter(self._notes, self._notes))
            finally:
                following.close()


async def _run_unless_raised(watching: asyncio.Task[None], work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to its end unless the watching task raises first."""
    task = asyncio.create_task(work, name="answer")
    try:
        await asyncio.wait({task, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watching.result()
        return await task
    finally:
        task.cancel()


async def print_events(following: InputEventStream, teller: EventPrinter) -> InputCompleted:
    """Print every event of an input up to its end, and return the end."""
    async for event in following:
        teller.print_event(event)
        if isinstance(event, InputCompleted):
            return event
    raise AssertionError("the last event of an input is its end")


@contextmanager
def on_interrupt(callback: Callable[[], None]) -> Generator[None]:
    """Call ``callback`` in the running loop on Ctrl-C instead of ending the program."""
    loop = asyncio.get_running_loop()
    before = signal.signal(
        signal.SIGINT, lambda _number, _frame: loop.call_soon_threadsafe(callback)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
