"""Calls of the tool ``process``: the model sees the processes of its own conversation only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.scope import LOCAL
from clew.core.tool_facts import CONFINED_LEVELS
from clew.errors import NotFound, UsageError
from clew.features.shell import front, processes, supervision
from clew.features.shell.commands import STOP_PATIENCE
from clew.features.shell.wording import format_result
from clew.plugin import get_turn_context
from clew.sandbox.changed_files import read_file_clock
from clew.store.transactions.grants import is_tainted

if TYPE_CHECKING:
    from clew.features.shell.processes import ShellProcess
    from clew.plugin import TurnContext
    from clew.store.contract import Tx

_BY_MODEL = "the agent"


def _get_context() -> TurnContext:
    context = get_turn_context()
    if context is None:
        raise UsageError("processes are looked at in turns only")
    return context


async def _find(context: TurnContext, name: str) -> ShellProcess:
    if not name:
        raise UsageError("id is missing: list shows them")
    return await context.services.store.read(
        front.find_process, name, viewer=LOCAL, conversation=context.conversation
    )


async def list_all() -> str:
    """Return the processes of the conversation."""
    context = _get_context()
    found = await context.services.store.read(
        processes.list_processes, viewer=LOCAL, conversation=context.conversation, limit=20
    )
    return "\n".join(map(front.format_process, found)) or "There are none."


async def read(name: str, *, start: int, length: int) -> str:
    """
    Return a part of the output of a process, and how it is.

    :raises ClewError: if there is none
    """
    context = _get_context()
    process = await _find(context, name)
    part = front.read_part(
        context.services, process, start=None if start < 0 else start, length=max(1, length)
    )
    place = f"bytes {part['start']:,} to {part['end']:,} of {part['size']:,}"
    return f"{part['text']}\n[{front.describe_state(process)}; {place}]"


async def send(name: str, text: str, *, end: bool) -> str:
    """
    Give a process input, once for each call.

    :raises ClewError: if it takes none
    """
    context = _get_context()
    process = await _find(context, name)
    key = context.call_key
    assert key is not None
    await context.services.store.write(_mark_input, process)
    front.send_input(context.services, process, key.name, text, end=end)
    return "Sent."


def _mark_input(t: Tx, process: ShellProcess) -> None:
    """Store what a process writes from now on as of strangers, if its conversation read them."""
    if process.state.is_open and is_tainted(t, process.conversation):
        processes.taint_process(t, process, at=read_file_clock())


async def stop(name: str) -> str:
    """
    Stop a process, and return its end: it is not told once more.

    :raises ClewError: if there is none
    """
    context = _get_context()
    process = await _find(context, name)
    services = context.services
    if process.state.is_open:
        await services.store.write(processes.set_background, process.id, on=False)
        process = await supervision.stop(services, process, f"stopped by {_BY_MODEL}")
        process = await supervision.wait_for_end(services, process, seconds=STOP_PATIENCE)
    if process.state.is_open:
        await services.store.write(processes.set_background, process.id, on=True)
        return f"[it is being stopped, as {process.id}: you will be told its end]"
    return format_result(process, process.tail or "")


async def find_level(name: str) -> str | None:
    """Return the sandbox level of a process; that of the turn if there is no such process."""
    context = _get_context()
    try:
        return (await _find(context, name)).level
    except (NotFound, UsageError):
        return context.sandbox_level


async def tells_foreign_text(name: str) -> bool:
    """Return whether the output of a process may hold text of strangers."""
    context = _get_context()
    try:
        process = await _find(context, name)
    except (NotFound, UsageError):
        return context.sandbox_level not in CONFINED_LEVELS
    return await supervision.tells_foreign_text(context.services, process)
