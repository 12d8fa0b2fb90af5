"""Use cases of processes, for people, programs and the model on every front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.agent.known_secrets import redact_secrets
from clew.clock import from_millis
from clew.errors import NotFound, UsageError
from clew.features.shell import processes, supervision
from clew.features.shell.wording import describe_end, shorten_command

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.features.shell.processes import ShellProcess
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

#: Bytes of output of one answer.
MOST_BYTES = 64 * 1024


def find_process(
    t: Tx, name: str, *, viewer: Scope, conversation: ConversationId | None = None
) -> ShellProcess:
    """
    Return the process with an id, or with the first characters of one.

    :raises NotFound: if there is none that may be seen
    """
    found = processes.list_processes(t, viewer=viewer, conversation=conversation, limit=1000)
    for process in found:
        if name and process.id.startswith((name, f"prc_{name}")):
            return process
    raise NotFound("process", name)


def describe_state(process: ShellProcess) -> str:
    """Return the state of a process in words."""
    if process.state.is_open:
        if process.stop_reason is not None:
            return "is being stopped"
        return f"running on {supervision.get_host(process)}"
    return describe_end(process)


def describe_process(process: ShellProcess) -> dict[str, Any]:
    """Return a process as programs get it."""
    return {
        "id": process.id,
        "command": redact_secrets(process.command),
        "conversation": process.conversation,
        "turn": process.turn,
        "scope": process.scope,
        "host": supervision.get_host(process),
        "level": process.level,
        "state": process.state.value,
        "ending": None if process.state.is_open else describe_end(process),
        "exit_code": process.exit_code,
        "signal": process.signal,
        "background": process.background,
        "size": process.size,
        "tail": process.tail,
        "created_at": from_millis(process.created_at).isoformat(),
        "ended_at": None if process.ended_at is None else from_millis(process.ended_at).isoformat(),
    }


def format_process(process: ShellProcess) -> str:
    """Return a process in a line."""
    command = redact_secrets(shorten_command(process.command))
    began = f"{from_millis(process.created_at):%Y-%m-%d %H:%M} UTC"
    return f"{process.id}  {command}: {describe_state(process)}, began {began}"


def read_part(
    context: FeatureContext, process: ShellProcess, *, start: int | None, length: int
) -> dict[str, Any]:
    """
    Return a part of the output as programs get it: from a position on, or its end.

    :raises UsageError: if it is on another machine, or removed
    """
    folder = supervision.find_folder(context.settings, process.id)
    if not folder.path.exists():
        if process.pruned_at is not None:
            raise UsageError("its output was removed: it is kept for 7 days")
        raise UsageError(f"its output is on {supervision.get_host(process)}")
    part = folder.read_range(start, min(length, MOST_BYTES), margin=supervision.MARGIN)
    return {
        "start": part.start,
        "end": part.start + len(part.data),
        "size": part.size,
        "text": supervision.decode_part(part),
    }


async def stop_process(context: FeatureContext, process: ShellProcess, *, by: str) -> ShellProcess:
    """
    Ask for the end of a process.

    :raises UsageError: if it has ended
    """
    if not process.state.is_open:
        raise UsageError(f"it has ended already: {describe_end(process)}")
    return await supervision.stop(context, process, f"stopped by {by}")


def send_input(
    context: FeatureContext, process: ShellProcess, key: str, text: str, *, end: bool
) -> None:
    """
    Give a process input; the same key gives it once.

    :raises UsageError: if it takes none
    """
    if not process.state.is_open:
        raise UsageError(f"it has ended: {describe_end(process)}")
    if not supervision.is_here(context.settings, process):
        raise UsageError(
            f"it runs on {supervision.get_host(process)}, and takes input from there only"
        )
    if len(text) > MOST_BYTES:
        raise UsageError(f"input may have {MOST_BYTES:,} characters at once")
    folder = supervision.find_folder(context.settings, process.id)
    if not folder.send_input(key, text, end=end):
        raise UsageError("it takes no input: begin it with background, and it must read")
