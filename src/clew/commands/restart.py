"""``/restart``: the gateway stops, and its process manager starts it again."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Final

from clew.commands.registry import ChatCommandReply
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.commands.registry import CommandContext

#: Set by the files of ``clew service`` and by the container image.
SUPERVISOR_VARIABLE: Final = "CLEW_SUPERVISOR"


def is_supervised(environ: Mapping[str, str], pid: int) -> bool:
    """Return whether somebody starts this process again when it ends."""
    # systemd names the process that it started, which no child of it is.
    return bool(environ.get(SUPERVISOR_VARIABLE)) or environ.get("SYSTEMD_EXEC_PID") == str(pid)


async def restart_gateway(ctx: CommandContext, argument: str) -> ChatCommandReply:
    """
    Have this process end as by SIGTERM.

    On a chat platform the next gateway replies: it finds the command without a reply, and its
    reply is stored once, whatever is killed meanwhile.

    :raises UsageError: if nothing would start it again
    """
    if not is_supervised(os.environ, os.getpid()):
        raise UsageError(
            "nothing would start this program again: run the gateway as a service (clew service "
            "install, which also updates a service of an earlier version)"
        )
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)
    if ctx.who is not None:
        return ChatCommandReply(text="", replies_after_restart=True)
    return ctx.reply("The gateway restarts now; what is unfinished goes on afterwards.")
