"""
Check of a third-party capability or toolset: whether it keeps to what a stored conversation allows.

It runs in an agent of its own, with a model that records what it is sent; nothing is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from clew.record import Record

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

_PROBE: Final = "clew_probe"
_EFFECT: Final = "effect"
#: The messages of people, a turn each; the model calls the probe once in each.
_SAID: Final = ("The first message.", "The second message.")


class CapabilityReport(Record):
    """Observed effects of a capability, in two turns of two requests each."""

    #: Messages that it added to the history itself.
    added: tuple[str, ...] = ()
    #: Differences between its requests and the history.
    changed: tuple[str, ...] = ()
    #: Attributes that differ after the turns.
    state: tuple[str, ...] = ()
    #: Tools without a declared effect.
    undeclared: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return whether the requests of a conversation can be made again from its store."""
        return not (self.added or self.changed or self.state)


async def check_capability(found: Any) -> CapabilityReport:
    """
    Run two turns with a capability or toolset, and report what it does beside them.

    :raises TypeError: if it is neither
    :raises Exception: whatever it raises
    """
    if not isinstance(found, (AbstractCapability, AbstractToolset)):
        raise TypeError(f"a capability or toolset was expected, not {type(found).__name__}")
    checked = cast("AbstractCapability[Any] | AbstractToolset[Any]", found)
    before = _read_state(checked)
    recorder = _Recorder()
    agent = _make_agent(checked, recorder)
    history: list[ModelMessage] = []
    added: list[str] = []
    for said in _SAID:
        result = await agent.run(said, message_history=history)
        history = result.all_messages()
        added += _find_additions(result.new_messages(), said)
    after = _read_state(checked)
    return CapabilityReport(
        added=tuple(dict.fromkeys(added)),
        changed=tuple(dict.fromkeys(recorder.find_changes(history))),
        state=tuple(name for name, value in after.items() if before.get(name) != value),
        undeclared=tuple(sorted(recorder.undeclared)),
        tools=tuple(sorted(recorder.tools)),
    )


def _make_agent(
    found: AbstractCapability[Any] | AbstractToolset[Any], recorder: _Recorder
) -> Agent[Any, str]:
    probe: FunctionToolset[Any] = FunctionToolset()
    probe.add_function(lambda: "probed", name=_PROBE, metadata={_EFFECT: "pure"})
    if isinstance(found, AbstractCapability):
        return Agent(FunctionModel(recorder.answer), toolsets=[probe], capabilities=[found])
    return Agent(FunctionModel(recorder.answer), toolsets=[probe, found])


class _Recorder:
    """A model that calls the probe in each turn, and keeps what it was sent."""

    def __init__(self) -> None:
        #: The number of messages in each request, and their parts.
        self.sent: list[tuple[int, list[str]]] = []
        self.tools: set[str] = set()
        self.undeclared: set[str] = set()

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.sent.append((len(messages), _describe_messages(messages)))
        for tool in info.function_tools:
            if tool.name != _PROBE:
                self.tools.add(tool.name)
                if _EFFECT not in (tool.metadata or {}):
                    self.undeclared.add(tool.name)
        last = messages[-1]
        probed = any(getattr(part, "tool_name", None) == _PROBE for part in last.parts)
        if probed:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(_PROBE, {})])

    def find_changes(self, history: list[ModelMessage]) -> list[str]:
        """Return what was sent that is not so in the history, and what was left out of it."""
        found: list[str] = []
        for count, sent in self.sent:
            expected = _describe_messages(history[:count])
            found += [f"sent, but not kept: {each}" for each in sent if each not in expected]
            found += [f"kept, but not sent: {each}" for each in expected if each not in sent]
        return found


def _describe_messages(messages: list[ModelMessage]) -> list[str]:
    return [
        f"{part.part_kind}: {_shorten(getattr(part, 'content', getattr(part, 'args', '')))}"
        for message in messages
        for part in message.parts
    ]


def _shorten(content: object) -> str:
    text = str(content)
    return text if len(text) <= 60 else f"{text[:60]}…"  # enough to recognise it


def _find_additions(messages: list[ModelMessage], said: str) -> list[str]:
    """Return the parts of requests that neither the person nor the probe made."""
    parts = [
        part for message in messages if isinstance(message, ModelRequest) for part in message.parts
    ]
    return [
        _describe_messages([ModelRequest(parts=[part])])[0]
        for part in parts
        if getattr(part, "content", None) != said and getattr(part, "tool_name", None) != _PROBE
    ]


def _read_state(found: object) -> dict[str, str]:
    return {name: repr(value) for name, value in vars(found).items()}
