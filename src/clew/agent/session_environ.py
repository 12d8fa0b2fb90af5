"""
Session variables in the environment that tools see during a turn.

Turns of several conversations run in one process at once, and the environment of a process
holds only one value. So nothing is written to it: the variables are looked up in the
context of the code that reads ``os.environ`` or starts a subprocess that inherits it.
Outside of turns nothing differs.
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

from clew.agent.turn_context import make_subprocess_env

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    # The class has no public name.
    _Environ = dict[str, str]
else:
    _Environ = type(os.environ)


class SessionEnviron(_Environ):
    """``os.environ`` with the variables of the caller's turn, which cannot be removed."""

    def __getitem__(self, key: str) -> str:
        shown = make_subprocess_env()
        return shown[key] if key in shown else super().__getitem__(key)

    def __setitem__(self, key: str, value: str) -> None:
        # Writing a read value back must not expose it to the whole process.
        if make_subprocess_env().get(key) != value:
            super().__setitem__(key, value)

    def __iter__(self) -> Iterator[str]:
        shown = make_subprocess_env()
        yield from (key for key in super().__iter__() if key not in shown)
        # Last: ``clear`` removes keys from the front until one cannot be removed.
        yield from shown

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _EnvironPatches:
    """Patches in place while an engine runs, shared by all engines of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engines = 0
        self._undo: list[Callable[[], None]] = []
        self._replaced: list[tuple[Any, str]] = []
        self._has_fork_handler = False

    def install_patches(self, loop: type[asyncio.AbstractEventLoop]) -> None:
        with self._lock:
            self._engines += 1
            if self._engines == 1:
                self._patch_process()
            if not issubclass(loop, asyncio.BaseEventLoop):
                # Its subprocesses do not use ``Popen``.
                self._patch_attribute(loop, "subprocess_exec", _wrap_loop_subprocess)
                self._patch_attribute(loop, "subprocess_shell", _wrap_loop_subprocess)

    def remove_patches(self) -> None:
        with self._lock:
            self._engines -= 1
            if not self._engines:
                while self._undo:
                    self._undo.pop()()

    def _patch_process(self) -> None:
        self._patch_attribute(subprocess.Popen, "__init__", _wrap_popen_init)
        self._patch_attribute(os, "system", _wrap_os_system)
        plain, variables = type(os.environ), os.environ
        # The object stays: other modules have imported it.
        swap = functools.partial(setattr, variables, "__class__")
        swap(SessionEnviron)
        self._undo.append(lambda: swap(plain))
        if not self._has_fork_handler and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_apply_after_fork)
            self._has_fork_handler = True

    def _patch_attribute(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        if (owner, name) in self._replaced:
            return
        self._replaced.append((owner, name))
        before = getattr(owner, name)
        ours = functools.wraps(before)(make(before))
        setattr(owner, name, ours)

        def restore_attribute() -> None:
            self._replaced.remove((owner, name))
            # It may have been wrapped since; outside of turns our patch does nothing.
            if getattr(owner, name) is ours:
                setattr(owner, name, before)

        self._undo.append(restore_attribute)


_PATCHES = _EnvironPatches()


@contextmanager
def expose_session_environ() -> Generator[None]:
    """Show turns their session variables while any engine of the process is in the block."""
    _PATCHES.install_patches(type(asyncio.get_running_loop()))
    try:
        yield
    finally:
        _PATCHES.remove_patches()


def _wrap_popen_init(start: Callable[..., None]) -> Callable[..., None]:
    """Give a ``Popen`` that would inherit the process environment that of the turn."""
    signature = inspect.signature(start)

    def init_with_session(*args: Any, **kwargs: Any) -> None:
        if not make_subprocess_env():
            start(*args, **kwargs)
            return
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("env") is None:
            bound.arguments["env"] = {**os.environ, **make_subprocess_env()}
        start(*bound.args, **bound.kwargs)

    return init_with_session


def _wrap_loop_subprocess(start: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same for an event loop with its own way to start subprocesses."""

    async def run_with_session(*args: Any, **kwargs: Any) -> Any:
        if make_subprocess_env() and kwargs.get("env") is None:
            kwargs["env"] = {**os.environ, **make_subprocess_env()}
        return await start(*args, **kwargs)

    return run_with_session


def _wrap_os_system(system: Callable[[Any], int]) -> Callable[[Any], int]:
    """Run ``os.system``, which uses the process environment, through ``Popen``."""

    def run_with_session(command: Any) -> int:
        if not make_subprocess_env():
            return system(command)
        with subprocess.Popen(command, shell=True) as process:
            code = process.wait()
        if os.name == "nt":
            return code
        return code << 8 if code >= 0 else -code

    return run_with_session


def _apply_after_fork() -> None:
    """Set the variables for good in a process forked by a turn: it has only this turn."""
    for name, value in make_subprocess_env().items():
        os.putenv(name, value)
