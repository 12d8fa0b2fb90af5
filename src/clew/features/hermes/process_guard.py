"""
Watch over what plugins share with Clew: functions, the environment, signals, the working directory.

A plugin runs in the process and can replace all of it. What differs after its code ran is put back
where that is safe, and named.
"""

from __future__ import annotations

import asyncio
import builtins
import gc
import io
import json
import locale
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from clew.features.hermes.discovery import PACKAGE
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Their functions and classes are watched.
_MODULES: Final = (
    builtins, json, os, os.path, io, socket, asyncio, threading, time, subprocess, logging,
    warnings, signal, pathlib,
)  # fmt: skip
#: Their methods are watched.
_CLASSES: Final = (
    json.JSONEncoder, json.JSONDecoder, socket.socket, asyncio.BaseEventLoop, threading.Thread,
    subprocess.Popen, logging.Logger, logging.Handler, pathlib.Path,
)  # fmt: skip
_SYS: Final = ("stdout", "stderr", "stdin", "excepthook", "unraisablehook", "displayhook")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
_METHODS: Final = (property, classmethod, staticmethod)
#: Where the code of Clew is.
_OURS: Final = str(pathlib.Path(__file__).parents[2]) + os.sep
_PUT_BACK, _STAYS = "which was put back", "which stays so"


class _State(Record):
    """A state of the process: how it is read, and set to what it was."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], object] | None
    #: Nothing of Clew changes it while plugins run.
    is_constant: bool = False


class ProcessGuard:
    """What the process was like before a plugin was loaded."""

    def __init__(self) -> None:
        self._attributes = {owner: _list_attributes(owner) for owner in (*_MODULES, *_CLASSES)}
        #: What Clew itself has put in the place of some, as long as it stays there.
        self._ours: dict[tuple[ModuleType | type, str], object] = {}
        #: Names that classes define themselves: a new one may hide an inherited method.
        self._own_names = {owner: set(vars(owner)) for owner in _CLASSES}
        self._states = [(state, state.read()) for state in _STATES]
        self._environment = dict(os.environ)
        self._modules = _list_modules()
        self._path = list(sys.path)
        self._threads = set(threading.enumerate())

    def restore(self) -> list[str]:
        """Put back what has changed, and return a sentence for each change."""
        return [
            *self._restore_attributes(),
            *self._restore_states(self._states),
            *self._restore_environment(),
            *self._restore_modules(),
            *self._restore_path(),
            *self._list_threads(),
        ]

    def look_again(self) -> list[str]:
        """Do it after code of a plugin ran, for what nothing else changes; takes 0.1 ms."""
        constant = [one for one in self._states if one[0].is_constant]
        return [*self._restore_attributes(), *self._restore_states(constant)]

    def _restore_attributes(self) -> Iterator[str]:
        for owner, known in self._attributes.items():
            now = vars(owner)
            for name, value in known.items():
                if (new := now.get(name)) is value:
                    self._ours.pop((owner, name), None)
                elif _is_ours(new):
                    self._ours[owner, name] = new
                else:
                    setattr(owner, name, self._ours.get((owner, name), value))
                    yield f"replaced {_name_owner(owner)}.{name}, {_PUT_BACK}"
        for owner, own in self._own_names.items():
            for name in vars(owner).keys() - own:
                if any(name in vars(base) for base in owner.__mro__[1:]):
                    delattr(owner, name)
                    yield f"replaced {_name_owner(owner)}.{name}, {_PUT_BACK}"

    def _restore_states(self, states: list[tuple[_State, Any]]) -> Iterator[str]:
        for state, value in states:
            if state.read() == value:
                continue
            ending = _STAYS
            if state.restore is not None:
                with suppress(Exception):
                    state.restore(value)
                    ending = _PUT_BACK
            yield f"changed {state.name}, {ending}"

    def _restore_environment(self) -> Iterator[str]:
        # New variables are no harm; values are not shown, since they may be secrets.
        for name, value in self._environment.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
                yield f"changed the environment variable {name}, {_PUT_BACK}"

    def _restore_modules(self) -> Iterator[str]:
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
                yield f"replaced the module {name}, {_PUT_BACK}"
        for name in _find_impostors(sys.modules.keys() - self._modules.keys()):
            del sys.modules[name]
            yield f"put something of its own in place of the module {name}, which was taken out"
        self._modules = _list_modules()

    def _restore_path(self) -> Iterator[str]:
        added = [one for one in sys.path if one not in self._path]
        if sys.path[: len(self._path)] != self._path:
            yield "changed the beginning of sys.path, to whose end its own folders were moved"
        self._path = sys.path[:] = [*self._path, *added]

    def _list_threads(self) -> Iterator[str]:
        threads = set(threading.enumerate()) - self._threads
        self._threads |= threads
        for thread in threads:
            if not thread.daemon:
                yield f"started the thread {thread.name!r}, which would keep the process running"


def _is_ours(function: object) -> bool:
    """Return whether Clew put a function there, as it does for the environment of processes."""
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and code.co_filename.startswith(_OURS)


def _list_attributes(owner: ModuleType | type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(owner).items()
        if callable(value) or isinstance(value, _METHODS)
    }


def _list_modules() -> dict[str, ModuleType]:
    """Return the modules but those of plugins, which may be loaded again."""
    return {name: one for name, one in sys.modules.items() if name.partition(".")[0] != PACKAGE}


def _name_owner(owner: ModuleType | type) -> str:
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__qualname__}"
    return "os.path" if owner is os.path else owner.__name__


def _find_impostors(names: set[str]) -> list[str]:
    """Return new names that belong to Python, under which there is something else."""
    found: list[str] = []
    for name in names & sys.stdlib_module_names:
        # Only parts of modules, as ``pyexpat.errors``, are made without a spec by Python itself.
        module: Any = sys.modules[name]
        if not isinstance(module, ModuleType) or module.__spec__ is None:
            found.append(name)
    return found


def _read_umask() -> str | None:
    """Return the umask without changing it; ``None`` where the kernel does not tell it."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123
        return next((line.split()[1] for line in file if line.startswith("Umask:")), None)
    return None


def _read_folder() -> str | None:
    with suppress(OSError):
        return os.getcwd()  # noqa: PTH109  (a plugin may have replaced pathlib)
    return None


def _put_list(target: list[Any]) -> Callable[[list[Any]], None]:
    def put(value: list[Any]) -> None:
        target[:] = value

    return put


def _put_filters(value: list[Any]) -> None:
    warnings.filters[:] = value  # pyright: ignore[reportIndexIssue]  (a list, typed as a sequence)


_ROOT: Final = logging.getLogger()
_STATES: Final = (
    *(
        _State(
            name=f"sys.{name}",
            read=lambda name=name: getattr(sys, name),
            restore=lambda value, name=name: setattr(sys, name, value),
        )
        for name in _SYS
    ),
    *(
        _State(name=one.name, read=lambda one=one: signal.getsignal(one), restore=None)
        for one in _SIGNALS
    ),
    _State(
        name="the working directory",
        read=_read_folder,
        restore=os.chdir,
        is_constant=True,
    ),
    _State(
        name="the umask",
        read=_read_umask,
        restore=lambda value: os.umask(int(value, 8)),
        is_constant=True,
    ),
    _State(
        name="the locale",
        read=lambda: locale.setlocale(locale.LC_ALL),
        restore=lambda value: locale.setlocale(locale.LC_ALL, value),
        is_constant=True,
    ),
    _State(
        name="the handlers of the root logger",
        read=lambda: list(_ROOT.handlers),
        restore=_put_list(_ROOT.handlers),
    ),
    _State(name="the level of the root logger", read=lambda: _ROOT.level, restore=_ROOT.setLevel),
    _State(
        name="which levels are logged at all",
        read=lambda: logging.root.manager.disable,
        restore=logging.disable,
    ),
    _State(
        name="the filters of warnings",
        read=lambda: list(warnings.filters),
        restore=_put_filters,
    ),
    _State(
        name="sys.meta_path",
        read=lambda: list(sys.meta_path),
        restore=_put_list(sys.meta_path),
    ),
    _State(
        name="sys.path_hooks",
        read=lambda: list(sys.path_hooks),
        restore=_put_list(sys.path_hooks),
    ),
    _State(
        name="the time limit of sockets",
        read=socket.getdefaulttimeout,
        restore=socket.setdefaulttimeout,
        is_constant=True,
    ),
    _State(
        name="the recursion limit",
        read=sys.getrecursionlimit,
        restore=sys.setrecursionlimit,
        is_constant=True,
    ),
    _State(
        name="the collection of garbage",
        read=gc.isenabled,
        restore=lambda value: gc.enable() if value else gc.disable(),
    ),
)
