"""Plugins: finding them, and calling them so that none can hold anybody up."""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import inspect
import json
import queue
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextvars import Context, copy_context
from copy import deepcopy
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import pluggy
import structlog

from clew.errors import SettingsError
from clew.hooks import specs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from importlib.metadata import EntryPoint
    from types import ModuleType

log = structlog.get_logger(__name__)

GROUP = "clew.plugins"
#: In a plugin, the names of the settings that it has; without it all are handed on.
DECLARED = "OPTIONS"
#: Seconds that one call of a hook may take; less each time for a plugin that went beyond it.
TIMEOUT = 5.0
_LEAST = 1 / 16
#: Seconds in which a plugin's failures of one kind are logged once.
_QUIET = 60.0
#: Calls that may wait for a plugin that is behind; what comes on top is left out and logged.
_MOST = 1000
#: Characters of what a plugin says.
_LONGEST = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the plugins say to a tool call."""

    #: Why it is blocked; ``None`` if it is not.
    block: str | None = None
    #: A person is asked first.
    approve: bool = False
    #: Changed arguments.
    args: dict[str, Any] | None = None


class Plugins:
    """
    The plugins of one process.

    Each has a thread of its own, in which its hooks run one after another: a plugin that hangs
    holds up only itself. Asynchronous hooks run in that thread too, in an event loop of their own.

    A plugin that did not answer in time is not called again while it is still at it: facts that
    come meanwhile are left out, and what it is asked counts as not answered.
    """

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)
        self._timeout = timeout
        self._lines: dict[str, _Line] = {}
        self._complaints = _Complaints()
        #: The arguments that a callback is given, by its plugin and hook.
        self._taken: dict[tuple[str, str], Collection[str]] = {}

    def add(self, plugin: object, name: str) -> None:
        """Register a plugin under a name of its own."""
        self._manager.register(plugin, name=name)
        for hook in self._manager.get_hookcallers(plugin) or ():
            spec = hook.spec
            for impl in hook.get_hookimpls():
                if impl.plugin_name == name and spec is not None:
                    taken = taken_by(impl.function, of=spec.argnames)
                    self._taken[name, hook.name] = taken
        self._lines[name] = _Line(name, self._timeout)

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._lines)

    def implements(self, hook: str) -> bool:
        """Whether any plugin would be called."""
        return bool(self._impls(hook))

    def takes_options(self, name: str) -> bool:
        """Return whether a plugin has settings of its own."""
        return any(impl.plugin_name == name for impl in self._impls("configure"))

    def configure(self, name: str, options: object) -> None:
        """Give a plugin its own settings. Whatever it raises comes through."""
        for impl in self._impls("configure"):
            if impl.plugin_name == name:
                taken = self._taken[name, "configure"]
                arguments = {"options": options} if "options" in taken else {}
                cast("Callable[..., object]", impl.function)(**arguments)

    async def tell(
        self, hook: str, facts: Mapping[str, object], *, plugin: str | None = None
    ) -> None:
        """Tell a fact, to all plugins or to one, and return when each was called or given up."""
        calls = [
            self._called(hook, impl, facts)
            for impl in self._impls(hook)
            if plugin in (None, impl.plugin_name)
        ]
        await asyncio.gather(*calls)

    async def ask_tool(self, **call: object) -> Verdict:
        """Ask all plugins about a tool call."""
        impls = self._impls("pre_tool_call")
        if not impls:
            return Verdict()
        asked = (self._called("pre_tool_call", impl, call) for impl in impls)
        answers = await asyncio.gather(*asked)
        verdicts: list[Verdict] = []
        for impl, answer in zip(impls, answers, strict=True):
            if (verdict := _read(impl.plugin_name, answer)) is None:
                self._complaints.add("hook_answer_unusable", impl, answer=_shown(answer))
            else:
                verdicts.append(verdict)
        return _together(verdicts)

    def close(self) -> None:
        """Let the threads end; calls that hang are not waited for."""
        for line in self._lines.values():
            line.close()

    def _impls(self, hook: str) -> list[pluggy.HookImpl]:
        return list(getattr(self._manager.hook, hook).get_hookimpls())

    async def _called(
        self, hook: str, impl: pluggy.HookImpl, facts: Mapping[str, object]
    ) -> object:
        line = self._lines[impl.plugin_name]
        if line.hangs:
            self._complaints.add("hook_left_out", impl)
            return _TIMED_OUT
        # Copies: what one plugin does with its arguments another must not see.
        taken = self._taken[impl.plugin_name, hook]
        arguments = {name: deepcopy(facts[name]) for name in taken if name in facts}
        function = cast("Callable[..., object]", impl.function)
        # In its thread it sees what whoever tells it sees: the turn, or the session it is told of.
        context = copy_context()
        answer = line.put(lambda: context.run(_whole, function, arguments))
        try:
            async with asyncio.timeout(line.patience):
                result = await asyncio.wrap_future(answer)
        except TimeoutError:
            line.missed()
            self._complaints.add("hook_timed_out", impl)
            return _TIMED_OUT
        except Exception as error:  # noqa: BLE001  (one of the places; logged with traceback)
            self._complaints.add("hook_failed", impl, exc_info=error)
            result = None
        line.answered()
        return result


def taken_by(callback: object, *, of: Sequence[str]) -> Collection[str]:
    """
    Return which of the arguments ``of`` a callback can be given.

    Pluggy gives those that are named without a default, and nothing to ``**kwargs``.
    """
    found = inspect.signature(cast("Callable[..., object]", callback)).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in found):
        named_only = {one.name for one in found if one.kind is one.POSITIONAL_ONLY}
        return [name for name in of if name not in named_only]
    by_name = {
        one.name for one in found if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }
    return [name for name in of if name in by_name]


class _Complaints:
    """What the log is told of plugins: a plugin that always fails must not fill it."""

    def __init__(self) -> None:
        #: When each was logged last, and how many were kept quiet since.
        self._known: dict[tuple[str, str, str], tuple[float, int]] = {}

    def add(self, event: str, impl: pluggy.HookImpl, **more: object) -> None:
        hook = impl.function.__name__
        key, now = (event, impl.plugin_name, hook), time.monotonic()
        before, quiet = self._known.get(key, (now - _QUIET, 0))
        if now - before < _QUIET:
            self._known[key] = before, quiet + 1
            return
        self._known[key] = now, 0
        log.warning(event, plugin=impl.plugin_name, hook=hook, not_logged=quiet, **more)


_TIMED_OUT = object()
_Future = Future[object]


class _Line:
    """One plugin's calls, in order, in a thread that nobody waits for at exit."""

    def __init__(self, name: str, timeout: float) -> None:
        self._name, self._timeout = name, timeout
        #: When the call that runs was begun; ``None`` between calls.
        self._since: float | None = None
        self._missed = 0
        self._calls: queue.Queue[tuple[Callable[[], object], _Future] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    @property
    def patience(self) -> float:
        """How long the next call may take, in seconds: each time-out in a row halves it."""
        return self._timeout * max(_LEAST, 0.5**self._missed)

    @property
    def hangs(self) -> bool:
        """Whether it is still at a call that nobody waits for any more."""
        since = self._since
        return self._missed > 0 and since is not None and time.monotonic() - since > self.patience

    def missed(self) -> None:
        """A call took too long."""
        self._missed += 1

    def answered(self) -> None:
        """A call was answered in time, well or not."""
        self._missed = 0

    def put(self, call: Callable[[], object]) -> _Future:
        answer = _Future()
        if self._calls.qsize() >= _MOST:
            log.warning("hook_left_out", plugin=self._name)
            answer.set_result(None)
            return answer
        self._calls.put((call, answer))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name=f"plugin:{self._name}", daemon=True
            )
            # Not in the context of whoever happens to be the first to call.
            Context().run(self._thread.start)
        return answer

    def close(self) -> None:
        self._calls.put(None)

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            call, answer = item
            # Nobody waits any more: a fact that was given up is not told late.
            if answer.set_running_or_notify_cancel():
                self._since = time.monotonic()
                _run(call, answer)
                self._since = None


def _run(call: Callable[[], object], answer: _Future) -> None:
    try:
        result = call()
    except StopIteration as error:
        # Nobody who waits for it can be given that: it would wait for ever.
        answer.set_exception(RuntimeError(f"StopIteration: {error}"))
    except Exception as error:  # noqa: BLE001  (one of the places: whatever a plugin raises)
        answer.set_exception(error)
    except BaseException as error:  # noqa: BLE001  (SystemExit must not end the plugin's thread)
        answer.set_exception(RuntimeError(f"the plugin raised {type(error).__name__}"))
    else:
        answer.set_result(result)


def _whole(function: Callable[..., object], arguments: Mapping[str, object]) -> object:
    """Call a hook, and run it to its end where it is asynchronous."""
    result = function(**arguments)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def _read(plugin: str, answer: object) -> Verdict | None:
    """What an answer says; ``None`` if it means nothing: any object may come, with any method."""
    if answer is None:
        return Verdict()
    if answer is _TIMED_OUT:
        return Verdict(block=f"the plugin {plugin} did not answer in time")
    if not isinstance(answer, dict):
        return None
    try:
        return _said(plugin, dict(cast("dict[str, Any]", answer)))
    except Exception:  # noqa: BLE001  (one of the places: whatever a plugin answers)
        return None


def _said(plugin: str, answer: dict[str, Any]) -> Verdict | None:
    action, args = answer.get("action"), answer.get("args")
    if action == "block":
        return Verdict(block=_shown(answer.get("message") or f"blocked by the plugin {plugin}"))
    if not isinstance(args, dict):
        known = action in ("approve", "allow")
        return Verdict(approve=action == "approve") if known else None
    try:
        args = json.loads(json.dumps(args))
    except (TypeError, ValueError, RecursionError):
        # What it wanted changed does not run as it was.
        return Verdict(block=f"the plugin {plugin} gave arguments that are no JSON")
    return Verdict(approve=action == "approve", args=args)


def _shown(value: object) -> str:
    try:
        return (value if isinstance(value, str) else repr(value))[:_LONGEST]
    except Exception:  # noqa: BLE001  (as above)
        return f"({type(value).__name__})"


def _together(verdicts: Iterable[Verdict]) -> Verdict:
    """A block beats an approval, whoever answered first."""
    approve, args = False, None
    for verdict in verdicts:
        if verdict.block is not None:
            return verdict
        approve = approve or verdict.approve
        args = args if verdict.args is None else verdict.args
    return Verdict(approve=approve, args=args)


def load_plugins(
    plugins: Plugins,
    folder: Path,
    enabled: Sequence[str],
    options: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """
    Load the enabled plugins: entry points of the group ``clew.plugins``, and files in ``folder``.

    Each is given what ``options`` has under its name.

    :raises SettingsError: if one cannot be found or loaded; names it
    """
    for name in enabled:
        try:
            plugin = _load(folder, name)
            plugins.add(plugin, name)
            _refuse_unknown(plugins, plugin, name, options.get(name, {}))
            plugins.configure(name, options.get(name, {}))
        except SettingsError:
            raise
        except Exception as error:
            raise SettingsError(
                f"plugins.enabled: {name!r} cannot be loaded: {type(error).__name__}: {error}"
            ) from error


def find_plugin_problems(
    folder: Path, enabled: Sequence[str], options: Mapping[str, object]
) -> list[str]:
    """Return a sentence for each table of a plugin that does not exist, and each key of one."""
    return [
        problem
        for name, table in options.items()
        for problem in _problems_of(folder, name, table, is_enabled=name in enabled)
    ]


def _problems_of(folder: Path, name: str, table: object, *, is_enabled: bool) -> tuple[str, ...]:
    try:
        if not is_enabled:
            _find(folder, name)
            return ()
        plugins, plugin = Plugins(), _load(folder, name)
        plugins.add(plugin, name)
        _refuse_unknown(plugins, plugin, name, table)
    except SettingsError as error:
        return tuple(
            text.replace("plugins.enabled:", f"plugins.{name}:") for text in error.problems
        )
    except Exception:  # noqa: BLE001  (its own code; told where it is loaded)
        return ()
    return ()


def _refuse_unknown(plugins: Plugins, plugin: object, name: str, table: object) -> None:
    """:raises SettingsError: if a plugin is given a setting that it does not have"""
    given = list(cast("Mapping[str, object]", table)) if isinstance(table, Mapping) else []
    if given and not plugins.takes_options(name):
        raise SettingsError(
            f"plugins.{name}.{given[0]}: the plugin {name!r} has no settings: it has no hook "
            "configure"
        )
    declared: object = getattr(plugin, DECLARED, None)
    if declared is None:
        return
    known = sorted(cast("Iterable[str]", declared))
    if problems := [_unknown(name, key, known) for key in given if key not in known]:
        raise SettingsError(*problems)


def _unknown(name: str, key: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f"did you mean plugins.{name}.{close[0]}?" if close else f"it has {', '.join(known)}"
    return f"there is no setting plugins.{name}.{key}; {meant}"


def _load(folder: Path, name: str) -> object:
    """:raises SettingsError: if there is no such plugin"""
    found = _find(folder, name)
    return _from_file(found, name) if isinstance(found, Path) else found.load()


def _find(folder: Path, name: str) -> EntryPoint | Path:
    """:raises SettingsError: if there is no such plugin"""
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point
    for path in (folder / f"{name}.py", folder / name / "__init__.py"):
        if path.is_file():
            return path
    known = [point.name for point in entry_points(group=GROUP)]
    known += [path.stem for path in folder.glob("*.py")]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise SettingsError(
        f"plugins.enabled: there is no plugin {name!r}: neither an installed package offers it "
        f"nor is there a file {name}.py in {folder}{meant}"
    )


def _from_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"clew_plugins.{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
