"""Requests of the page and its service worker about notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from clew.api.problems import Problem
from clew.api.request_body import read_body
from clew.errors import UsageError
from clew.features.dashboard import push_subscriptions as subscriptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.features.dashboard.settings import DashboardSettings
    from clew.features.dashboard.sign_in import SignIn, Visitor
    from clew.store.contract import Store

PUSH_PATH: Final = "/api/push"
_BODY_SECONDS: Final = 10.0
_NO_STORE: Final = {"Cache-Control": "no-store"}


class PushKeys(BaseModel):
    """The keys of a browser, in base64url."""

    p256dh: str = Field(max_length=200)
    auth: str = Field(max_length=100)


class PushRequest(BaseModel):
    """A browser that wants notices, as it describes itself."""

    model_config = ConfigDict(extra="ignore", strict=True)

    endpoint: str = Field(min_length=1, max_length=2000)
    keys: PushKeys


class PushRoutes:
    """The requests by which browsers get notices, or no more."""

    def __init__(self, sign_in: SignIn, store: Store, settings: DashboardSettings) -> None:
        self._sign_in, self._store, self._settings = sign_in, store, settings

    def make_routes(self) -> Sequence[Route]:
        """Return the routes."""
        return (
            Route(PUSH_PATH, self._show_key, methods=["GET"]),
            Route(PUSH_PATH, self._add, methods=["POST"]),
            Route(PUSH_PATH, self._remove, methods=["DELETE"]),
        )

    async def _show_key(self, request: Request) -> Response:
        visitor = await self._sign_in.find_visitor(request)
        if isinstance(visitor, Problem):
            return visitor.to_response()
        from clew.features.dashboard.push_sender import load_public_key  # noqa: PLC0415  (8 MB, for few)

        return JSONResponse({"key": await load_public_key(self._store)}, headers=_NO_STORE)

    async def _add(self, request: Request) -> Response:
        return await self._change(request, is_wanted=True)

    async def _remove(self, request: Request) -> Response:
        return await self._change(request, is_wanted=False)

    async def _change(self, request: Request, *, is_wanted: bool) -> Response:
        visitor = await self._sign_in.find_visitor(request)
        if isinstance(visitor, Problem):
            return visitor.to_response()
        try:
            given = PushRequest.model_validate_json(
                await read_body(request, patience=_BODY_SECONDS)
            )
            await self._store_change(given, visitor, is_wanted=is_wanted)
        except (ValidationError, UsageError) as error:
            return _refuse(error).to_response()
        return JSONResponse({"subscribed": is_wanted}, headers=_NO_STORE)

    async def _store_change(self, given: PushRequest, visitor: Visitor, *, is_wanted: bool) -> None:
        if not is_wanted:
            await self._store.write(
                subscriptions.remove_subscription, given.endpoint, scope=visitor.scope
            )
            return
        from clew.features.dashboard.push_crypto import check_keys  # noqa: PLC0415  (as above)

        subscriptions.check_endpoint(given.endpoint, self._settings.push_services)
        if not check_keys(given.keys.p256dh, given.keys.auth):
            raise UsageError("keys.p256dh must be a point of P-256, keys.auth 16 bytes")
        await self._store.write(
            subscriptions.add_subscription,
            given.endpoint,
            (given.keys.p256dh, given.keys.auth),
            scope=visitor.scope,
            login=visitor.login,
        )


def _refuse(error: Exception) -> Problem:
    is_ours = isinstance(error, UsageError)
    message = str(error) if is_ours else 'send {"endpoint": …, "keys": {"p256dh": …, "auth": …}}'
    return Problem(status=400, message=message, code="invalid_value")
