"""Declaration of a tool in plain terms; the agent makes a tool of the model library of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from clew.core.effect import Effect
from clew.record import Record

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.tool_facts import FactsFunction

#: Keys of a tool's metadata, beside ``effect``: its ``FactsFunction``; its time limit in seconds;
#: whether its results hold text that strangers may have written; whether it waits for other turns.
FACTS_KEY: Final = "facts"
TIMEOUT_KEY: Final = "timeout"
UNTRUSTED_KEY: Final = "untrusted"
AWAITS_TURNS_KEY: Final = "awaits_turns"
#: Returns the effect of one call from its arguments, where that is not the same for all.
EFFECTS_KEY: Final = "effects"
#: The ``BoundTool`` of one that calls another.
BOUND_KEY: Final = "bound"

#: Returns the effect of one call from its arguments.
EffectsFunction = Callable[[Mapping[str, Any]], Effect | Awaitable[Effect]]


class ToolDeclaration(Record):
    """A tool of the model."""

    name: str
    #: Its docstring and annotations describe the tool to the model, unless ``parameters`` do.
    function: Callable[..., Any]
    effect: Effect = Effect.ONCE
    #: Makes the facts about one call, from which it is decided whether it may run.
    facts: FactsFunction | None = None
    #: Returns the effect of one call from its arguments, if that is not the same for all.
    effects: EffectsFunction | None = None
    #: Time limit of a call; ``None`` for ``tools.call_timeout``.
    timeout: timedelta | None = None
    #: Its results hold text that strangers may have written.
    untrusted: bool = False
    #: Given the ``TurnContext``: whether the tool is offered; ``None`` for always.
    when: Callable[[Any], bool | Awaitable[bool]] | None = None
    #: Runs alone among the calls of a response: after those before it, before those after it.
    in_order: bool = False
    #: Its calls wait for other turns, which may take the place of the calling one meanwhile.
    awaits_turns: bool = False
    #: By parameter: the values that it takes now, and what each means; empty where it is left out.
    choices: Mapping[str, Callable[[], Mapping[str, str]]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    #: The JSON schema of its arguments, an object: the function takes them as they come.
    parameters: Mapping[str, Any] | None = None
    #: Describes it to the model, with ``parameters``.
    description: str = ""


class BoundTool(Record):
    """A tool that calls another one with some of its arguments set."""

    name: str
    description: str
    #: The JSON schema of its arguments: an object.
    parameters: Mapping[str, Any]
    #: The name of the declared tool that it calls.
    calls: str
    #: Returns the arguments of that one from its own.
    bind: Callable[[Mapping[str, Any]], dict[str, Any]]
    #: Lists of new sessions have it; lists that have it keep it anyway.
    listed: bool = True


class BoundToolSource(Record):
    """The source of tools that call a declared one with some of its arguments set."""

    name: str
    #: Given the ``TurnContext``: returns those of this moment.
    find: Callable[[Any], Awaitable[Sequence[BoundTool]]]
