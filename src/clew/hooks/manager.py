"""Plugin manager: finds and loads plugins, and calls them so that none delays others."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import json
import queue
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import Context, copy_context
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pluggy
import structlog

from clew.errors import SettingsError
from clew.hooks import specs
from clew.hooks.discovery import find_plugin, load_plugin_object
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

log = structlog.get_logger(__name__)

#: Attribute of a plugin with the names of its settings; without it all are passed on.
OPTIONS_ATTRIBUTE = "OPTIONS"
#: Seconds that one hook call may take; halved after each timeout in a row.
HOOK_TIMEOUT = 5.0
#: Seconds that a plugin may take for its set-up: a program waits for it at its start.
CONFIGURE_TIMEOUT = 10.0
_MIN_TIMEOUT_FACTOR = 1 / 16
#: Seconds in which a plugin's failures of one kind are logged only once.
_LOG_INTERVAL = 60.0
#: Calls that may be queued for a slow plugin; further ones are dropped and logged.
_MAX_QUEUED_CALLS = 1000
#: Characters of a plugin's message.
_MAX_MESSAGE_CHARS = 2000
#: Characters of a text that a plugin puts in place of another.
MAX_TEXT_CHARS = 2_000_000


class ToolVerdict(Record):
    """Combined answer of the plugins to a tool call."""

    #: Reason for a block; ``None`` if not blocked.
    block: str | None = None
    #: Approval is required.
    approve: bool = False
    #: Changed arguments.
    args: dict[str, Any] | None = None


class DispatchVerdict(Record):
    """Combined answer of the plugins to a message from a chat platform."""

    #: Reason to drop it; ``None`` to keep it.
    skip: str | None = None
    #: Its text instead of the one that was written.
    text: str | None = None


class PluginManager:
    """
    Plugins of one process.

    Each has its own thread, in which its hooks run one after another: a plugin that hangs
    blocks only itself. Asynchronous hooks also run in that thread, in their own event loop.

    After a timeout a plugin is not called until it has finished: facts in the meantime are
    dropped, and questions count as unanswered.
    """

    def __init__(self, timeout: float = HOOK_TIMEOUT) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._timeout = timeout
        self._threads: dict[str, _PluginThread] = {}
        self._warnings = _WarningThrottle()
        #: The arguments of each callback, by plugin and hook.
        self._argument_names: dict[tuple[str, str], Collection[str]] = {}

    def register_plugin(self, plugin: object, name: str, *, timeout: float | None = None) -> None:
        """Register a plugin under its own name; ``timeout`` is for its calls alone."""
        self._manager.register(plugin, name=name)
        for hook in self._manager.get_hookcallers(plugin) or ():
            spec = hook.spec
            for impl in hook.get_hookimpls():
                if impl.plugin_name == name and spec is not None:
                    taken = select_argument_names(impl.function, of=spec.argnames)
                    self._argument_names[name, hook.name] = taken
        self._threads[name] = _PluginThread(name, timeout or self._timeout)

    @property
    def plugin_names(self) -> Sequence[str]:
        return tuple(self._threads)

    def implements_hook(self, hook: str) -> bool:
        """Return whether any plugin implements the hook."""
        return bool(self._get_implementations(hook))

    def accepts_options(self, name: str) -> bool:
        """Return whether a plugin has its own settings."""
        return any(impl.plugin_name == name for impl in self._get_implementations("configure"))

    def configure_plugin(self, name: str, options: object) -> None:
        """
        Pass a plugin its settings; its exceptions are not caught.

        :raises TimeoutError: if it does not return
        """
        for impl in self._get_implementations("configure"):
            if impl.plugin_name == name:
                taken = self._argument_names[name, "configure"]
                arguments = {"options": options} if "options" in taken else {}
                function = cast("Callable[..., object]", impl.function)
                done = self._threads[name].submit_call(partial(_run_hook, function, arguments))
                _wait_for(done)

    async def notify_plugins(
        self, hook: str, facts: Mapping[str, object], *, plugin: str | None = None
    ) -> None:
        """Send a fact to all plugins or to one; return once each was called or given up."""
        calls = [
            self._call_hook(hook, impl, facts)
            for impl in self._get_implementations(hook)
            if plugin in (None, impl.plugin_name)
        ]
        await asyncio.gather(*calls)

    async def run_pre_tool_call(self, **call: object) -> ToolVerdict:
        """Ask all plugins about a tool call."""
        impls = self._get_implementations("pre_tool_call")
        if not impls:
            return ToolVerdict()
        asked = (self._call_hook("pre_tool_call", impl, call) for impl in impls)
        answers = await asyncio.gather(*asked)
        verdicts: list[ToolVerdict] = []
        for impl, answer in zip(impls, answers, strict=True):
            if (verdict := _parse_answer(impl.plugin_name, answer)) is None:
                self._warnings.log_warning(
                    "hook_answer_unusable", impl, answer=_format_value(answer)
                )
            else:
                verdicts.append(verdict)
        return _merge_verdicts(verdicts)

    async def transform_text(
        self, hook: str, argument: str, text: str, **facts: object
    ) -> str | None:
        """
        Pass a text through the plugins with a hook; return it if one changed it, else ``None``.

        One that fails, hangs, or returns no text or one that is too long changes nothing.
        """
        changed: str | None = None
        for impl in self._get_implementations(hook):
            before = text if changed is None else changed
            answer = await self._call_hook(hook, impl, {**facts, argument: before})
            if isinstance(answer, str) and len(answer) <= MAX_TEXT_CHARS:
                changed = answer
            elif answer is not None and answer is not _TIMED_OUT:
                shown = _format_value(answer)
                self._warnings.log_warning("hook_answer_unusable", impl, answer=shown)
        return changed

    async def run_pre_gateway_dispatch(self, **message: object) -> DispatchVerdict:
        """Ask all plugins about a message from a chat platform: a skip beats a rewrite."""
        impls = self._get_implementations("pre_gateway_dispatch")
        if not impls:
            return DispatchVerdict()
        asked = (self._call_hook("pre_gateway_dispatch", impl, message) for impl in impls)
        answers = await asyncio.gather(*asked)
        verdicts = list(map(_parse_dispatch, answers))
        texts = [one.text for one in verdicts if one.text is not None]
        return DispatchVerdict(
            skip=next((one.skip for one in verdicts if one.skip is not None), None),
            text=texts[0] if texts else None,
        )

    def close(self) -> None:
        """Let the threads end, without waiting for calls that hang."""
        for line in self._threads.values():
            line.close()

    def _get_implementations(self, hook: str) -> list[pluggy.HookImpl]:
        return list(getattr(self._manager.hook, hook).get_hookimpls())

    async def _call_hook(
        self, hook: str, impl: pluggy.HookImpl, facts: Mapping[str, object]
    ) -> object:
        line = self._threads[impl.plugin_name]
        if line.is_hanging:
            self._warnings.log_warning("hook_left_out", impl)
            return _TIMED_OUT
        # Copies: changes by one plugin must not be visible to others.
        taken = self._argument_names[impl.plugin_name, hook]
        arguments = {name: deepcopy(facts[name]) for name in taken if name in facts}
        function = cast("Callable[..., object]", impl.function)
        # The thread gets the caller's context: the turn, or the session that the call is about.
        context = copy_context()
        answer = line.submit_call(lambda: context.run(_run_hook, function, arguments))
        try:
            async with asyncio.timeout(line.call_timeout):
                result = await asyncio.wrap_future(answer)
        except TimeoutError:
            line.record_timeout()
            self._warnings.log_warning("hook_timed_out", impl)
            return _TIMED_OUT
        except Exception as error:  # noqa: BLE001  (the place per hook call: a plugin may raise anything)
            self._warnings.log_warning("hook_failed", impl, exc_info=error)
            result = None
        line.record_answer()
        return result


def select_argument_names(callback: object, *, of: Sequence[str]) -> Collection[str]:
    """
    Return which of the arguments ``of`` a callback accepts.

    Pluggy passes those that are named without a default, and nothing to ``**kwargs``.
    """
    found = inspect.signature(cast("Callable[..., object]", callback)).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in found):
        named_only = {one.name for one in found if one.kind is one.POSITIONAL_ONLY}
        return [name for name in of if name not in named_only]
    by_name = {
        one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    return [name for name in of if name in by_name]


class _WarningThrottle:
    """Throttle of warnings about plugins, so that one that always fails cannot fill the log."""

    def __init__(self) -> None:
        #: Time of the last log entry of each, and the number suppressed since.
        self._last_logged: dict[tuple[str, str, str], tuple[float, int]] = {}

    def log_warning(self, event: str, impl: pluggy.HookImpl, **more: object) -> None:
        hook = impl.function.__name__
        key, now = (event, impl.plugin_name, hook), time.monotonic()
        before, quiet = self._last_logged.get(key, (now - _LOG_INTERVAL, 0))
        if now - before < _LOG_INTERVAL:
            self._last_logged[key] = before, quiet + 1
            return
        self._last_logged[key] = now, 0
        log.warning(event, plugin=impl.plugin_name, hook=hook, not_logged=quiet, **more)


def _wait_for(done: _Future) -> None:
    try:
        done.result(CONFIGURE_TIMEOUT)
    except FutureTimeout as error:
        message = f"configure has not returned within {CONFIGURE_TIMEOUT:g} seconds"
        raise TimeoutError(message) from error


_TIMED_OUT = object()
_Future = Future[object]


class _PluginThread:
    """Queue of one plugin's calls and its thread, which does not delay the exit."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name, self._timeout = name, timeout
        #: Start of the running call; ``None`` between calls.
        self._call_started: float | None = None
        self._timeout_count = 0
        self._calls: queue.Queue[tuple[Callable[[], object], _Future] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def call_timeout(self) -> float:
        """Return the seconds that the next call may take: each timeout in a row halves it."""
        return self._timeout * max(_MIN_TIMEOUT_FACTOR, 0.5**self._timeout_count)

    @property
    def is_hanging(self) -> bool:
        """Return whether the plugin is still in a call that was given up."""
        since = self._call_started
        return (
            self._timeout_count > 0
            and since is not None
            and time.monotonic() - since > self.call_timeout
        )

    def record_timeout(self) -> None:
        """Record that a call took too long."""
        self._timeout_count += 1

    def record_answer(self) -> None:
        """Record that a call finished in time, successfully or not."""
        self._timeout_count = 0

    def submit_call(self, call: Callable[[], object]) -> _Future:
        answer = _Future()
        if self._calls.qsize() >= _MAX_QUEUED_CALLS:
            log.warning("hook_left_out", plugin=self._name)
            answer.set_result(None)
            return answer
        self._calls.put((call, answer))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run_calls, name=f"plugin:{self._name}", daemon=True
            )
            # Not in the context of the first caller.
            Context().run(self._thread.start)
        return answer

    def close(self) -> None:
        self._calls.put(None)

    def _run_calls(self) -> None:
        while (item := self._calls.get()) is not None:
            call, answer = item
            # Nothing waits for a cancelled call: a fact that was given up is not sent late.
            if answer.set_running_or_notify_cancel():
                self._call_started = time.monotonic()
                _run_call(call, answer)
                self._call_started = None


def _run_call(call: Callable[[], object], answer: _Future) -> None:
    try:
        result = call()
    except StopIteration as error:
        # A future cannot pass StopIteration on: the waiting coroutine would hang.
        answer.set_exception(RuntimeError(f"StopIteration: {error}"))
    except Exception as error:  # noqa: BLE001  (raised to the waiting caller)
        answer.set_exception(error)
    except BaseException as error:  # noqa: BLE001  (SystemExit must not end the plugin's thread)
        answer.set_exception(RuntimeError(f"the plugin raised {type(error).__name__}"))
    else:
        answer.set_result(result)


def _run_hook(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Call a hook, and run it to completion if it is asynchronous."""
    result = function(**arguments)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def _parse_answer(plugin: str, answer: object) -> ToolVerdict | None:
    """Return the verdict in an answer, which may be any object; ``None`` if it has none."""
    if answer is None:
        return ToolVerdict()
    if answer is _TIMED_OUT:
        return ToolVerdict(block=f"the plugin {plugin} did not answer in time")
    if not isinstance(answer, dict):
        return None
    try:
        return _parse_verdict(plugin, dict(cast("dict[str, Any]", answer)))
    except Exception:  # noqa: BLE001  (a plugin may answer anything)
        return None


def _parse_verdict(plugin: str, answer: dict[str, Any]) -> ToolVerdict | None:
    action, args = answer.get("action"), answer.get("args")
    if action == "block":
        return ToolVerdict(
            block=_format_value(answer.get("message") or f"blocked by the plugin {plugin}")
        )
    if not isinstance(args, dict):
        known = action in ("approve", "allow")
        return ToolVerdict(approve=action == "approve") if known else None
    try:
        args = json.loads(json.dumps(args))
    except (TypeError, ValueError, RecursionError):
        # A call that a plugin wanted to change must not run unchanged.
        return ToolVerdict(block=f"the plugin {plugin} returned arguments that are not JSON")
    return ToolVerdict(approve=action == "approve", args=args)


def _parse_dispatch(answer: object) -> DispatchVerdict:
    """Return the verdict in an answer, which may be any object."""
    if not isinstance(answer, dict):
        return DispatchVerdict()
    given = cast("dict[str, object]", answer)
    if given.get("action") == "skip":
        return DispatchVerdict(skip=_format_value(given.get("reason") or "it gave no reason"))
    text = given.get("text")
    if given.get("action") == "rewrite" and isinstance(text, str):
        return DispatchVerdict(text=text)
    return DispatchVerdict()


def _format_value(value: object) -> str:
    try:
        return (value if isinstance(value, str) else repr(value))[:_MAX_MESSAGE_CHARS]
    except Exception:  # noqa: BLE001  (a plugin may answer anything)
        return f"({type(value).__name__})"


def _merge_verdicts(verdicts: Iterable[ToolVerdict]) -> ToolVerdict:
    """Merge the verdicts: a block beats an approval, in any order."""
    approve, args = False, None
    for verdict in verdicts:
        if verdict.block is not None:
            return verdict
        approve = approve or verdict.approve
        args = args if verdict.args is None else verdict.args
    return ToolVerdict(approve=approve, args=args)


def load_plugins(
    plugins: PluginManager,
    folder: Path,
    enabled: Sequence[str],
    options: Mapping[str, object] = MappingProxyType({}),
    *,
    loaded: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """
    Load the enabled plugins: entry points in ``clew.plugins``, and files in ``folder``.

    Each receives its entry in ``options``. Those in ``loaded`` are not imported again.

    :raises SettingsError: naming a plugin that cannot be found or loaded
    """
    for name in enabled:
        try:
            plugin = loaded[name] if name in loaded else load_plugin_object(folder, name)
            plugins.register_plugin(plugin, name)
            _check_options(plugins, plugin, name, options.get(name, {}))
            plugins.configure_plugin(name, options.get(name, {}))
        except SettingsError:
            raise
        except Exception as error:
            raise SettingsError(
                f"plugins.enabled: {name!r} cannot be loaded: {type(error).__name__}: {error}"
            ) from error


def find_plugin_problems(
    folder: Path, enabled: Sequence[str], options: Mapping[str, object]
) -> list[str]:
    """Return a sentence for each table of an unknown plugin, and each unknown key of a plugin."""
    return [
        problem
        for name, table in options.items()
        for problem in _find_table_problems(folder, name, table, is_enabled=name in enabled)
    ]


def _find_table_problems(
    folder: Path, name: str, table: object, *, is_enabled: bool
) -> tuple[str, ...]:
    try:
        if not is_enabled:
            find_plugin(folder, name)
            return ()
        plugins, plugin = PluginManager(), load_plugin_object(folder, name)
        plugins.register_plugin(plugin, name)
        _check_options(plugins, plugin, name, table)
    except SettingsError as error:
        return tuple(
            text.replace("plugins.enabled:", f"plugins.{name}:") for text in error.problems
        )
    except Exception:  # noqa: BLE001  (its own code; reported on loading)
        return ()
    return ()


def _check_options(plugins: PluginManager, plugin: object, name: str, table: object) -> None:
    """
    Check the settings of a plugin.

    :raises SettingsError: if the plugin does not have one of them
    """
    given = list(cast("Mapping[str, object]", table)) if isinstance(table, Mapping) else []
    if given and not plugins.accepts_options(name):
        raise SettingsError(
            f"plugins.{name}.{given[0]}: the plugin {name!r} has no settings, because it has no "
            "hook configure"
        )
    declared: object = getattr(plugin, OPTIONS_ATTRIBUTE, None)
    if declared is None:
        return
    known = sorted(cast("Iterable[str]", declared))
    if problems := [_format_unknown_key(name, key, known) for key in given if key not in known]:
        raise SettingsError(*problems)


def _format_unknown_key(name: str, key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f"did you mean plugins.{name}.{close[0]}?" if close else f"it has {', '.join(known)}"
    return f"there is no setting plugins.{name}.{key}; {meant}"
