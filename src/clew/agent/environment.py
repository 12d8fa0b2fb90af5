"""
The environment that tools see: in a turn it names the session, to them and to what they start.

Turns of several conversations run in one process at once, and the environment of a process can
hold one value. So nothing is written to it: the variables are looked up in the context of whoever
reads ``os.environ`` or starts a subprocess that is to inherit it. Outside of turns nothing differs.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.agent.current import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    # Its own class has no public name.
    _Environ = dict[str, str]
else:
    _Environ = type(os.environ)


class SessionEnviron(_Environ):
    """``os.environ`` with the variables of the caller's turn, which nobody can take out."""

    def __getitem__(self, key: str) -> str:
        shown = environment()
        return shown[key] if key in shown else super().__getitem__(key)

    def __setitem__(self, key: str, value: str) -> None:
        # Who writes back what was read must not show it to the whole process.
        if environment().get(key) != value:
            super().__setitem__(key, value)

    def __iter__(self) -> Iterator[str]:
        shown = environment()
        yield from (key for key in super().__iter__() if key not in shown)
        # Last: ``clear`` takes keys from the front until one cannot be taken out.
        yield from shown

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Exposure:
    """What is replaced while an engine runs, for all engines of the process together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines = 0
        self._undo: list[Callable[[], None]] = []
        self._replaced: list[tuple[Any, str]] = []
        self._forks = False

    def begin(self, loop: type[asyncio.AbstractEventLoop]) -> None:
        with self._lock:
            self._engines += 1
            if self._engines == 1:
                self._expose()
            if not issubclass(loop, asyncio.BaseEventLoop):
                # Its subprocesses are no ``Popen``.
                self._replace(loop, "subprocess_exec", _inheriting_in_loop)
                self._replace(loop, "subprocess_shell", _inheriting_in_loop)

    def end(self) -> None:
        with self._lock:
            self._engines -= 1
            if not self._engines:
                while self._undo:
                    self._undo.pop()()

    def _expose(self) -> None:
        self._replace(subprocess.Popen, "__init__", _inheriting)
        self._replace(os, "system", _system)
        plain, variables = type(os.environ), os.environ
        # The object stays: other modules have it by name.
        swap = functools.partial(setattr, variables, "__class__")
        swap(SessionEnviron)
        self._undo.append(lambda: swap(plain))
        if not self._forks and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_settle)
            self._forks = True

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if (owner, name) in self._replaced:
            return
        self._replaced.append((owner, name))
        before = getattr(owner, name)
        ours = functools.wraps(before)(make(before))
        setattr(owner, name, ours)

        def undo() -> None:
            self._replaced.remove((owner, name))
            # Somebody may have wrapped it since; outside of turns ours does nothing.
            if getattr(owner, name) is ours:
                setattr(owner, name, before)

        self._undo.append(undo)


_EXPOSURE = _Exposure()


@contextmanager
def exposed() -> Generator[None]:
    """Show turns their session, in the block, for as long as any engine of the process needs it."""
    _EXPOSURE.begin(type(asyncio.get_running_loop()))
    try:
        yield
    finally:
        _EXPOSURE.end()


def _inheriting(start: Callable[..., None]) -> Callable[..., None]:
    """Give a ``Popen`` that would inherit the environment of the process that of the turn."""
    signature = inspect.signature(start)

    def init(*args: Any, **kwargs: Any) -> None:
        if not environment():
            start(*args, **kwargs)
            return
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("env") is None:
            bound.arguments["env"] = {**os.environ, **environment()}
        start(*bound.args, **bound.kwargs)

    return init


def _inheriting_in_loop(start: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for an event loop that starts subprocesses in a way of its own."""

    async def run(*args: Any, **kwargs: Any) -> Any:
        if environment() and kwargs.get("env") is None:
            kwargs["env"] = {**os.environ, **environment()}
        return await start(*args, **kwargs)

    return run


def _system(system: Callable[[Any], int]) -> Callable[[Any], int]:
    """Have ``os.system``, which reads the environment of the process, started as a ``Popen``."""

    def run(command: Any) -> int:
        if not environment():
            return system(command)
        with subprocess.Popen(command, shell=True) as process:
            code = process.wait()
        if os.name == "nt":
            return code
        return code << 8 if code >= 0 else -code

    return run


def _settle() -> None:
    """In a process that a turn has forked: there is one turn from now on."""
    for name, value in environment().items():
        os.putenv(name, value)
