"""The files of a conversation, by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import Response

from clew.core.attachments import image_media_type
from clew.errors import NotFound

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.schemas import EmptyInput

_BINARY: Final = "application/octet-stream"


async def send_file(call: HttpCall, query: EmptyInput, body: EmptyInput) -> Response:
    """Answer with the content of a file: an image by its bytes, all else to be saved."""
    name = call.request.path_params["file"]
    found = await call.engine.find_file(call.conversation, name)
    if found is None:
        raise NotFound("file", name)
    picture = image_media_type(found.content)
    shown = "attachment" if picture is None else "inline"
    headers = {
        "Content-Disposition": f"{shown}; filename*=UTF-8''{quote(found.name, safe='')}",
        "Cache-Control": "private, max-age=31536000, immutable",
        # Whoever opens it here all the same gets a page that can do nothing.
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(found.content, headers=headers, media_type=picture or _BINARY)
