"""OAuth at servers: tokens of the store, renewed by one gateway at a time before they expire."""

from __future__ import annotations

import asyncio
import logging
import warnings
from typing import TYPE_CHECKING, Final

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from clew.background import shield_until_done
from clew.distribution import VERSION
from clew.features.mcp.logins import LoginNeeded
from clew.features.mcp.stored_login import NO_LISTENER, StoredLogin
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx2
    from mcp.shared.auth import AuthorizationCodeResult

    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

#: For the SDK a time at which a token has expired, but none that is missing.
_LONG_AGO: Final = 1.0
#: Limits of requests to the authorization server: shorter than a claim to renew.
_TIMEOUT: Final = dict.fromkeys(("connect", "read", "write", "pool"), 30.0)
#: Seconds between two looks at whether another gateway has renewed the tokens.
_LOOK_AGAIN: Final = 0.2

# It writes answers of authorization servers with their tokens into the log; we say what failed.
logging.getLogger("mcp.client.auth").disabled = True
logging.getLogger("mcp.client.auth.oauth2").disabled = True


class LoginPerson(Record):
    """A person who logs in: is shown a link, and sent back by the browser with a code."""

    redirect_uri: str
    show_link: Callable[[str], Awaitable[None]]
    wait_for_code: Callable[[], Awaitable[AuthorizationCodeResult]]


class LoginUnavailable(Exception):
    """The authorization server does not answer as it should: the tokens stay."""


class StoredAuth(OAuthClientProvider):
    """Authentication at one server; without a login it sends nothing and asks nobody."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        context: FeatureContext,
        person: LoginPerson | None = None,
    ) -> None:
        """``person``: logs in now, in place of what is stored."""
        assert server.url is not None
        self._name, self._person = name, person
        self._stored = StoredLogin(name, server, context, registers=person is not None)
        super().__init__(
            server.url,
            _describe_client(NO_LISTENER if person is None else person.redirect_uri, server),
            self._stored,
            redirect_handler=self._refuse if person is None else person.show_link,
            callback_handler=self._refuse_code if person is None else person.wait_for_code,
        )
        self._stored.flow = self.context

    async def _refuse(self, _link: str) -> None:
        raise self._needs_login()

    async def _refuse_code(self) -> AuthorizationCodeResult:
        raise self._needs_login()

    def _needs_login(self) -> LoginNeeded:
        return LoginNeeded(self._name, self._stored.login.version)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """
        Add the token to a request, and renew it first if that is due.

        :raises LoginNeeded: if there is no token that is accepted
        :raises LoginUnavailable: if it cannot be renewed now
        """
        if self._person is None:
            await self._prepare()
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    outgoing.extensions["timeout"] = _TIMEOUT
                response = yield outgoing
                _check_renewal(outgoing, response)
                if outgoing is request and self._lacks_permission(response):
                    return
                if outgoing is request and await self._expire(response):
                    await flow.aclose()
                    flow = super().async_auth_flow(request)
                    outgoing = await anext(flow)
                else:
                    outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except LoginNeeded as error:
            if await self._stored.forget():
                error.version += 1
            raise
        finally:
            await flow.aclose()
            await shield_until_done(self._stored.release())

    def _lacks_permission(self, response: httpx2.Response) -> bool:
        """Return whether a permission is missing: the login is good for everything else."""
        return self._person is None and response.status_code == 403

    async def _prepare(self) -> None:
        """Be the one to renew the tokens if that is due: they may be usable only once."""
        await self._stored.read()
        while self.context.current_tokens is not None:
            if self.context.is_token_valid() or not self.context.can_refresh_token():
                return
            if await self._stored.claim():
                return
            await asyncio.sleep(_LOOK_AGAIN)
            await self._stored.read()
        raise self._needs_login()

    async def _expire(self, response: httpx2.Response) -> bool:
        """Return whether a token that was refused before its time can be replaced, once."""
        if response.status_code != 401:
            self._stored.has_renewed = False
            return False
        if self._person is not None or self._stored.has_renewed:
            return False
        if not self.context.can_refresh_token():
            return False
        version = self._stored.login.version
        while not await self._stored.claim():
            await asyncio.sleep(_LOOK_AGAIN)
            await self._stored.read()
            if self._stored.login.version != version:
                return True
        self._stored.has_renewed = True
        self.context.token_expiry_time = _LONG_AGO
        return True


def _check_renewal(request: httpx2.Request, response: httpx2.Response) -> None:
    """
    Check that a refusal of new tokens is one: the SDK takes every failure for it.

    :raises LoginUnavailable: if the authorization server has failed
    """
    if request.method != "POST" or b"grant_type=refresh_token" not in request.content:
        return
    if response.status_code not in (200, 400, 401):
        raise LoginUnavailable(f"the authorization server answered {response.status_code}")


def _describe_client(redirect_uri: str, server: McpServer) -> OAuthClientMetadata:
    return OAuthClientMetadata(
        client_name="Clew",
        software_id="clew",
        software_version=VERSION,
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
        scope=" ".join(server.scopes) or None,
    )


def make_auth(name: str, server: McpServer, context: FeatureContext) -> httpx2.Auth | None:
    """Return the authentication of requests to a server; ``None`` if it needs none."""
    if server.auth == "oauth":
        return StoredAuth(name, server, context)
    if server.auth == "client_credentials":
        return _make_machine_auth(server)
    return None


def _make_machine_auth(server: McpServer) -> httpx2.Auth:
    """Return the authentication of a program with an account of its own, without a person."""
    assert server.url is not None
    assert server.client_id is not None
    assert server.client_secret is not None
    with warnings.catch_warnings():
        # The issuer is whatever the server names: its address is in the settings.
        warnings.simplefilter("ignore")
        return ClientCredentialsOAuthProvider(
            server.url,
            _ShortMemory(),
            server.client_id,
            server.client_secret.reveal(),
            scope=" ".join(server.scopes) or None,
        )


class _ShortMemory:
    """Tokens that are asked for again by each process."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the account."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep the account."""
        self._client = client_info
