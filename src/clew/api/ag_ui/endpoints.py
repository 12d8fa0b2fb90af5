"""The endpoint of AG-UI."""

from __future__ import annotations

from clew.api.ag_ui import handlers, schemas
from clew.api.endpoints import STREAM, Endpoint, ResponseSpec

AG_UI_ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/ag-ui",
        handler=handlers.run_agent,
        summary="One run of a conversation, as a stream of AG-UI events",
        body=schemas.RunRequest,
        responses={200: ResponseSpec(description="The events of the run", media=(STREAM,))},
        problems=(404, 409, 422),
    ),
)
