"""``clew mcp login``: a person logs in at an MCP server, with a browser."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

import click
import structlog

from clew.cli.common import CliContext, format_examples, pass_cli_context
from clew.cli.feature_records import run_with_store
from clew.core.ids import IdGenerator
from clew.errors import UsageError
from clew.features.mcp.settings import check_login, get_servers, pick_server
from clew.runtime import make_feature_context

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

log = structlog.get_logger(__name__)

_FEATURE: Final = "mcp"
_PATH: Final = "/mcp/callback"
#: Seconds for a request of the browser.
_REQUEST_TIMEOUT: Final = 10.0
_DONE: Final = "Go back to the terminal: it goes on there."


@click.command(epilog=format_examples("clew mcp login notes", "clew mcp login notes --paste"))
@click.argument("name")
@click.option(
    "--paste",
    is_flag=True,
    help="Ask for the address to which the browser was sent: it runs on another machine.",
)
@pass_cli_context
def login(program: CliContext, *, name: str, paste: bool) -> None:
    """
    Log in at an MCP server with auth = "oauth".

    Opens the browser, and waits until you have allowed what the server asks for. A gateway that
    runs connects by itself afterwards.
    """
    count = run_with_store(
        program,
        _FEATURE,
        lambda settings, store: _log_in(
            make_feature_context(settings, store, IdGenerator(lambda: 0)), name, paste=paste
        ),
    )
    click.echo(f"Logged in at {name}: it has {count} tools.")


async def _log_in(context: FeatureContext, name: str, *, paste: bool) -> int:
    server = pick_server(get_servers(context.settings), name)
    check_login(name, server)
    if paste:
        return await _log_in_by_hand(context, name, server)
    from clew.features.mcp.login import (  # noqa: PLC0415  (help needs no library)
        LOGIN_TIMEOUT,
        PendingLogin,
        parse_answer,
    )

    callback = _Callback()
    async with callback.listen() as redirect_uri:
        pending = PendingLogin(name, server, context, redirect_uri)
        link = await pending.start()
        callback.expect(link)
        click.echo(f"Allow it in the browser; if none opens, open this link:\n{link}", err=True)
        await asyncio.to_thread(webbrowser.open, link)
        try:
            async with asyncio.timeout(LOGIN_TIMEOUT):
                return await pending.finish(parse_answer(await callback.address))
        except TimeoutError:
            raise UsageError("nobody came back from the browser within 10 minutes") from None
        finally:
            await pending.close()


async def _log_in_by_hand(context: FeatureContext, name: str, server: McpServer) -> int:
    from clew.features.mcp.login import (  # noqa: PLC0415  (help needs no library)
        PendingLogin,
        parse_answer,
    )

    pending = PendingLogin(name, server, context)
    try:
        link = await pending.start()
        click.echo(
            f"Open this link, and allow it:\n{link}\n"
            "The browser is then sent to a page that it cannot open. Paste its address:",
            err=True,
        )
        said = await asyncio.to_thread(sys.stdin.readline)
        return await pending.finish(parse_answer(said))
    finally:
        await pending.close()


class _Callback:
    """Waits on a free port of this machine for the browser that comes back."""

    def __init__(self) -> None:
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._state: str | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    def expect(self, link: str) -> None:
        """Take only an answer to this link: others can reach the port as well."""
        self._state = _get_parameter(link, "state")

    @asynccontextmanager
    async def listen(self) -> AsyncGenerator[str]:
        """Return the address to which the browser is to be sent."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        finally:
            # It would wait for browsers that keep a connection open.
            server.close()
            for writer in self._connections:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                line = await reader.readline()
                status, text = self._take([*line.decode(errors="replace").split(), "", ""][1])
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\n"
                    f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (OSError, ValueError):
            log.info("callback_not_understood")
        finally:
            self._connections.discard(writer)
            writer.close()

    def _take(self, target: str) -> tuple[str, str]:
        if urlsplit(target).path != _PATH:
            return "404 Not Found", "Nothing is here."
        if self._state is None or _get_parameter(target, "state") != self._state:
            return "400 Bad Request", "This does not belong to the login that waits."
        if not self.address.done():
            self.address.set_result(target)
        return "200 OK", _DONE


def _get_parameter(address: str, name: str) -> str | None:
    return parse_qs(urlsplit(address).query).get(name, [None])[0]
