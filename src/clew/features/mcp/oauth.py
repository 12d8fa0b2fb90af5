"""OAuth at servers: tokens of the store, renewed by one gateway at a time before they expire."""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from clew.background import shield_until_done
from clew.distribution import VERSION
from clew.features.mcp import logins
from clew.features.mcp.logins import Login, LoginNeeded, Seal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import httpx2
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult

    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

#: The part of the life of a token after which it is renewed.
_RENEW_AFTER: Final = 0.8
#: Seconds of a token that never expires.
_LONGEST: Final = 10 * 365 * 86_400
#: For the SDK a time at which a token has expired, but none that is missing.
_LONG_AGO: Final = 1.0
#: Limits of requests to the authorization server: shorter than a claim to renew.
_TIMEOUT: Final = dict.fromkeys(("connect", "read", "write", "pool"), 30.0)
#: Seconds between two looks at whether another gateway has renewed the tokens.
_LOOK_AGAIN: Final = 0.2
#: What a person's browser is sent to when there is no program that listens there.
NO_LISTENER: Final = "http://127.0.0.1:8421/mcp/callback"


# It writes answers of authorization servers with their tokens into the log; we say what failed.
logging.getLogger("mcp.client.auth").disabled = True
logging.getLogger("mcp.client.auth.oauth2").disabled = True

_Model = TypeVar("_Model", OAuthToken, OAuthMetadata, OAuthClientInformationFull)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginPerson:
    """Somebody who logs in: is shown a link, and then sent back by the browser with a code."""

    redirect_uri: str
    show_link: Callable[[str], Awaitable[None]]
    wait_for_code: Callable[[], Awaitable[AuthorizationCodeResult]]


class LoginUnavailable(Exception):
    """The authorization server does not answer as it should: the tokens stay."""


class StoredLogin:
    """The login at one server, as the SDK asks for it."""

    def __init__(
        self, name: str, server: McpServer, context: FeatureContext, *, registers: bool
    ) -> None:
        assert server.url is not None
        self._name, self._url, self._context = name, server.url, context
        self._server = server
        self._seal = Seal(context.settings.home)
        self.owner = uuid4().hex
        self.login = Login(server=name, url=server.url)
        #: The tokens and the servers that the SDK works with.
        self.flow: OAuthContext | None = None
        #: The tokens were renewed because they were refused: if they are again, they are no good.
        self.has_renewed = False
        self._has_claimed = False
        # For each login of a person, as the address that the browser is sent to differs.
        self._registers = registers

    async def read(self) -> None:
        """Take over what is stored, if somebody has changed it."""
        found = await self._context.store.read(logins.find_login, self._name, self._url, self._seal)
        if found.version != self.login.version or self.login.version == 0:
            self.login = found
            self._take_over()

    def _take_over(self) -> None:
        flow = self.flow
        assert flow is not None
        flow.current_tokens = _parse(OAuthToken, self.login.tokens)
        flow.client_info = self._get_client()
        renew_at = self.login.renew_at
        flow.token_expiry_time = None if renew_at is None else renew_at / 1000
        if flow.oauth_metadata is None:
            flow.oauth_metadata = _parse(OAuthMetadata, self.login.metadata)
            flow.auth_server_url = self.login.authorization_server

    def _get_client(self) -> OAuthClientInformationFull | None:
        if self._server.client_id is not None:
            secret = self._server.client_secret
            return OAuthClientInformationFull(
                client_id=self._server.client_id,
                client_secret=None if secret is None else secret.reveal(),
                redirect_uris=[AnyUrl(NO_LISTENER)],
                token_endpoint_auth_method="none" if secret is None else "client_secret_post",
            )
        return None if self._registers else _parse(OAuthClientInformationFull, self.login.client)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return None if self._registers else _parse(OAuthToken, self.login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store new tokens, with all that renews them after a restart."""
        flow = self.flow
        assert flow is not None
        renew_at = None
        if tokens.expires_in is not None:
            lifetime = min(tokens.expires_in, _LONGEST) * _RENEW_AFTER
            renew_at = int((time.time() + lifetime) * 1000)
            flow.token_expiry_time = renew_at / 1000
        metadata = flow.oauth_metadata
        await self._store(
            replace(
                self.login,
                tokens=tokens.model_dump_json(exclude_none=True),
                renew_at=renew_at,
                metadata=None if metadata is None else metadata.model_dump_json(exclude_none=True),
                authorization_server=flow.auth_server_url,
            )
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what the authorization server knows the gateway as."""
        return self._get_client()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store what the authorization server knows the gateway as."""
        client = client_info.model_dump_json(exclude_none=True)
        await self._store(replace(self.login, client=client))

    async def _store(self, login: Login) -> None:
        self._has_claimed = False
        version = await self._context.store.write(logins.store_login, login, self._seal)
        self.login = replace(login, version=version)

    async def claim(self) -> bool:
        """Return whether this process is the one to renew the tokens."""
        self._has_claimed = await self._context.store.write(
            logins.claim_renewal, self._name, self.login.version, self.owner
        )
        return self._has_claimed

    async def release(self) -> None:
        """Let others renew the tokens, if this process was to and has not."""
        if self._has_claimed:
            self._has_claimed = False
            await self._context.store.write(logins.release_renewal, self._name, self.owner)

    async def forget(self) -> bool:
        """Forget tokens that are refused; ``False`` if there are others."""
        return await self._context.store.write(logins.forget_tokens, self._name, self.login.version)


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


def _parse(kind: type[_Model], text: str | None) -> _Model | None:
    """Return a stored model; ``None`` if it is of another version, so that a person logs in."""
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None


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
