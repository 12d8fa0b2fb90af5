"""The website of the dashboard: its page and files, with a strict policy for browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from clew.api.problems import Problem
from clew.api.website import Website
from clew.features.dashboard.push_routes import PUSH_PATH, PushRoutes
from clew.features.dashboard.sign_in import LOGIN_PATH, LOGOUT_PATH, SignIn, find_refusal
from clew.features.dashboard.site_files import INDEX_NAME, SiteFile, SiteFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import HTTPConnection, Request

    from clew.api.caller import WebCaller
    from clew.api.http_call import HttpServer
    from clew.features.dashboard.settings import DashboardSettings

PAGE_PATH: Final = "/"
FILES_PATH: Final = "/web/"
#: At the root, so that it serves all pages; outside the versions, so that it is known again.
WORKER_PATH: Final = "/service-worker.js"
MANIFEST_PATH: Final = "/manifest.webmanifest"
#: Files at addresses of their own, by path.
_NAMED_FILES: Final = {
    PAGE_PATH: INDEX_NAME,
    WORKER_PATH: "service_worker.js",
    MANIFEST_PATH: "manifest.webmanifest",
}
_PUBLIC_PATHS: Final = frozenset({*_NAMED_FILES, LOGIN_PATH, LOGOUT_PATH, PUSH_PATH})

#: Nothing is loaded from elsewhere, no code is in the page, and no text becomes code.
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify service-worker"
)
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_FIRST: Final = "no-cache"


class DashboardSite(Website):
    """The dashboard."""

    def __init__(self, settings: DashboardSettings, files: SiteFiles | None = None) -> None:
        self._settings, self._files = settings, files or SiteFiles()
        self._sign_in: SignIn | None = None

    def is_public(self, path: str) -> bool:
        return path in _PUBLIC_PATHS or path.startswith(FILES_PATH)

    def make_routes(self, server: HttpServer) -> Sequence[Route]:
        context, token = server.context, server.context.settings.api.token
        self._sign_in = sign_in = SignIn(context.engine, self._settings, token)
        push = PushRoutes(sign_in, context.engine.feature_context.store, self._settings)
        return (
            *(Route(path, self._show_named) for path in _NAMED_FILES),
            *push.make_routes(),
            Route(f"{FILES_PATH}{{path:path}}", self._show_file),
            Route(LOGIN_PATH, sign_in.show_login, methods=["GET"]),
            Route(LOGIN_PATH, sign_in.log_in, methods=["POST"]),
            Route(LOGOUT_PATH, sign_in.log_out, methods=["POST"]),
        )

    async def identify(self, connection: HTTPConnection) -> WebCaller | Problem | None:
        return None if self._sign_in is None else await self._sign_in.identify(connection)

    async def _show_named(self, request: Request) -> Response:
        if problem := find_refusal(request, self._settings):
            return problem.to_response()
        name = _NAMED_FILES[request.url.path]
        return _send(request, self._files.load().files[name], caching=_ASK_FIRST)

    async def _show_file(self, request: Request) -> Response:
        if problem := find_refusal(request, self._settings):
            return problem.to_response()
        version = self._files.get_version()
        path: str = request.path_params["path"]
        wanted, _, name = path.partition("/")
        is_versioned = wanted == version.name
        file = version.files.get(name if is_versioned else path)
        if file is None:
            message = f"the dashboard has no file {path!r}: load the page again"
            return Problem(status=404, message=message, code="unknown_path").to_response()
        return _send(request, file, caching=_FOR_EVER if is_versioned else _ASK_FIRST)


def _send(request: Request, file: SiteFile, *, caching: str) -> Response:
    headers = {
        **SECURITY_HEADERS,
        "Cache-Control": caching,
        "ETag": file.etag,
        "Vary": "Accept-Encoding",
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = file.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = file.packed, "gzip"
    return Response(content, headers=headers, media_type=file.media_type)
