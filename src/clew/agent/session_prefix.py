"""
Prefix of a session's requests: stored before the first of them, and sent as stored.

Whatever agent, capabilities, toolsets and features would say now, the requests of a session
begin alike, so that a provider's cache serves them and each can be made again to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai import messages
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import CapabilityOrdering
from pydantic_ai.exceptions import ModelRetry
from pydantic_core import to_json

from clew.agent.frozen_tools import FrozenToolset, ToolList, dump_definitions, load_definitions
from clew.core.session_prefix import FEATURE, WHOLE_TEXT, InstructionPart, SessionPrefix
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_core import ValidationError

    from clew.agent.protocols import TurnLog

    RenderInstructions = Callable[[], Awaitable[Sequence[InstructionPart]]]

_HISTORY: Final = "via_history"


async def render_nothing() -> Sequence[InstructionPart]:
    """Return no instructions of features."""
    return ()


@dataclass
class PrefixCapability(AbstractCapability[Any]):
    """Capability that stores a session's instructions and tools, and sends the stored ones."""

    log: TurnLog
    #: Renders the instructions of features.
    render: RenderInstructions
    #: As stored; ``None`` before the session's first request.
    prefix: SessionPrefix | None
    _tools: ToolList = field(default_factory=ToolList, init=False)
    #: Of the session before a rotation within this run: the agent does not render them again.
    _earlier: tuple[InstructionPart, ...] | None = field(default=None, init=False)

    def get_ordering(self) -> CapabilityOrdering:
        """Be asked last: nothing changes the instructions after they are stored."""
        return CapabilityOrdering(position="innermost")

    @property
    def overriding_parts(self) -> list[messages.InstructionPart] | None:
        """Return what takes the place of the agent's instructions; ``None`` to render them."""
        return None if self.prefix is None else _to_library(self.prefix.instructions)

    def freeze_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return the toolset with the definitions of the session, once they are stored."""
        self._tools.definitions = self._load_definitions()
        return FrozenToolset(toolset, self._tools)

    def continue_with(self, prefix: SessionPrefix | None) -> None:
        """Continue in the next session of the conversation."""
        if self.prefix is not None:
            self._earlier = self.prefix.instructions
        self.prefix = prefix
        self._tools.definitions = self._load_definitions()

    def _load_definitions(self) -> dict[str, dict[str, Any]] | None:
        if self.prefix is None or self.prefix.tools is None:
            return None
        return load_definitions(self.prefix.tools)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store the prefix before the first request, and send the stored instructions."""
        parameters = request_context.model_request_parameters
        parts = parameters.instruction_parts or []
        # The instructions of capabilities that the model loads are messages.
        loaded = [p for p in parts if parameters.instruction_visibility_of(p) == _HISTORY]
        if self.prefix is None or self.prefix.tools is None:
            rendered = [part for part in parts if part not in loaded]
            self.prefix = await self._store_prefix(rendered)
            self._tools.definitions = self._load_definitions()
        request_context.model_request_parameters = replace(
            parameters, instruction_parts=[*_to_library(self.prefix.instructions), *loaded]
        )
        return request_context

    async def _store_prefix(self, rendered: Sequence[messages.InstructionPart]) -> SessionPrefix:
        if self.prefix is not None:
            instructions = self.prefix.instructions
        else:
            instructions = await self._render_instructions(rendered)
        prefix = SessionPrefix(
            instructions=instructions, tools=dump_definitions(self._tools.offered)
        )
        await self.log.store_prefix(prefix)
        return prefix

    async def _render_instructions(
        self, rendered: Sequence[messages.InstructionPart]
    ) -> tuple[InstructionPart, ...]:
        own = _from_library(rendered)
        if self._earlier is not None:
            own = [part for part in self._earlier if not part.name.startswith(FEATURE)]
        every = [*own, *await self.render()]
        cleaned = (replace(part, text=sanitize_text(part.text).strip()) for part in every)
        # Constant parts first, as the library sends them: a cache may end after them.
        return tuple(sorted((part for part in cleaned if part.text), key=lambda p: p.dynamic))

    async def on_tool_validate_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: str | dict[str, Any],
        error: ValidationError | ModelRetry,
    ) -> dict[str, Any]:
        """Tell the model the parameters of a tool that has changed since they were stored."""
        schema = self._tools.changed.get(call.tool_name)
        if schema is None:
            raise error
        raise ModelRetry(
            f"the tool {call.tool_name!r} has changed since it was described to you; its "
            f"parameters are now {to_json(schema, fallback=str).decode()}. The call does not "
            f"fit them: {_describe_error(error)}"
        ) from error


def _describe_error(error: ValidationError | ModelRetry) -> str:
    if isinstance(error, ModelRetry):
        return error.message
    found = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)


def _to_library(parts: Iterable[InstructionPart]) -> list[messages.InstructionPart]:
    return [messages.InstructionPart(content=part.text, dynamic=part.dynamic) for part in parts]


def _from_library(parts: Iterable[messages.InstructionPart]) -> list[InstructionPart]:
    return [
        InstructionPart(
            name=str(part.id or part.name or WHOLE_TEXT), text=part.content, dynamic=part.dynamic
        )
        for part in parts
    ]
