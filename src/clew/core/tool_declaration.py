"""Declaration of a tool in plain terms; the agent makes a tool of the model library of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.core.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolDeclaration:
    """A tool of the model."""

    name: str
    #: Its docstring and annotations are what the model is told.
    function: Callable[..., Any]
    effect: Effect = Effect.ONCE
    #: Kept with the tool, for whoever decides about its calls.
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
