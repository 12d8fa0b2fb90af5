"""Tools that call others: as a tool of the journal, and around it as code mode does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.toolsets import WrapperToolset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

    #: Calls a tool by name with its argument, inside the outer call.
    Call = Callable[[str, str], Awaitable[object]]

#: The tool that runs a script.
OUTER = "script"


@dataclass
class Script:
    """A script of steps ``TOOL ARGUMENT``; ``{}`` is the value of the step before."""

    steps: list[str]
    #: Run all at once, and what they raise is a value.
    together: bool = False
    #: Each value and error that the script came to see.
    seen: list[object] = field(default_factory=list[object])

    async def run(self, call: Call) -> str:
        if self.together:
            calls = [call(*step.split(" ", 1)) for step in self.steps]
            self.seen += await asyncio.gather(*calls, return_exceptions=True)
            return await self._after(call)
        value: object = ""
        for step in self.steps:
            tool, what = step.split(" ", 1)
            try:
                value = await call(tool, what.replace("{}", str(value)))
            except Exception as error:
                self.seen.append(error)
                raise
            self.seen.append(value)
        return "the script ended"

    async def _after(self, call: Call) -> str:
        """Go on, whatever became of the calls."""
        self.seen.append(await call("send", "after"))
        return "the script ended"

    def as_tool(self) -> Tool[Any]:
        """The script as a tool of the agent: its own call is journaled."""

        async def script(ctx: RunContext[Any], what: str) -> str:
            """Run the script."""
            del what
            manager, numbers = ctx.tool_manager, iter(range(1, 100))
            assert manager is not None

            async def call(tool: str, what: str) -> object:
                part = ToolCallPart(tool, {"what": what}, f"{ctx.tool_call_id}__{next(numbers)}")
                return await manager.handle_call(part, wrap_validation_errors=False)

            return await self.run(call)

        return Tool(script, name=OUTER)


@dataclass
class CodeMode(AbstractCapability[Any]):
    """The script as a tool around all others: its own call is not journaled."""

    script: Script

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _ScriptToolset(toolset, self.script)


@dataclass
class _ScriptToolset(WrapperToolset[Any]):
    script: Script

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        look = tools["look"]
        definition = replace(look.tool_def, name=OUTER)
        return tools | {OUTER: replace(look, tool_def=definition, toolset=self)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if name != OUTER:
            return await super().call_tool(name, tool_args, ctx, tool)
        tools, numbers = await self.wrapped.get_tools(ctx), iter(range(1, 100))

        async def call(called: str, what: str) -> object:
            inner = replace(ctx, tool_call_id=f"{ctx.tool_call_id}__{next(numbers)}")
            return await self.wrapped.call_tool(called, {"what": what}, inner, tools[called])

        return await self.script.run(call)
