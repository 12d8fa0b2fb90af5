"""The operations that show the log, plugins and tools, for HTTP and JSON-RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, WholeNumber
from clew.features.maintenance.plugin_list import list_plugins
from clew.plugin.tool_listing import list_tools
from clew.recent_log import RECENT_LOG
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

Level = Literal["debug", "info", "warning", "error", "critical"]


class LogRecordShape(WireModel):
    """A record of the log, without secrets."""

    number: int
    at: str
    level: str
    event: str
    #: The other fields as JSON, in one line; empty if there are none.
    detail: str


class LogShape(WireModel):
    #: Oldest first.
    items: list[LogRecordShape]
    #: The number of the newest record, to ask for those after it.
    last: int


class TailParams(Params):
    """Which of the last records are returned."""

    #: Only records with a higher number.
    after: int = Field(default=0, ge=0)
    #: The least severe level.
    level: Level = "info"
    limit: int = Field(default=200, ge=1, le=1000)


class TailQuery(QueryParams):
    after: WholeNumber = 0
    level: Level = "info"
    limit: int = Field(default=200, ge=1, le=1000, strict=False)


class PluginShape(WireModel):
    """A built-in feature or a plugin, and what it adds."""

    name: str
    #: ``feature`` or ``plugin``.
    kind: str
    #: ``on``, ``off``, or ``failed`` if it cannot be loaded.
    state: str
    about: str
    #: The table of its settings.
    settings: str | None
    tools: list[str]
    chat_commands: list[str]
    commands: list[str]
    channels: list[str]
    operations: list[str]
    services: list[str]
    periodic: list[str]


class PluginList(WireModel):
    items: list[PluginShape]
    #: Sentences about what cannot be loaded.
    problems: list[str]


class ToolRuleShape(WireModel):
    #: Its place in the settings, from 1.
    rule: int
    #: ``allow``, ``ask`` or ``deny``.
    then: str


class ToolRulesShape(WireModel):
    """The rules of the settings that are about a tool."""

    #: Decides every call that none of ``some`` decides first.
    every: ToolRuleShape | None
    #: About some of the calls: by command, host, path or person.
    some: list[ToolRuleShape]


class ToolShape(WireModel):
    """A tool of the agent."""

    name: str
    #: What running a call twice does: ``pure``, ``idempotent``, ``once``, ``ask``.
    effect: str | None
    #: ``runs``, ``asks``, or ``by call`` if the facts of each call decide.
    default: str
    rules: ToolRulesShape
    #: Its results hold text that strangers may have written.
    untrusted: bool
    #: Whose it is.
    feature: str


class ListedTools(WireModel):
    items: list[ToolShape]
    #: The level at which commands run.
    sandbox: str


async def _tail_log(call: OperationCall, given: TailParams) -> LogShape:
    last = RECENT_LOG.last_number
    found = RECENT_LOG.read(after=given.after, level=given.level, limit=given.limit)
    items = [
        LogRecordShape(
            number=one.number, at=one.at, level=one.level, event=one.event, detail=one.detail
        )
        for one in found
    ]
    return LogShape(items=items, last=max([last, *(one.number for one in found)]))


async def _list_plugins(call: OperationCall, given: NoParams) -> PluginList:
    found = await asyncio.to_thread(list_plugins, call.context.settings)
    problems = list(call.engine.features.problems)
    return PluginList.model_validate({"items": found, "problems": problems})


async def _list_tools(call: OperationCall, given: NoParams) -> ListedTools:
    settings = call.context.settings
    found = list_tools(settings, call.engine.list_own_tools())
    items = [one.fields for one in found]
    return ListedTools.model_validate({"items": items, "sandbox": settings.sandbox.level})


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "log.tail": make_operation(
        RpcMethod(
            name="log.tail",
            params=TailParams,
            result=LogShape,
            summary="The last records of this gateway's log, without secrets.",
        ),
        _tail_log,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/log",
            summary="The last records of this gateway's log",
            answer="The records, oldest first",
            query=TailQuery,
        ),
        is_ordered=False,
    ),
    "plugin.list": make_operation(
        RpcMethod(
            name="plugin.list",
            params=NoParams,
            result=PluginList,
            summary="The built-in features and the plugins, with their state and what they add.",
        ),
        _list_plugins,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/plugins",
            summary="The built-in features and the plugins",
            answer="All of them, with their state",
        ),
        is_ordered=False,
    ),
    "tool.list": make_operation(
        RpcMethod(
            name="tool.list",
            params=NoParams,
            result=ListedTools,
            summary="The tools of the agent: effect, default, rules, and whose they are.",
        ),
        _list_tools,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/tools",
            summary="The tools of the agent",
            answer="The tools, the agent's own first",
        ),
        is_ordered=False,
    ),
}
