"""The chat command ``/ps``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.features.shell import front, processes

if TYPE_CHECKING:
    from clew.plugin import CommandCall

#: Processes in a list, and bytes of output.
_SHOWN: Final = 20
_OUTPUT: Final = 1500


async def run_ps_command(call: CommandCall, argument: str) -> str:
    """List the commands of the chat, show one with the end of its output, or stop one."""
    words, services = argument.split(), call.services
    if not words:
        found = await services.store.read(
            processes.list_processes, viewer=call.viewer, limit=_SHOWN
        )
        lines = [front.format_process(one) for one in found]
        return (
            "\n".join([*lines, "/ps ID shows its output; /ps stop ID stops it."])
            if lines
            else ("No commands run here, and none have.")
        )
    if words[0] == "stop":
        if len(words) != 2:
            raise UsageError("/ps stop needs the id of a process: /ps lists them")
        process = await services.store.read(front.find_process, words[1], viewer=call.viewer)
        await front.stop_process(services, process, by="a person (/ps stop)")
        return f"{process.id} is being stopped."
    process = await services.store.read(front.find_process, argument, viewer=call.viewer)
    try:
        part = front.read_part(services, process, start=None, length=_OUTPUT)
        text = part["text"]
    except UsageError as error:
        text = f"{process.tail or ''}\n[{error}]"
    return f"{front.format_process(process)}\n{text}".rstrip()
