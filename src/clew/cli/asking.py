"""One question, one answer: ``clew chat TEXT``."""

from __future__ import annotations

import asyncio
import io
import signal
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from clew.cli import unattended
from clew.cli.apart import stdout_apart
from clew.cli.common import print_json
from clew.cli.logs import logs_to_file
from clew.cli.talk import Talk
from clew.cli.telling import Teller, succeeded
from clew.cli.terminal import Output, one_line, outputs
from clew.config.settings import OFFLINE
from clew.core.events import InputCompleted
from clew.engine.slash import is_command
from clew.runtime import open_application

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, TextIO

    from clew.cli.talk import Following
    from clew.cli.unattended import Watch
    from clew.config import Settings
    from clew.core.inbox import AcceptResult
    from clew.engine.slash import ChatCommandReply
    from clew.runtime import Application

T = TypeVar("T")

FAILED, STOPPED = 1, 130


def ask(settings: Settings, name: str, text: str, *, as_json: bool, patience: float = 60.0) -> int:
    """
    Have one message answered, print the answer, and return the exit code.

    :raises ApprovalMissing: if a tool call waited ``patience`` seconds for somebody to allow it
    """
    with logs_to_file(settings), stdout_apart() as stdout:
        return asyncio.run(_ask(settings, name, text, stdout, as_json=as_json, patience=patience))


async def _ask(
    settings: Settings, name: str, text: str, stdout: TextIO, *, as_json: bool, patience: float
) -> int:
    out, notes = outputs(stdout)
    if settings.model.name == OFFLINE and "model.name" not in settings.origins:
        notes.dim(f"(the offline model answers: {settings.model.chosen_by})")
    async with open_application(settings, role="chat", own_only=True) as product:
        talk = Talk(product.engine, name)
        if not is_command(text):
            accepted = await talk.submit(text)
        else:
            await unattended.refuse_blind_consent(talk, text)
            reply = await talk.command(text)
            going_on = reply.accepted or await unattended.released(talk, text)
            if going_on is None:
                await _told_reply(product, reply, out, stdout if as_json else None)
                return 0
            notes.dim(reply.text)
            accepted = going_on
        answer = Answer(
            talk,
            accepted,
            out=Output(io.StringIO()) if as_json else out,
            notes=notes,
            watch=unattended.Watch(talk, accepted, notes, name=name, patience=patience),
        )
        end = await answer.awaited()
        if as_json and succeeded(end):
            print_json(await _as_json(product, end), stdout)
    if answer.interrupted:
        return STOPPED
    out.check()
    return 0 if succeeded(end) else FAILED


async def _told_reply(
    product: Application, reply: ChatCommandReply, out: Output, json_to: TextIO | None
) -> None:
    """Print what a command answered."""
    if json_to is None:
        out.write(reply.text.rstrip("\n") + "\n")
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


async def _as_json(product: Application, end: InputCompleted) -> dict[str, object]:
    used = await product.engine.requests.get_usage(end.turn)
    return {
        "conversation": end.conversation,
        "session": end.session,
        "turn": end.turn.id if end.turn else None,
        "text": end.text,
        "usage": asdict(used),
    }


class Answer:
    """Waits for the answer to one input, and prints it; Ctrl-C takes the input back or stops it."""

    def __init__(
        self, talk: Talk, accepted: AcceptResult, *, out: Output, notes: Output, watch: Watch
    ) -> None:
        self._talk, self._accepted, self._watch = talk, accepted, watch
        self._out, self._notes = out, notes
        self.interrupted = False

    async def awaited(self) -> InputCompleted:
        """
        Print until the input has ended.

        What stands before it is told as remarks: the person is owed that too. A second Ctrl-C
        leaves at once, and the turn to the next process.

        :raises ApprovalMissing: if a tool call waits for a person for too long
        """
        following = self._talk.follow(self._accepted)
        before = asyncio.create_task(self._before(), name="before")
        watching = asyncio.create_task(self._watch.run(), name="watch")
        stopping: list[asyncio.Task[None]] = []
        me = asyncio.current_task()
        assert me is not None

        def interrupt() -> None:
            if self.interrupted:
                me.cancel()
                return
            self.interrupted = True
            before.cancel()
            stopping.append(asyncio.create_task(self._talk.interrupt(self._accepted)))

        try:
            with on_interrupt(interrupt):
                return await _unless(watching, self._told_after(before, following))
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

    async def _told_after(self, before: asyncio.Task[None], following: Following) -> InputCompleted:
        await asyncio.wait([before])
        if not before.cancelled():
            before.result()
        return await told(following, Teller(self._out, self._notes))

    async def _before(self) -> None:
        conversation, mine = self._accepted.conversation_id, self._accepted.inbox_id
        for earlier in await self._talk.earlier(conversation, before=mine):
            self._notes.dim(f"(first, still to be answered: “{one_line(earlier.text, 60)}”)")
            following = self._talk.follow(earlier.accepted)
            try:
                await told(following, Teller(self._notes, self._notes))
            finally:
                following.close()


async def _unless(watching: asyncio.Task[None], work: Coroutine[Any, Any, T]) -> T:
    """Do work to its end, unless the one who watches raises first."""
    task = asyncio.create_task(work, name="answer")
    try:
        await asyncio.wait({task, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watching.result()
        return await task
    finally:
        task.cancel()


async def told(following: Following, teller: Teller) -> InputCompleted:
    """Tell everything about an input until its end, and return that."""
    async for event in following:
        teller.tell(event)
        if isinstance(event, InputCompleted):
            return event
    raise AssertionError("the last event of an input is its end")


@contextmanager
def on_interrupt(callback: Callable[[], None]) -> Generator[None]:
    """Have Ctrl-C call ``callback`` in the running loop, instead of ending the program."""
    loop = asyncio.get_running_loop()
    before = signal.signal(
        signal.SIGINT, lambda _number, _frame: loop.call_soon_threadsafe(callback)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
