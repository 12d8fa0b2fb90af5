"""The path of calls that one message takes through the project, over tasks and threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
from clew.store.sqlite.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from types import CodeType, FrameType

_SOURCE = Path(clew.__file__).parent

#: One function: its module below ``src/clew``, and its qualified name.
Hop = tuple[str, str]


def code_of(function: Any) -> CodeType:
    return function.__code__


class CallTracer:
    """
    Profiler that records the path of calls to each target, when it is first called.

    Resuming a coroutine calls every coroutine that awaits it, so the frames of the
    interpreter are the whole path within one task. A path continues where its task was
    created, and where its job was handed to the writer's thread.
    """

    def __init__(self, targets: Mapping[str, Callable[[FrameType], bool]]) -> None:
        self._targets = targets
        self.paths: dict[str, list[Hop]] = {}
        #: The path to the creation of a coroutine's task, or to the hand-over of a job.
        self._origins: dict[int, list[Hop]] = {}
        #: Objects whose ids are keys: no other object gets the same id.
        self._kept: list[object] = []

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if frame.f_code is _CREATE_TASK:
            self._keep_origin(frame.f_locals["coro"], frame)
        elif frame.f_code is _SUBMIT_JOB:
            self._keep_origin(frame.f_locals["job"], frame)
        for name, is_target in self._targets.items():
            if name not in self.paths and is_target(frame):
                self.paths[name] = self._path_to(frame)

    def _keep_origin(self, key: object, frame: FrameType) -> None:
        self._kept.append(key)
        self._origins[id(key)] = self._path_to(frame)

    def _path_to(self, frame: FrameType | None) -> list[Hop]:
        path: list[Hop] = []
        origin: object = _running_coroutine()
        # The loop of the writer's thread was running before the message came.
        while frame is not None and frame.f_code.co_qualname != _SERVE_JOBS:
            if (hop := _hop_of(frame.f_code)) is not None:
                path.insert(0, hop)
            if frame.f_code.co_qualname == _RUN_JOB:
                origin = frame.f_locals["job"]
            frame = frame.f_back
        return [*self._origins.get(id(origin), []), *path]


def _running_coroutine() -> object:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    return None if task is None else task.get_coro()


def _hop_of(code: CodeType) -> Hop | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(_SOURCE):
        return None
    return path.relative_to(_SOURCE).as_posix(), code.co_qualname


_CREATE_TASK = code_of(asyncio.create_task)
_SUBMIT_JOB = code_of(Writer.submit)
_SERVE_JOBS = "Writer._serve_connection"
_RUN_JOB = "GroupCommitter._run_in_savepoint"


@contextmanager
def tracing(tracer: CallTracer) -> Generator[None]:
    """Trace this thread, and every thread that is started in the block."""
    threading.setprofile(tracer.profile)
    sys.setprofile(tracer.profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
