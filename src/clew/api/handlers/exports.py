"""The export of a conversation as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response

from clew.config.introspection import iter_secret_texts
from clew.engine.export_documents import make_file
from clew.wire.results import ExportShape

if TYPE_CHECKING:
    from clew.api.http_call import HttpCall
    from clew.api.operation_call import OperationCall
    from clew.api.schemas import EmptyInput, ExportQuery
    from clew.engine.export_documents import ConversationFile, ExportForm
    from clew.wire.params import ExportParams


async def export_conversation(call: OperationCall, given: ExportParams) -> ExportShape:
    file = await _make_file(call, given.format)
    return ExportShape(
        file_name=file.name, media_type=file.media_type, content=file.content.decode()
    )


async def send_export(call: HttpCall, query: ExportQuery, body: EmptyInput) -> Response:
    file = await _make_file(call, query.format)
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
        "Cache-Control": "no-store",
        # Whoever opens it here all the same gets a page that can do nothing.
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(file.content, headers=headers, media_type=file.media_type)


async def _make_file(call: OperationCall, form: str) -> ConversationFile:
    forms: dict[str, ExportForm] = {"json": "jsonl", "markdown": "markdown", "html": "html"}
    view = await call.engine.get_view(call.conversation, viewer=call.context.viewer)
    exporter = call.engine.make_exporter(secrets=iter_secret_texts(call.context.settings))
    return await make_file(exporter, call.conversation, forms[form], title=view.conversation.title)
