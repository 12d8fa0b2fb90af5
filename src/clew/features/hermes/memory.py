"""Memory providers of plugins: recall beside a message, and what was said after each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.features.hermes.loaded import HermesTool
from clew.features.hermes.notes import read_message
from clew.features.hermes.tools import declare_tools
from clew.features.hermes.worker import BriefCalls
from clew.plugin import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.plugin import Registry, TurnContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Seconds for a provider to open its store, or to say what the model is told of it.
_OPEN_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 2.0


def declare_memory(registry: Registry, plugin: LoadedPlugin) -> None:
    """Declare the memory provider of a plugin, if it has one that is available."""
    if plugin.memory_provider is None:
        return
    memory = HermesMemory(plugin)
    if not memory.open():
        plugin.unused.append("its memory provider says that it is not available")
        return
    registry.add_context_note(f"hermes memory {plugin.name}", memory.make_notes)
    registry.add_instructions(f"hermes memory {plugin.name}", memory.render)
    plugin.hooks.setdefault("post_llm_call", []).append(memory.keep_turn)
    plugin.hooks.setdefault("on_session_reset", []).append(memory.switch)
    memory.declare_tools(registry)


def close_providers(plugins: Iterable[LoadedPlugin]) -> None:
    """Let the memory providers of plugins write what they have, within a time limit."""
    for plugin in plugins:
        if plugin.memory_provider is not None:
            HermesMemory(plugin).close()


class HermesMemory:
    """A memory provider; its methods run in the thread of its plugin."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin, self._provider = plugin, plugin.memory_provider
        self._brief_calls = BriefCalls(plugin.worker)
        self._sessions: set[str] = set()

    def open(self) -> bool:
        """Return whether the provider is available."""
        return bool(self._call(lambda: self._ask("is_available"), seconds=_OPEN_SECONDS))

    def close(self) -> None:
        """Let the provider end."""
        self._call(lambda: self._ask("shutdown"), seconds=_CLOSE_SECONDS)

    def declare_tools(self, registry: Registry) -> None:
        """Declare the tools of the provider as tools of its plugin."""
        schemas = self._call(lambda: self._ask("get_tool_schemas"), seconds=_OPEN_SECONDS) or ()
        before = set(self._plugin.tools)
        for schema in schemas:
            name = str(schema.get("name", ""))
            self._plugin.tools[name] = HermesTool(
                name=name,
                toolset="memory",
                description=str(schema.get("description", "")),
                parameters=schema.get("parameters") or {"type": "object", "properties": {}},
                handler=self._make_handler(name),
                check=None,
                requires_env=(),
            )
        declare_tools(registry, self._plugin, only=set(self._plugin.tools) - before)

    def make_notes(self, t: Tx, context: TurnContext) -> list[Note]:
        """Return what the provider recalls about the message."""
        said, session = read_message(t, context), context.session
        if not said:
            return []

        def recall() -> Any:
            self._enter(session)
            return self._ask("prefetch", said, session_id=session)

        found = self._guard(lambda: self._brief_calls.call(recall))
        return [Note(text=found)] if isinstance(found, str) and found.strip() else []

    def render(self) -> str | None:
        """Return what the provider says to the model when a session opens."""
        found = self._call(lambda: self._ask("system_prompt_block"), seconds=_OPEN_SECONDS)
        return found if isinstance(found, str) and found.strip() else None

    def keep_turn(
        self, session_id: str, user_message: str, assistant_response: str, **more: Any
    ) -> None:
        """Pass the provider what was said in a turn; called as a hook of the plugin."""
        self._enter(session_id)
        self._ask("sync_turn", user_message, assistant_response, session_id=session_id)

    def switch(self, session_id: str, **more: Any) -> None:
        """Tell the provider that another session goes on; as above."""
        self._ask("on_session_switch", session_id, reset=True)

    def _enter(self, session: str) -> None:
        """Initialize the provider for a session, once."""
        if session not in self._sessions:
            self._sessions.add(session)
            self._ask("initialize", session)

    def _make_handler(self, name: str) -> Callable[..., Any]:
        def handle(args: dict[str, Any], session_id: str = "") -> Any:
            def run() -> Any:
                self._enter(session_id)
                return self._ask("handle_tool_call", name, args)

            return self._plugin.worker.submit(run).result()

        return handle

    def _ask(self, method: str, *args: Any, **more: Any) -> Any:
        """Call a method of the provider, if it has it."""
        found = getattr(self._provider, method, None)
        return found(*args, **more) if callable(found) else None

    def _call(self, job: Callable[[], Any], *, seconds: float) -> Any:
        """Return what a job in the thread of the plugin returns; ``None`` if it fails."""
        return self._guard(lambda: self._plugin.worker.call(job, seconds=seconds))

    def _guard(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # noqa: BLE001  (the code of a plugin may raise anything)
            log.warning("hermes_memory_failed", plugin=self._plugin.name, error=repr(error))
            return None
