"""Each operation lets a caller reach what its scope says, over HTTP and over JSON-RPC."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from clew.api.app import build_app, create_app
from clew.api.builtin_operations import BUILTIN_OPERATIONS, build_operations, create_registry
from clew.api.mcp.shapes import conversation_uri
from clew.api.mcp.tools import TOOLS
from clew.api.operation_context import OperationContext
from clew.api.operation_scope import PUBLIC, CallerKind, NamedKind
from clew.api.operations import HttpBinding, Operation
from clew.api.responses.ids import response_id
from clew.api.routes import iter_endpoints
from clew.core.grant import GrantPattern
from clew.core.ids import ConversationId, GrantId
from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.core.turn import TurnState
from clew.tui.transports import in_process
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.params import Params
from tests.golden.test_answers import answer
from tests.integration.api_server import TOKEN, settings_for
from tests.integration.mcp_clients import over_http
from tests.integration.rpc_clients import client, serve_over
from tests.line.world import open_world
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from mcp import Client

    from clew.api.endpoints import Endpoint
    from clew.api.mcp.tools import McpFrontTool
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.store.contract import Tx

OWNER, GUEST = local_route("talk"), Route.parse("agent:main:telegram:dm:42")
#: Values of the fields that name nothing.
FIELDS: Mapping[str, object] = {
    "text": "/status", "title": "Mine", "to": 0, "approve": True, "query": "secret", "value": 1,
    "key": "session.double_text", "model": "clew", "messages": [{"role": "user", "content": "hi"}],
    "metadata": {}, "code": "ABCD-EFGH", "user": "42", "account": "none",
    "turn": "none", "call": "none",
}  # fmt: skip

Things = dict[NamedKind, str]


async def make_things(engine: Engine, route: Route, text: str, *, settled: bool = True) -> Things:
    """A conversation with an input and an approval, and a deleted one."""
    await engine.start_new_conversation(route)
    gone = await engine.titles.request_title(route, f"secret gone, {text}")
    await engine.delete_conversation(gone)
    await engine.wait_for_input(await engine.submit(f"secret {text}", target=route))
    accepted = await engine.submit("p: pay", target=route)
    talk = accepted.conversation_id

    async def asked() -> bool:
        # The turn goes to sleep a moment after it has asked.
        state = await engine.get_state(talk)
        return state.turn is not None and state.turn.state is TurnState.WAITING

    await wait_until(asked)
    (approval,) = await engine.list_approvals(talk)
    store = engine._services.store  # pyright: ignore[reportPrivateUsage]
    if settled:
        await engine.answer_approval(approval.id, yes=False)
        await engine.wait_for_input(accepted)
    return {
        NamedKind.CONVERSATION: talk,
        NamedKind.TARGET: talk,
        NamedKind.ROUTE: route.key,
        NamedKind.DELETED: gone,
        NamedKind.INPUT: accepted.inbox_id,
        NamedKind.RESPONSE: response_id(accepted.inbox_id),
        NamedKind.APPROVAL: approval.id,
        NamedKind.GRANT: await store.write(_give_grant, scope_of(route), talk),
    }


def _give_grant(t: Tx, scope: Scope, conversation: ConversationId) -> str:
    """Store a grant, as the answer to a question of that conversation would."""
    grant = f"grt_{conversation.removeprefix('cnv_')}"
    t.execute(
        """
        INSERT INTO approval_grant (id, scope, conversation_id, tool, pattern, says, by, created_at)
        VALUES ($1, $2, $3, 'none', $4, 'none: any call', 'me', $5)
        """,
        grant,
        scope,
        conversation,
        GrantPattern(tool="none").to_json(),
        t.now,
    )
    return grant


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[tuple[Engine, Things]]:
    """An engine, and what its owner has."""
    async with open_world("sqlite:///clew.db", home) as world:
        world.model.script = answer
        yield world.engine, await make_things(world.engine, OWNER, "of the owner", settled=False)


async def snapshot(engine: Engine, things: Things) -> object:
    """Return the parts of these records that others could have changed."""
    conversation = ConversationId(things[NamedKind.CONVERSATION])
    return [
        await engine.grants.get_grant(GrantId(things[NamedKind.GRANT]), viewer=LOCAL),
        await engine.get_view(conversation),
        await engine.get_state(conversation),
        things[NamedKind.DELETED] in {each.id for each in await engine.list_deleted()},
    ]


def context_for(engine: Engine, home: Path, viewer: Scope) -> OperationContext:
    return OperationContext(
        engine=engine,
        settings=settings_for(home),
        operations=build_operations(engine.features),
        viewer=viewer,
    )


async def call(
    context: OperationContext, method: RpcMethod[Any, Any], given: Mapping[str, object]
) -> ErrorCode | str:
    """The code of the error, or the result as JSON."""
    needed = {name: FIELDS[name] for name in method.params.model_fields if name in FIELDS}
    async with client(in_process(serve_over(context))) as rpc:
        try:
            done = await rpc.call(method, method.params.model_validate({**needed, **given}))
        except CallFailed as failed:
            return ErrorCode(failed.code)
        return done.model_dump_json()


async def test_over_rpc_a_caller_reaches_only_its_own_records(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, theirs):
        before = await snapshot(engine, theirs)
        guest = context_for(engine, tmp_path, scope_of(GUEST))
        mine: Things = {}
        for operation in BUILTIN_OPERATIONS:
            if operation.scope.names:
                # The last operation may have changed or deleted them.
                mine = await make_things(engine, GUEST, f"of the guest, {operation.name}")
            given = {field: mine[kind] for field, kind in operation.scope.names.items()}
            for field, kind in operation.scope.names.items():
                told = await call(guest, operation.definition, {**given, field: theirs[kind]})
                assert told is ErrorCode.NOT_FOUND, (operation.name, field)
            check_answer(operation, await call(guest, operation.definition, given))
        assert await snapshot(engine, theirs) == before


def check_answer(operation: AnyOperation, told: object) -> None:
    """Compare the answer to a call about the caller's own things with the scope."""
    match operation.scope.callers:
        case CallerKind.LOCAL | CallerKind.OWNER:
            assert told is ErrorCode.METHOD_NOT_FOUND, operation.name
        case _ if "call" in operation.definition.params.model_fields:
            # There is no call of that name, in whosever conversation.
            assert told is ErrorCode.NOT_FOUND, operation.name
        case _:
            assert told not in (ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_FOUND), operation.name
            assert "of the owner" not in str(told), operation.name


async def test_without_a_token_in_the_settings_all_but_the_settings_can_be_changed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as (engine, _):
        limited = context_for(engine, tmp_path, LOCAL)
        for operation in BUILTIN_OPERATIONS:
            if operation.scope.names:
                continue
            told = await call(limited, operation.definition, {})
            if operation.scope.callers is CallerKind.OWNER:
                assert told is ErrorCode.INVALID_VALUE
            else:
                assert isinstance(told, str), operation.name


def request(endpoint: Endpoint, things: Things) -> httpx2.Request:
    """A request that is as the endpoint declares it."""
    is_gone = endpoint.path.endswith("/undelete")
    conversation = things[NamedKind.DELETED if is_gone else NamedKind.CONVERSATION]
    path = endpoint.path.replace("{id}", quote(conversation, safe="")).replace("{model}", "clew")
    path = path.replace("{grant}", f"grt_{conversation.removeprefix('cnv_')}")
    path = path.replace("{turn}", "none").replace("{call}", "none")
    path = path.replace("{approval}", things[NamedKind.APPROVAL])
    path = path.replace("{goal}", quote(conversation, safe=""))
    path = path.replace("{response}", things[NamedKind.RESPONSE]).replace("{item}", "none")
    asked = {name: str(FIELDS[name]) for name in endpoint.query.model_fields if name in FIELDS}
    body = {name: FIELDS[name] for name in endpoint.body.model_fields if name in FIELDS}
    if endpoint.path.endswith("/backups/verify"):
        body = {"name": "clew.db"}
    if endpoint.path == "/v1/responses":
        body = {"input": "hi", "conversation": conversation}
    if endpoint.path == "/ag-ui":
        said = [{"id": "mine", "role": "user", "content": "hi"}]
        body = {"threadId": conversation, "runId": "one", "messages": said}
    return httpx2.Request(
        endpoint.method,
        f"http://localhost{path.replace('{name}', 'none')}",
        params=asked,
        json=body,
        headers={"X-Clew-Conversation": conversation}
        if endpoint.path.endswith("completions")
        else {},
    )


async def test_over_http_a_caller_reaches_only_its_own_records(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, theirs):
        before = await snapshot(engine, theirs)
        app = build_app(context_for(engine, tmp_path, scope_of(GUEST)))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
            mine = await make_things(engine, GUEST, "of the guest")
            for endpoint in iter_endpoints(build_operations(engine.features)):
                await check_endpoint(http, endpoint, mine=mine, theirs=theirs)
                # All but a look may have changed or deleted them.
                text = f"of the guest, after {endpoint.method} {endpoint.path}"
                mine = mine if endpoint.method == "GET" else await make_things(engine, GUEST, text)
            path = f"http://localhost/api/conversations/{mine[NamedKind.CONVERSATION]}/branch"
            taken = httpx2.Request("POST", path, json={"name": OWNER.key})
            assert (await send(http, taken)).status_code == 404
        assert await snapshot(engine, theirs) == before


async def check_endpoint(
    http: httpx2.AsyncClient, endpoint: Endpoint, *, mine: Things, theirs: Things
) -> None:
    what = f"{endpoint.method} {endpoint.path}"
    for wrong in ({}, {"Authorization": "Bearer wrong"}):
        asked = request(endpoint, mine)
        asked.headers.update(wrong)
        assert ((await http.send(asked)).status_code == 401) == (not endpoint.is_public), what
    named = ("{id}", "{approval}", "{grant}", "{goal}", "completions", "/responses", "/ag-ui")
    if any(name in what for name in named):
        hidden = await send(http, request(endpoint, theirs))
        assert hidden.status_code == 404, what
    if what.endswith("/skills/{name}/trust"):
        assert (await send(http, request(endpoint, mine))).status_code in {400, 404}, what
    elif endpoint.scope.callers in (CallerKind.LOCAL, CallerKind.OWNER):
        assert (await send(http, request(endpoint, mine))).status_code == 404, what
    elif not what.endswith(
        (
            *("/events", "/hooks/{name}", "/whatsapp/{name}"),
            *("/calls/{call}", "/items/{item}", "/files/{file}"),
        )
    ):
        shown = await send(http, request(endpoint, mine))
        assert shown.status_code not in {401, 404}, what
        assert "of the owner" not in shown.text, what


async def test_over_mcp_a_caller_reaches_only_its_own_records(tmp_path: Path) -> None:
    async with opened(tmp_path) as (engine, theirs):
        before = await snapshot(engine, theirs)
        context = context_for(engine, tmp_path, scope_of(GUEST))
        await make_things(engine, GUEST, "of the guest")
        async with over_http("http://localhost", app=build_app(context)) as mcp:
            # The world has no tables of features, whose operations are looked at elsewhere.
            for tool in (one for one in TOOLS if BUILTIN_OPERATIONS.get(one.method)):
                await check_tool(mcp, tool, context, theirs)
            listed = await mcp.list_resources()
            assert "of the owner" not in listed.model_dump_json()
            assert listed.resources
            with pytest.raises(MCPError):
                await mcp.read_resource(conversation_uri(theirs[NamedKind.CONVERSATION]))
        assert await snapshot(engine, theirs) == before


async def check_tool(
    mcp: Client, tool: McpFrontTool, context: OperationContext, theirs: Things
) -> None:
    operation = context.operations.get(tool.method)
    assert operation is not None
    kinds = {name: operation.scope.names.get(param) for name, param in tool.arguments.items()}
    named = {name: theirs[kind] for name, kind in kinds.items() if kind is not None}
    given = {name: FIELDS[name] for name in tool.arguments if name in FIELDS if name != "key"}
    result = await mcp.call_tool(tool.name, {**given, **named})
    told = result.model_dump_json()
    assert "of the owner" not in told, tool.name
    assert result.is_error == bool(named), told
    assert not named or "there is no" in told, told


class Greeting(Params):
    """A name and a greeting."""

    name: str


async def greet(call: OperationCall, given: Greeting) -> Greeting:
    return given


async def test_an_added_public_operation_needs_no_token(tmp_path: Path) -> None:
    registry = create_registry()
    method = RpcMethod(name="shop.greet", params=Greeting, result=Greeting, summary="Greet.")
    path = HttpBinding(method="GET", path="/api/greet/{name}", summary="Greet", answer="A greeting")
    registry.add(
        Operation(definition=method, handler=greet, is_ordered=False, scope=PUBLIC, http=path)
    )
    async with opened(tmp_path) as (engine, _):
        app = create_app(engine, settings_for(tmp_path), operations=registry.build())
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            greeted = await http.get("/api/greet/Ada")
            assert (greeted.status_code, greeted.json()) == (200, {"name": "Ada"})
            listed = (await http.get("/api/conversations")).status_code
            assert (listed, (await http.get("/api/greet")).status_code) == (401, 401)


async def send(http: httpx2.AsyncClient, asked: httpx2.Request) -> httpx2.Response:
    asked.headers["Authorization"] = f"Bearer {TOKEN}"
    return await http.send(asked)


def test_every_operation_on_a_conversation_declares_it_in_its_scope() -> None:
    for entry in BUILTIN_OPERATIONS.entries:
        if isinstance(entry, Operation):
            told = {"conversation", "session_id", "inbox_id", "approval", "grant", "name"}
            fields = told & entry.definition.params.model_fields.keys()
            assert fields == entry.scope.names.keys(), entry.name
        elif "{id}" in entry.path:
            assert entry.scope.names == {"conversation": NamedKind.CONVERSATION}, entry.path
        elif "{response}" in entry.path:
            assert entry.scope.names == {"response": NamedKind.RESPONSE}, entry.path
