"""Memory providers of plugins, which are asked beside the facts of the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from clew.features.memory.settings import MemorySettings
from clew.features.memory.withheld import read_withheld
from clew.plugin.declarations import MemoryProviderKind
from clew.plugin.loading import get_features

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from clew.config.settings import Settings
    from clew.plugin import MemoryProvider, Registry, TurnContext

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

#: Memories of an answer, and seconds that a provider may take.
_MOST, _SECONDS = 8, 10.0
#: The providers of one application: its services, and what was made of them by name.
_made: list[tuple[object, dict[str, MemoryProvider]]] = []
#: The name of the section with the settings.
_SECTION: Final = "memory"


def find_problems(registry: Registry, settings: Settings) -> Iterator[str]:
    """Yield a sentence for each provider that no plugin declares."""
    known = registry.list_memory_providers()
    for name in _list_names(settings):
        if name not in known:
            declared = f"there are {', '.join(known)}" if known else "no plugin declares one"
            yield f"memory.providers: there is no memory provider {name!r}; {declared}"


async def recall(context: TurnContext, query: str) -> list[str]:
    """Return a line for each memory of the turn's scope that the providers know about a query."""
    lines: list[str] = []
    if not (providers := _list_providers(context)):
        return lines
    withheld = await context.services.store.read(read_withheld, context.scope)
    for name, provider in providers.items():
        found = await _ask(name, lambda one=provider: one.recall(context, query, limit=_MOST))
        if found is None:
            lines.append(f"[{name} was not asked: it failed]")
            continue
        lines += [
            f"{one.text} [{name}]"
            for one in list(found)[:_MOST]
            if one.scope == context.scope and not withheld.are_in(one.text, 0)
        ]
    return lines


async def remember(context: TurnContext, text: str) -> list[str]:
    """Have the providers keep a fact, too; return a line for each that has failed."""
    return [
        f"[{name} has not kept it: it failed]"
        for name, provider in _list_providers(context).items()
        if await _ask(name, lambda one=provider: one.remember(context, text)) is None
    ]


async def forget(context: TurnContext, text: str) -> None:
    """Have the providers delete what they keep with this text."""
    for name, provider in _list_providers(context).items():
        found = await _ask(name, lambda one=provider: one.recall(context, text, limit=_MOST))
        for memory in found or ():
            if memory.text == text:
                await _ask(name, lambda one=provider, key=memory.id: one.forget(context, key))


def _list_names(settings: Settings) -> tuple[str, ...]:
    found = settings.sections.get(_SECTION)
    return found.providers if isinstance(found, MemorySettings) else ()


def _list_providers(context: TurnContext) -> dict[str, MemoryProvider]:
    """Return the providers that the settings name, made once for an application."""
    services = context.services
    names = _list_names(services.settings)
    if not names or (context.profile is not None and context.profile.memory is not None):
        return {}  # they know scopes, and no agents with a memory of their own
    if not _made or _made[0][0] is not services:
        kinds = {
            one.name: one for one in get_features(services.settings).values(MemoryProviderKind)
        }
        _made[:] = [(services, {name: kinds[name].make(services) for name in names})]
    return _made[0][1]


async def _ask(name: str, ask: Callable[[], Awaitable[_T]]) -> _T | None:
    """Return what a provider answers; ``None`` if it fails: the store has the facts anyway."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await ask()
    except Exception as error:  # noqa: BLE001  (the code of a plugin may raise anything)
        log.warning("memory_provider_failed", provider=name, error=repr(error))
        return None
