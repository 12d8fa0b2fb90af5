"""The ``ctx`` with which a plugin registers: the members that plugins of Hermes expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object
from clew.features.hermes.injection import inject_message
from clew.features.hermes.llm import PluginLlm
from clew.features.hermes.loaded import HermesCliCommand, HermesCommand, HermesTool
from clew.features.hermes.offered import (
    REFUSED,
    explain_hook,
    explain_middleware,
    explain_registration,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.features.hermes.manifest import Manifest
    from clew.features.hermes.state import HostState

_ANY_OBJECT: Final[dict[str, Any]] = {"type": "object", "properties": {}}


class NotOffered(AttributeError):
    """
    Clew does not have the member of ``ctx``; the text says so.

    It is an ``AttributeError``, so that plugins which probe with ``hasattr`` or ``getattr`` find
    that the member is not there.
    """


class PluginContext:
    """Object with which a plugin registers."""

    def __init__(self, state: HostState, plugin: LoadedPlugin) -> None:
        self._state, self._plugin = state, plugin
        #: Access to the model of the settings.
        self.llm = PluginLlm(state, plugin.name)

    @property
    def manifest(self) -> Manifest:
        return self._plugin.manifest

    @property
    def profile_name(self) -> str:
        """Return ``default``: there are no profiles."""
        return "default"

    def register_hook(self, hook_name: str, callback: Callable[..., Any]) -> None:
        """Register a callback; one of a hook that Clew does not have is never called."""
        self._plugin.hooks.setdefault(hook_name, []).append(callback)
        if (why := explain_hook(hook_name)) is not None:
            self._leave_out(why)

    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None:
        """Register a middleware; of the kinds, only ``tool_request`` is called."""
        self._plugin.middleware.setdefault(kind, []).append(callback)
        if (why := explain_middleware(kind)) is not None:
            self._leave_out(why)

    def register_tool(  # noqa: PLR0913  (the parameters are those of Hermes)
        self,
        name: str,
        toolset: str = "",
        schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        check_fn: Callable[[], Any] | None = None,
        requires_env: Sequence[str] | None = None,
        is_async: bool = False,
        description: str = "",
        emoji: str = "",
        override: bool = False,
        **more: Any,
    ) -> None:
        """Register a tool; whether a handler is asynchronous shows when it is called."""
        if handler is None:
            self._leave_out(f"the tool {name!r} has no handler")
            return
        given = dict(schema or {})
        self._plugin.tools[name] = HermesTool(
            name=name,
            toolset=toolset,
            description=description or str(given.get("description", "")),
            parameters=_find_parameters(given),
            handler=handler,
            check=check_fn,
            requires_env=tuple(str(one) for one in requires_env or ()),
        )

    def register_command(
        self,
        name: str,
        handler: Callable[[str], Any],
        description: str = "",
        args_hint: str = "",
        **more: Any,
    ) -> None:
        """Register a chat command."""
        self._plugin.commands[name] = HermesCommand(
            name=name, handler=handler, description=description, args_hint=args_hint
        )

    def register_cli_command(
        self,
        name: str,
        help: str = "",
        setup_fn: Callable[[Any], Any] | None = None,
        handler_fn: Callable[[Any], Any] | None = None,
        description: str = "",
        **more: Any,
    ) -> None:
        """Register a command for the terminal."""
        self._plugin.cli_commands[name] = HermesCliCommand(
            name=name, help=help or description, setup=setup_fn, handler=handler_fn
        )

    def register_skill(
        self, name: str, path: str | Path, description: str = "", **more: Any
    ) -> None:
        """Register a skill: its folder, or the ``SKILL.md`` in it."""
        found = Path(path)
        self._plugin.skills[name] = found.parent if found.suffix == ".md" else found

    def register_system_prompt_section(self, name: str, text: Any, **more: Any) -> None:
        """Register a part of the instructions."""
        self._plugin.instructions[name] = str(text() if callable(text) else text)

    def register_memory_provider(self, provider: Any, **more: Any) -> None:
        """Register a memory provider: an object, or a class that is called without arguments."""
        self._plugin.memory_provider = provider() if isinstance(provider, type) else provider

    def register_auxiliary_task(self, key: str, *args: Any, **more: Any) -> None:
        """Accept a task for which the plugin asks a model: it is asked the one of the settings."""

    def dispatch_tool(self, name: str, args: Mapping[str, Any] | None = None, **more: Any) -> str:
        """Call a tool of an enabled Hermes plugin; those of Clew run only in turns."""
        for plugin in self._state.plugins:
            if (tool := plugin.tools.get(name)) is not None:
                from clew.features.hermes.tools import run_handler  # noqa: PLC0415  (imports the hooks)

                return run_handler(tool, dict(args or {}))
        problem = f"no enabled Hermes plugin has the tool {name!r}, and those of Clew run only in"
        return json.dumps({"error": f"{problem} turns, where their calls are stored and approved"})

    def inject_message(self, content: str, role: str = "user", **more: Any) -> bool:
        """Tell the model of the conversation that the calling hook or tool is about."""
        return inject_message(self._state, str(content))

    def __getattr__(self, name: str) -> Any:
        """Accept any other ``register_…``, and say of everything else that it is not there."""
        if name in REFUSED:
            raise NotOffered(_explain(name, REFUSED[name]))
        if name.startswith("register_"):
            return self._make_sink(name)
        if name.startswith("_"):
            raise NotOffered(f"ctx.{name} is a private part of Hermes Agent, which Clew is not")
        raise NotOffered(_explain(name, "the page on Hermes plugins lists what there is"))

    def _make_sink(self, name: str) -> Callable[..., None]:
        def accept(*args: Any, **more: Any) -> None:
            called = args[0] if args and isinstance(args[0], str) else more.get("name")
            what = f"{name}({called!r})" if isinstance(called, str) else name
            self._leave_out(explain_registration(what, name))

        return accept

    def _leave_out(self, sentence: str) -> None:
        if sentence not in self._plugin.unused:
            self._plugin.unused.append(sentence)


def _explain(name: str, why: str) -> str:
    return f"Clew does not offer ctx.{name} to Hermes plugins: {why}"


def _find_parameters(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the arguments in a description of a function, or the schema itself."""
    given = as_object(schema.get("function")) or schema
    if found := as_object(given.get("parameters")):
        return found
    return schema if schema.get("type") == "object" else _ANY_OBJECT
