"""The Agent Client Protocol over standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from clew.acp.server import serve_editor
from clew.cli.client_backend import ClientBackend
from clew.cli.gateway import run_until_signalled
from clew.cli.logs import logs_to_stderr
from clew.cli.stdio_transport import StdioClosed, StdioTransport
from clew.cli.stdout_guard import reserve_stdout
from clew.config import ensure_home
from clew.config.workspaces import WORK_FOLDER
from clew.sandbox.workspace import name_folder

if TYPE_CHECKING:
    from pathlib import Path

    from clew.config import Settings


def run_acp_stdio(settings: Settings, *, agent: str | None) -> None:
    """
    Serve the editor on standard input and output until it closes its end.

    :raises ClewError: if that is not possible
    """
    ensure_home(settings)
    with logs_to_stderr(settings):
        asyncio.run(run_until_signalled(lambda: _serve(settings, agent)))


async def _serve(settings: Settings, agent: str | None) -> None:
    pipe = StdioTransport()

    async def write(line: str) -> None:
        with suppress(StdioClosed):  # its lines end as well
            await pipe.send(line)

    # The transport has duplicates; code that runs in this process must not reach its lines.
    with reserve_stdout(stdin=True), ExitStack() as stack:
        backend = stack.enter_context(ClientBackend(settings, role="acp", logs=logs_to_stderr))
        try:
            await serve_editor(
                backend.connect, pipe.iter_frames(), write, agent=agent, locate=_locate_folder
            )
        finally:
            # It waits for the thread of the engine; a signal must still be heard.
            await asyncio.to_thread(stack.close)


def _locate_folder(home: Path, scope: str) -> Path:
    return home.resolve() / WORK_FOLDER / name_folder(scope)
