"""Callbacks of a plugin over the hooks of Clew."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.core.payload import as_object
from clew.features.hermes import facts
from clew.features.hermes.values import is_object
from clew.features.hermes.worker import finish_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.plugin import Registry

log = structlog.get_logger(__name__)

#: The hooks of Clew that have the same name and arguments.
_SAME: Final = ("on_session_start", "on_session_finalize", "on_session_reset")


def declare_hooks(registry: Registry, plugin: LoadedPlugin, history: History) -> None:
    """Declare the hooks of which the plugin has callbacks."""
    for name in _SAME:
        if name in plugin.hooks:
            registry.add_hook(name, _Told(plugin, name).tell)
    if "on_session_end" in plugin.hooks:
        registry.add_hook("on_session_end", _Told(plugin, "on_session_end").tell_end)
    if "post_tool_call" in plugin.hooks:
        registry.add_hook("post_tool_call", _Told(plugin, "post_tool_call").tell_result)
    if "post_llm_call" in plugin.hooks:
        registry.add_hook("post_llm_call", _Answered(plugin, history).tell)
    if "pre_tool_call" in plugin.hooks or "tool_request" in plugin.middleware:
        registry.add_hook("pre_tool_call", _Asked(plugin).ask)


class History:
    """The messages of sessions whose turns this process has answered, the newest ones."""

    _MAX_MESSAGES: Final = 40
    _MAX_SESSIONS: Final = 200

    def __init__(self) -> None:
        self._messages: dict[str, list[dict[str, Any]]] = {}

    def add(self, session: str, said: str, answer: str) -> list[dict[str, Any]]:
        """Add a turn, and return the messages of its session."""
        found = self._messages.pop(session, [])
        turn = [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
        self._messages[session] = [*found, *turn][-self._MAX_MESSAGES :]
        if len(self._messages) > self._MAX_SESSIONS:
            del self._messages[next(iter(self._messages))]
        return list(self._messages[session])


class _Told:
    """A fact of Clew as a hook of Hermes."""

    def __init__(self, plugin: LoadedPlugin, hook: str) -> None:
        self._plugin, self._hook = plugin, hook

    def tell(self, session_id: str, platform: str, model: str | None = None) -> None:
        known = {"session_id": session_id, "platform": platform}
        self._run(known if model is None else {**known, "model": model})

    def tell_end(
        self,
        session_id: str,
        turn_id: str,
        completed: bool,
        interrupted: bool,
        model: str,
        platform: str,
    ) -> None:
        ids = facts.make_ids(session_id, turn_id)
        outcome = {"completed": completed, "interrupted": interrupted}
        self._run({**ids, **outcome, "model": model, "platform": platform})

    def tell_result(  # noqa: PLR0913  (as above)
        self,
        tool_name: str,
        args: Mapping[str, Any],
        result: Any,
        session_id: str,
        turn_id: str,
        tool_call_id: str,
        status: str,
        duration_ms: int,
    ) -> None:
        call = facts.make_call(
            tool_name=tool_name,
            args=args,
            session_id=session_id,
            turn_id=turn_id,
            tool_call_id=tool_call_id,
        )
        self._run(
            {**call, **facts.make_outcome(result=result, status=status, duration_ms=duration_ms)}
        )

    def _run(self, arguments: Mapping[str, Any]) -> None:
        callbacks = self._plugin.hooks[self._hook]
        # The caller waits in a thread of the plugin, with the time limit of its hooks.
        self._plugin.worker.submit(
            lambda: run_callbacks(self._plugin, callbacks, arguments)
        ).result()


class _Answered:
    """The end of an answered turn."""

    def __init__(self, plugin: LoadedPlugin, history: History) -> None:
        self._plugin, self._history = plugin, history

    def tell(
        self,
        session_id: str,
        turn_id: str,
        user_message: str,
        assistant_response: str,
        model: str,
        platform: str,
    ) -> None:
        arguments = {
            **facts.make_ids(session_id, turn_id),
            "user_message": user_message,
            "assistant_response": assistant_response,
            "conversation_history": self._history.add(session_id, user_message, assistant_response),
            "model": model,
            "platform": platform,
        }
        callbacks = self._plugin.hooks["post_llm_call"]
        self._plugin.worker.submit(
            lambda: run_callbacks(self._plugin, callbacks, arguments)
        ).result()


class _Asked:
    """The question whether a tool call may run."""

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._plugin = plugin

    def ask(
        self,
        tool_name: str,
        args: Mapping[str, Any],
        session_id: str,
        turn_id: str,
        tool_call_id: str,
    ) -> Mapping[str, Any] | None:
        call = facts.make_call(
            tool_name=tool_name,
            args=args,
            session_id=session_id or "",
            turn_id=turn_id,
            tool_call_id=tool_call_id,
        )
        # Silence is no consent: the caller is given up with the time limit of the hooks.
        return self._plugin.worker.submit(lambda: self._collect(call)).result()

    def _collect(self, call: Mapping[str, Any]) -> Mapping[str, Any] | None:
        plugin = self._plugin
        changed: dict[str, Any] | None = None
        for callback in plugin.middleware.get("tool_request", ()):
            for answer in run_callbacks(plugin, [callback], call):
                if is_object(given := as_object(answer).get("args")):
                    changed = as_object(given)
                    call = {**call, "args": changed}
        answers = run_callbacks(plugin, plugin.hooks.get("pre_tool_call", ()), call)
        return merge_answers(answers, changed)


def merge_answers(
    answers: Iterable[Any], changed: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the answer to Clew: a block beats an approval, in any order."""
    known = [as_object(one) for one in answers]
    for answer in known:
        if answer.get("action") == "block":
            return {"action": "block", "message": answer.get("message")}
    asks = any(answer.get("action") == "approve" for answer in known)
    merged: dict[str, Any] = {"action": "approve"} if asks else {}
    if changed is not None:
        merged["args"] = dict(changed)
    return merged or None


def run_callbacks(
    plugin: LoadedPlugin, callbacks: Iterable[Callable[..., Any]], arguments: Mapping[str, Any]
) -> list[Any]:
    """Run callbacks one after another, and return what they return; one that raises is logged."""
    answers: list[Any] = []
    for callback in callbacks:
        try:
            answer = finish_call(callback(**select_accepted(callback, arguments)))
        except Exception as error:  # noqa: BLE001  (the code of a plugin may raise anything)
            log.warning("hermes_hook_failed", plugin=plugin.name, error=repr(error))
            continue
        except SystemExit as error:
            log.warning("hermes_hook_failed", plugin=plugin.name, error=repr(error))
            continue
        if answer is not None:
            answers.append(answer)
    return answers


def select_accepted(
    callback: Callable[..., Any], arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments that a callback accepts by name."""
    arguments = facts.add_schema(arguments)
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return arguments
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return arguments
    names = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in arguments.items() if name in names}
