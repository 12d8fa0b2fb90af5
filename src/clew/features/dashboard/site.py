"""The website of the dashboard: its page and files, with a strict policy for browsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from clew.api.problems import Problem
from clew.api.website import Website
from clew.features.dashboard.addresses import find_address
from clew.features.dashboard.site_files import INDEX_NAME, SiteFile, SiteFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.api.http_call import HttpServer
    from clew.features.dashboard.settings import DashboardSettings

PAGE_PATH: Final = "/"
FILES_PATH: Final = "/web/"

#: Nothing is loaded from elsewhere, no code is in the page, and no text becomes code.
CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
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

_OFF: Final = Problem(
    status=404,
    message="the dashboard is off: set dashboard.enabled to true, and start the gateway again",
    code="dashboard_off",
)


def make_foreign_problem(host: str) -> Problem:
    """Return the answer to requests for an address that is not the dashboard's."""
    return Problem(
        status=403,
        message=f"the dashboard is not opened at {host!r}: use http://127.0.0.1 or "
        f'http://localhost, or list its address in dashboard.origins, as "https://{host}"',
        code="foreign_host",
    )


class DashboardSite(Website):
    """The dashboard."""

    def __init__(self, settings: DashboardSettings, files: SiteFiles | None = None) -> None:
        self._settings, self._files = settings, files or SiteFiles()

    def is_public(self, path: str) -> bool:
        return path == PAGE_PATH or path.startswith(FILES_PATH)

    def make_routes(self, server: HttpServer) -> Sequence[Route]:
        return (
            Route(PAGE_PATH, self._show_page),
            Route(f"{FILES_PATH}{{path:path}}", self._show_file),
        )

    async def _show_page(self, request: Request) -> Response:
        if problem := self.find_problem(request):
            return problem.to_response()
        return _send(request, self._files.load().files[INDEX_NAME], caching=_ASK_FIRST)

    async def _show_file(self, request: Request) -> Response:
        if problem := self.find_problem(request):
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

    def find_problem(self, request: Request) -> Problem | None:
        """Return why a request gets nothing of the dashboard; ``None`` if it does."""
        if not self._settings.enabled:
            return _OFF
        host = request.headers.get("host", "")
        if find_address(host, self._settings.origins) is None:
            return make_foreign_problem(host)
        return None


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
