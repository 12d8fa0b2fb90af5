"""The login at one server, as the SDK asks the store for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import uuid4

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from clew.features.mcp import logins
from clew.features.mcp.logins import Login, Seal
from clew.record import replace

if TYPE_CHECKING:
    from mcp.client.auth.oauth2 import OAuthContext

    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

_Model = TypeVar("_Model", OAuthToken, OAuthMetadata, OAuthClientInformationFull)

#: The part of the life of a token after which it is renewed.
_RENEW_AFTER: Final = 0.8
#: Seconds of a token that never expires.
_LONGEST: Final = 10 * 365 * 86_400
#: What a person's browser is sent to when there is no program that listens there.
NO_LISTENER: Final = "http://127.0.0.1:8421/mcp/callback"


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


def _parse(kind: type[_Model], text: str | None) -> _Model | None:
    """Return a stored model; ``None`` if it is of another version, so that a person logs in."""
    if text is None:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None
