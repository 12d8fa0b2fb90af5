"""Where log records go, and what never stands in them."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import structlog

from clew.config import ensure_home
from clew.config.describe import iter_secret_texts
from clew.core.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.config import Settings

#: A log file of this size is set aside when the next program begins to write.
_LARGEST: Final = 5_000_000
_JSON: Final = structlog.processors.JSONRenderer(ensure_ascii=False)


@contextmanager
def logs_to_stderr(settings: Settings) -> Generator[None]:
    """Log to standard error: for people on a terminal, else a line of JSON per record."""
    with _logging(settings, sys.stderr, readable=sys.stderr.isatty()):
        yield


@contextmanager
def logs_to_file(settings: Settings) -> Generator[None]:
    """Log to ``logs/chat.log`` in ``CLEW_HOME``, so that a chat stays a chat."""
    if os.environ.get("CLEW_DEBUG"):
        with logs_to_stderr(settings):
            yield
        return
    ensure_home(settings)
    with (
        _opened(settings.home / "logs" / "chat.log") as file,
        _logging(settings, file, readable=False),
    ):
        yield


@contextmanager
def logs_left_out(settings: Settings) -> Generator[None]:
    """Log nothing, where all that matters is said anyway."""
    if os.environ.get("CLEW_DEBUG"):
        with logs_to_stderr(settings):
            yield
        return
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        _logging(settings, nowhere, readable=False),
    ):
        yield


@contextmanager
def _opened(path: Path) -> Generator[TextIO]:
    stream = _stream(path)
    try:
        yield stream
    finally:
        with suppress(OSError):  # what could not be written is lost already
            stream.close()


def _stream(path: Path) -> TextIO:
    if path.exists() and path.stat().st_size > _LARGEST:
        path.replace(path.with_suffix(".log.1"))
    # Several chats write to it: each record is one write at its end.
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        # What is wrong with the place the store tells, and a chat can do without its log.
        return Path(os.devnull).open("w", encoding="utf-8")
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")


@contextmanager
def _logging(settings: Settings, stream: TextIO, *, readable: bool) -> Generator[None]:
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            Redaction(settings),
            _readable(stream) if readable else _JSON,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", Unfailing(stream))),
    )
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [Foreign()]
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


def _readable(stream: TextIO) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
    )


class Unfailing:
    """
    A stream for log records: what cannot be written, to a full disk or to nobody, is lost.

    Raised where something is logged, it would end the turn or the task that logs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


class Foreign(logging.Handler):
    """Passes on what libraries log."""

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        log.log(record.levelno, record.getMessage(), logger=record.name, exc_info=record.exc_info)


class Redaction:
    """Takes every secret of the settings out of a record."""

    def __init__(self, settings: Settings) -> None:
        self._redactor = Redactor(iter_secret_texts(settings))

    def __call__(self, _logger: object, _method: str, record: Any) -> Any:
        return {key: self._clean(value) for key, value in record.items()}

    def _clean(self, value: object) -> object:
        if isinstance(value, dict):
            fields = cast("dict[object, object]", value)
            return {key: self._clean(inner) for key, inner in fields.items()}
        if isinstance(value, (list, tuple)):
            return [self._clean(inner) for inner in cast("list[object]", value)]
        if isinstance(value, (int, float, type(None))):
            return value
        return self._redactor.redact_text(str(value))
