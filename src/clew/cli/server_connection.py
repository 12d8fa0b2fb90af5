"""Connection of a command to the server that runs on its home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.api.discovery import discover_server
from clew.tui.transports import ConnectionLost, ConnectionRefused, ServerSilent, websocket

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from clew.config import Settings
    from clew.tui.transports import FrameConnection

#: Seconds for one attempt to connect.
_OPEN_TIMEOUT: Final = 10.0


async def connect_to_server(
    settings: Settings, stack: AsyncExitStack, *, patience: float = _OPEN_TIMEOUT
) -> FrameConnection | None:
    """
    Return a connection to the running server; ``None`` if there is none.

    :raises ServerSilent: if it runs but does not answer, as while it starts
    :raises ConnectionRefused: if it refuses this client
    """
    found = discover_server(settings.home)
    if found is None:
        return None
    token = None if settings.api.token is None else settings.api.token.reveal()
    connect = websocket(found.websocket_url, token=token, server=found.name, timeout=patience)
    try:
        return await stack.enter_async_context(connect())
    except ServerSilent:
        if not found.is_running:
            return None  # it was killed, and another program has its port
        raise
    except ConnectionLost:
        return None
    except ConnectionRefused as error:
        if error.other:
            return None
        raise
