"""An operation that is added from outside answers over HTTP and JSON-RPC, and is described."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.api.app import create_app
from clew.api.builtin_operations import BUILTIN_OPERATIONS, create_registry
from clew.api.operation_context import OperationContext
from clew.api.operations import HttpBinding, Operation
from clew.api.rpc.connection import serve_client
from clew.api.schemas import RequestBody
from clew.errors import UsageError
from clew.tui.transports import in_process
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params
from tests.integration.api_server import TOKEN, settings_for
from tests.integration.rpc_clients import client
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from clew.api.operation_call import OperationCall


class CountParams(Params):
    """A text, and what to count."""

    text: str
    unit: str = "letters"


class CountBody(RequestBody):
    """A text."""

    text: str


class Counted(WireModel):
    count: int
    unit: str


COUNT = RpcMethod(
    name="text.count",
    params=CountParams,
    result=Counted,
    summary="Count letters.",
    errors=(ErrorCode.INVALID_VALUE,),
)


async def count_letters(call: OperationCall, given: CountParams) -> Counted:
    if not given.text:
        raise CallFailed.from_code(ErrorCode.INVALID_VALUE, "there is no text", param="text")
    return Counted(count=len(given.text), unit=given.unit)


ADDED = Operation(
    definition=COUNT,
    handler=count_letters,
    is_ordered=False,
    http=HttpBinding(
        method="POST",
        path="/api/count/{unit}",
        summary="Count letters",
        answer="The number",
        body=CountBody,
        status=201,
    ),
)


async def test_an_added_operation_is_on_every_transport_and_in_every_description(
    tmp_path: Path,
) -> None:
    registry = create_registry()
    registry.add(ADDED)
    operations = registry.build()
    async with open_world("sqlite:///clew.db", tmp_path) as world:
        settings = settings_for(tmp_path)
        app = create_app(world.engine, settings, operations=operations)
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app),
            base_url="http://test",
            headers={"Authorization": f"Bearer {TOKEN}"},
        ) as http:
            answer = await http.post("/api/count/a%2Fb", json={"text": "abc"})
            assert (answer.status_code, answer.json()) == (201, {"count": 3, "unit": "a/b"})
            refused = await http.post("/api/count/x", json={"text": ""})
            assert refused.status_code == 400
            assert refused.json()["error"]["param"] == "text"
            described: Any = (await http.get("/openapi.json")).json()
            assert {"201", "400", "507"} <= described["paths"]["/api/count/{unit}"]["post"][
                "responses"
            ].keys()
        context = OperationContext(engine=world.engine, settings=settings, operations=operations)

        async def serve(frames: AsyncIterator[str], send: Callable[[str], Awaitable[None]]) -> None:
            await serve_client(context, frames, send)

        async with client(in_process(serve)) as rpc:
            assert (await rpc.call(COUNT, CountParams(text="ab"))).count == 2
            told = await rpc.call(methods.DISCOVER, NoParams())
            assert "text.count" in {method["name"] for method in told.methods}


def test_a_name_is_given_once_and_what_was_built_does_not_change() -> None:
    registry = create_registry()
    built = registry.build()
    registry.add(ADDED)
    assert built.get("text.count") is None
    assert BUILTIN_OPERATIONS.names == built.names
    with pytest.raises(UsageError, match=r"'text.count' already"):
        registry.add(ADDED)
    renamed = replace(ADDED, definition=replace(COUNT, name="text.measure"))
    with pytest.raises(UsageError, match=r"POST /api/count/\{unit\} already"):
        registry.add(renamed)
