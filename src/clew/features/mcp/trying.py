"""A try of servers, for people who check their settings."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from clew.core.doctor_finding import ok, warn
from clew.features.mcp import front
from clew.features.mcp.connection import ServerConnection, ServerDown
from clew.features.mcp.definitions import replace_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.config.settings import Settings
    from clew.core.doctor_finding import DoctorFinding
    from clew.features.mcp.settings import McpServer
    from clew.store.contract import Store

#: Seconds for all servers, which are tried at once.
_TIMEOUT: Final = 20.0


class _NoStore:
    """A store for a try that keeps nothing."""

    async def write(self, *_: object) -> None:
        """Keep nothing."""


class _Logins:
    """A store for a try that keeps nothing but renewed logins."""

    def __init__(self, store: Store) -> None:
        self.read, self._write = store.read, store.write

    async def write(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Keep what is not about tools."""
        return None if call is replace_tools else await self._write(call, *arguments)


async def try_server(
    name: str, server: McpServer, settings: Settings, store: Store | None = None
) -> tuple[ServerConnection, str | None]:
    """
    Connect to a server, read its tools, and end it; return why, if that is not possible.

    ``store``: has the login at a server that needs one.
    """
    kept = _NoStore() if store is None else _Logins(store)
    context: Any = SimpleNamespace(settings=settings, store=kept)
    connection = ServerConnection(name, server, context)
    try:
        await connection.need(_TIMEOUT)
    except ServerDown as error:
        return connection, f"{connection.status.why or error}{_hint_at_sandbox(server)}"
    finally:
        await connection.close()
    return connection, None


def _hint_at_sandbox(server: McpServer) -> str:
    """Return what a command sees that does not start: most need more."""
    if not server.command or server.level == "host":
        return ""
    return (
        f"; at the level {server.level} it has no network and sees only /usr, a folder of its own "
        'and what `readable` names: level = "host" gives it all rights of yours'
    )


async def describe_server(
    name: str, server: McpServer, settings: Settings, store: Store | None = None
) -> dict[str, Any]:
    """Return what a server offers, or why it does not answer."""
    found, why = await try_server(name, server, settings, store)
    tools = [
        {
            "name": tool.name,
            "effect": front.describe_effect(server, tool),
            "description": " ".join(tool.description.split()),
        }
        for tool in found.tools.values()
    ]
    return {"name": name, "why": why, "tools": tools, "instructions": found.instructions.strip()}


async def check_servers(
    servers: Mapping[str, McpServer], settings: Settings
) -> Sequence[DoctorFinding]:
    """Return for each server whether it answers."""
    return await asyncio.gather(*(_check(name, one, settings) for name, one in servers.items()))


async def _check(name: str, server: McpServer, settings: Settings) -> DoctorFinding:
    if server.auth == "oauth":
        return ok("mcp server", f"{name}: needs a login; clew mcp test {name} tries it")
    found, why = await try_server(name, server, settings)
    if why is not None:
        fix = f"start it, or correct [mcp.{name}] in config.toml"
        return warn("mcp server", f"{name}: {why}", fix=fix)
    return ok("mcp server", f"{name}: {len(found.tools)} tools")
