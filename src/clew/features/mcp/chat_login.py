"""Logins from a chat: a link goes to the person, and the address that it leads to comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.features.mcp.login import PendingLogin, parse_answer
from clew.features.mcp.settings import check_login

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.pool import McpPool

_USAGE = "write /mcp login NAME, and then /mcp login NAME ADDRESS"


async def log_in(pool: McpPool, words: Sequence[str]) -> str:
    """Begin a login, or end it with the address to which the browser was sent."""
    if len(words) not in (1, 2):
        raise UsageError(_USAGE)
    one = pool.get(words[0])
    check_login(one.name, one.server)
    return await (_begin(pool, one) if len(words) == 1 else _end(pool, one, words[1]))


async def _begin(pool: McpPool, one: ServerConnection) -> str:
    if (before := pool.logins.pop(one.name, None)) is not None:
        await before.close()
    pool.logins[one.name] = login = PendingLogin(one.name, one.server, one.context)
    link = await login.start()
    return (
        f"Open this link and allow what it asks for:\n{link}\n"
        "The browser is then sent to a page that it cannot open. Copy the address of that page, "
        f"and send it within 10 minutes: /mcp login {one.name} ADDRESS"
    )


async def _end(pool: McpPool, one: ServerConnection, address: str) -> str:
    login = pool.logins.get(one.name)
    if login is None:
        raise UsageError(f"no login waits for an address: /mcp login {one.name} begins one")
    answer = parse_answer(address)
    # Right or wrong: an answer counts once.
    del pool.logins[one.name]
    count = await login.finish(answer)
    one.try_again()
    return f"Logged in at {one.name}: it has {count} tools."
