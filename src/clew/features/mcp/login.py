"""Logins at servers by a person, who allows in a browser what the gateway asks for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthTokenError
from mcp.shared.auth import AuthorizationCodeResult
from pydantic import ValidationError

from clew.background import cancel_and_wait
from clew.errors import UsageError
from clew.features.mcp.connection import describe_error, get_first
from clew.features.mcp.http import open_http
from clew.features.mcp.oauth import LoginPerson, StoredAuth
from clew.features.mcp.stored_login import NO_LISTENER

if TYPE_CHECKING:
    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

#: Seconds for the server to name its login page, and for a person to come back from it.
_START_TIMEOUT, LOGIN_TIMEOUT = 60.0, 600.0
#: Seconds for the tokens, and the first list of tools.
_END_TIMEOUT: Final = 60.0


class PendingLogin:
    """A login that waits until a person comes back from the browser."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        context: FeatureContext,
        redirect_uri: str = NO_LISTENER,
    ) -> None:
        self._name, self._server = name, server
        loop = asyncio.get_running_loop()
        self._link: asyncio.Future[str] = loop.create_future()
        self._answer: asyncio.Future[AuthorizationCodeResult] = loop.create_future()
        person = LoginPerson(
            redirect_uri=redirect_uri, show_link=self._show_link, wait_for_code=self._wait_for_code
        )
        self._auth = StoredAuth(name, server, context, person)
        self._task: asyncio.Task[int] | None = None

    async def start(self) -> str:
        """
        Return the link that a person opens.

        :raises UsageError: saying why there is none
        """
        self._task = asyncio.create_task(self._log_in(), name=f"mcp login:{self._name}")
        await asyncio.wait(
            {self._task, self._link}, timeout=_START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED
        )
        if self._link.done():
            return self._link.result()
        if not self._task.done():
            await self.close()
            raise UsageError(f"{self._name} did not answer within {_START_TIMEOUT:g} s")
        if (error := self._task.exception()) is not None:
            raise UsageError(f"{self._name}: {_describe(error)}") from error
        raise UsageError(f"{self._name} answers without a login: remove auth from its settings")

    async def finish(self, answer: AuthorizationCodeResult) -> int:
        """
        Return the number of tools that the server has, once it accepts the tokens.

        :raises UsageError: saying why the login has failed
        """
        assert self._task is not None
        if not self._answer.done():
            self._answer.set_result(answer)
        done, _ = await asyncio.wait({self._task}, timeout=_END_TIMEOUT)
        if not done:
            await self.close()
            raise UsageError(f"{self._name} did not answer within {_END_TIMEOUT:g} s")
        if (error := self._task.exception()) is not None:
            raise UsageError(f"{self._name}: {_describe(error)}") from error
        return self._task.result()

    async def close(self) -> None:
        """Give the login up."""
        if self._task is not None:
            await cancel_and_wait(self._task)

    async def _log_in(self) -> int:
        async with Client(open_http(self._server, self._auth), cache=None) as client:
            return len((await client.list_tools()).tools)

    async def _show_link(self, link: str) -> None:
        if not self._link.done():
            self._link.set_result(link)

    async def _wait_for_code(self) -> AuthorizationCodeResult:
        async with asyncio.timeout(LOGIN_TIMEOUT):
            return await self._answer


def _describe(error: BaseException) -> str:
    """Return an error without what the authorization server has said: it may have a token."""
    first = get_first(error)
    if isinstance(first, ValidationError):
        return "the authorization server's answer is not as it should be"
    if isinstance(first, OAuthTokenError):
        return str(first).partition(":")[0]
    return describe_error(first)


def parse_answer(address: str) -> AuthorizationCodeResult:
    """
    Return what the authorization server says in the address that it sends a browser to.

    :raises UsageError: if it has no code
    """
    query = {key: values[0] for key, values in parse_qs(urlsplit(address.strip()).query).items()}
    if "error" in query:
        raise UsageError(f"the login was refused: {query.get('error_description', query['error'])}")
    if "code" not in query:
        raise UsageError("this address has no code: send the one to which the browser was sent")
    return AuthorizationCodeResult(
        code=query["code"], state=query.get("state"), iss=query.get("iss")
    )
