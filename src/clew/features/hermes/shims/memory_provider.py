"""Base class of memory providers (``agent.memory_provider``)."""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BaseMemoryProvider:
    """A memory provider; what a plugin does not define does nothing."""

    @property
    def name(self) -> str:
        return type(self).__name__

    def is_available(self) -> bool:
        return True

    def initialize(self, session_id: str, **more: Any) -> None:
        """Prepare for a session."""

    def system_prompt_block(self) -> str:
        return ""

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        return ""

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Recall in the background."""

    def sync_turn(self, user_content: str, assistant_content: str, **more: Any) -> None:
        """Keep what was said."""

    def get_tool_schemas(self) -> Sequence[dict[str, Any]]:
        return ()

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **more: Any) -> str:
        raise NotImplementedError(f"{self.name} has no tool {tool_name!r}")

    def shutdown(self) -> None:
        """End."""

    def on_turn_start(self, *args: Any, **more: Any) -> None:
        """Note that a turn begins."""

    def on_session_end(self, messages: Any) -> None:
        """Note that a session ends."""

    def on_session_switch(self, new_session_id: str, **more: Any) -> None:
        """Note that another session goes on."""

    def on_pre_compress(self, messages: Any) -> str:
        return ""

    def on_memory_write(self, *args: Any, **more: Any) -> None:
        """Note that something was remembered elsewhere."""

    def on_delegation(self, *args: Any, **more: Any) -> None:
        """Note that another agent was given a task."""

    def get_config_schema(self) -> Sequence[dict[str, Any]]:
        return ()

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Save settings."""

    def backup_paths(self) -> Sequence[str]:
        return ()


#: The name under which plugins import it.
MemoryProvider = BaseMemoryProvider


def spawn_context_thread(
    target: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    daemon: bool = True,
    **more: Any,
) -> threading.Thread:
    """Return a thread, not started, that runs in the context of its maker."""
    given = more.pop("args", ()) or args
    named = more.pop("kwargs", None) or more
    context = copy_context()
    return threading.Thread(
        target=lambda: context.run(target, *given, **named), name=name, daemon=daemon
    )
