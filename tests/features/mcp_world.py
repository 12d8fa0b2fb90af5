"""A gateway with MCP servers: programs that do as a file says."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from clew.agent.models import close_models_on_exit
from clew.commands.runner import CommandRunner
from clew.engine.engine import Engine
from clew.features import mcp
from clew.features.mcp.settings import McpServer
from clew.plugin.registry import Features
from clew.runtime import build_services, make_command_registry
from clew.store.opening import open_store
from clew.testing import FakeProvider
from tests.features import mcp_sdk_server, mcp_server
from tests.features.delegation_world import obey
from tests.features.memory_world import HOME, MemoryWorld
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.features.mcp.connection import ServerConnection
    from clew.features.mcp.pool import McpPool
    from clew.features.mcp.tool import McpTools
    from clew.testing import ProviderRequest, Reply

_PROGRAM, _OFFICIAL = mcp_server.__file__, mcp_sdk_server.__file__


@dataclass(kw_only=True)
class McpWorld(MemoryWorld):
    settings: Settings
    pool: McpPool

    async def call_tool(self, server: str, tool: str, **args: Any) -> str:
        """Have the model call a tool of a server; what it was told."""
        return await self.call("mcp_call", HOME, server=server, tool=tool, args=args)

    def get(self, name: str) -> ServerConnection:
        return self.pool.get(name)


class Plan:
    """What a server offers: a file that it reads again and again."""

    def __init__(self, path: Path, tools: Mapping[str, Any], **more: Any) -> None:
        self.path = path
        self.write(tools, **more)

    def write(self, tools: Mapping[str, Any], **more: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"tools": tools, **more}))
        new.replace(self.path)

    def make_server(self, *, official: bool = False, **more: Any) -> McpServer:
        """Return the settings of a server on the host; an ``official`` one is the SDK's."""
        program, flags = (_OFFICIAL, ("-P",)) if official else (_PROGRAM, ("-P", "-S"))
        command = (sys.executable, *flags, program, str(self.path))
        values: dict[str, Any] = {"command": command, "level": "host", **more}
        return McpServer(**values)

    @property
    def calls(self) -> list[list[Any]]:
        """The calls that have reached a server: name, arguments, key."""
        path = self.path.with_suffix(".calls")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def open_mcp(
    home: Path, url: str, servers: Mapping[str, McpServer]
) -> AsyncGenerator[McpWorld]:
    """Open a gateway with MCP servers."""
    features = Features()
    made: list[McpTools] = []
    features.register("mcp", lambda registry: made.append(mcp.register(registry)))
    sent: list[ProviderRequest] = []

    def reply(request: ProviderRequest) -> Reply:
        sent.append(request)
        return obey(request)

    with FakeProvider(reply) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, features=features.schemas) as store,
        ):
            tables = MappingProxyType({"mcp": MappingProxyType(dict(servers))})
            settings = replace(
                settings_for(home, provider=provider), loaded_features=features, tables=tables
            )
            features.bind_settings(settings)
            services = build_services(settings, store, features)
            async with Engine(services, role="test", version="0") as engine:
                pool = made[0].get_pool(engine.feature_context)
                yield McpWorld(
                    engine=engine,
                    provider=provider,
                    store=store,
                    runner=CommandRunner(engine, make_command_registry(features)),
                    sent=sent,
                    settings=settings,
                    pool=pool,
                )
                await pool.close()
