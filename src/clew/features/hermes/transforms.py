"""The hooks that change a text before it is stored: of a tool, of a terminal, of the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from clew.features.hermes import facts
from clew.features.hermes.hooks import run_callbacks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.plugin import Registry

_RESULT: Final = "transform_tool_result"
_TERMINAL: Final = "transform_terminal_output"
_ANSWER: Final = "transform_llm_output"
#: The tool of Clew that Hermes calls ``terminal``.
_SHELL: Final = "shell"
#: The end of a result of it, in words.
_ENDING: Final = re.compile(r"\[exit code (\d+)\b[^\n]*\](?:\n\[[^\n]*\])?\s*\Z")


def declare_transforms(registry: Registry, plugin: LoadedPlugin) -> None:
    """Declare the hooks of a plugin that change texts."""
    transforms = _Transforms(plugin)
    if _RESULT in plugin.hooks or _TERMINAL in plugin.hooks:
        registry.add_hook(_RESULT, transforms.change_result)
    if _ANSWER in plugin.hooks:
        registry.add_hook(_ANSWER, transforms.change_answer)


class _Transforms:
    """The callbacks of one plugin; of several that return a text, the first one counts."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin = plugin

    def change_answer(
        self, response_text: str, session_id: str, model: str, platform: str
    ) -> str | None:
        """Return what takes the place of an answer."""
        known = {"session_id": session_id, "model": model, "platform": platform}
        return self._ask(_ANSWER, {**known, "response_text": response_text})

    def change_result(  # noqa: PLR0913  (names and arguments are the field's)
        self,
        tool_name: str,
        args: Mapping[str, Any],
        result: str,
        session_id: str,
        turn_id: str,
        tool_call_id: str,
        status: str,
        duration_ms: int,
    ) -> str | None:
        """Return what takes the place of a tool's result."""
        shown = self._change_output(args, result, session_id) if tool_name == _SHELL else None
        call = facts.make_call(
            tool_name=tool_name,
            args=args,
            session_id=session_id,
            turn_id=turn_id,
            tool_call_id=tool_call_id,
        )
        told = result if shown is None else shown
        outcome = facts.make_outcome(result=told, status=status, duration_ms=duration_ms)
        changed = self._ask(_RESULT, {**call, **outcome})
        return shown if changed is None else changed

    def _change_output(self, args: Mapping[str, Any], result: str, session: str) -> str | None:
        """Return a result of the shell with another output; its last line stays."""
        ending = _ENDING.search(result)
        if ending is None:
            return None
        output = result[: ending.start()].removesuffix("\n")
        arguments = {
            "command": str(args.get("command", "")),
            "output": output,
            "returncode": int(ending[1]),
            "task_id": session,
            "env_type": "local",
        }
        changed = self._ask(_TERMINAL, arguments)
        return None if changed is None else f"{changed}\n{ending[0]}"

    def _ask(self, hook: str, arguments: Mapping[str, Any]) -> str | None:
        callbacks = self._plugin.hooks.get(hook, ())
        if not callbacks:
            return None
        # The caller waits in a thread of the plugin, with the time limit of its hooks.
        answers = self._plugin.worker.submit(
            lambda: run_callbacks(self._plugin, callbacks, arguments)
        ).result()
        return next((one for one in answers if isinstance(one, str)), None)
