"""Destinations of log records, and the redaction of secrets."""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import structlog

from clew.config import ensure_home
from clew.config.introspection import iter_secret_texts
from clew.core.redaction import Redactor
from clew.core.text import truncate_middle
from clew.recent_log import RECENT_LOG

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.config import Settings

#: A larger log file is rotated when the next program opens it.
_MAX_FILE_SIZE: Final = 5_000_000
#: Fields of a record that are kept by themselves.
_COLUMNS: Final = ("timestamp", "level", "event")
_JSON: Final = structlog.processors.JSONRenderer(ensure_ascii=False)


@contextmanager
def logs_to_stderr(settings: Settings) -> Generator[None]:
    """Log to standard error: readable on a terminal, else one JSON object per line."""
    with _configure_logging(settings, sys.stderr, readable=sys.stderr.isatty()):
        yield


@contextmanager
def logs_to_file(settings: Settings) -> Generator[None]:
    """Log to ``logs/chat.log`` in ``CLEW_HOME``, so that records do not disturb a chat."""
    if os.environ.get("CLEW_DEBUG"):
        with logs_to_stderr(settings):
            yield
        return
    ensure_home(settings)
    with (
        _open_log(settings.home / "logs" / "chat.log") as file,
        _configure_logging(settings, file, readable=False),
    ):
        yield


@contextmanager
def suppress_logs(settings: Settings) -> Generator[None]:
    """Log nothing, for commands that report everything themselves."""
    if os.environ.get("CLEW_DEBUG"):
        with logs_to_stderr(settings):
            yield
        return
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        _configure_logging(settings, nowhere, readable=False),
    ):
        yield


@contextmanager
def _open_log(path: Path) -> Generator[TextIO]:
    stream = _open_stream(path)
    try:
        yield stream
    finally:
        with suppress(OSError):  # what was not written is lost anyway
            stream.close()


def _open_stream(path: Path) -> TextIO:
    if path.exists() and path.stat().st_size > _MAX_FILE_SIZE:
        path.replace(path.with_suffix(".log.1"))
    # Several chats append to it: each record is one write.
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        # The store reports what is wrong with the folder; a chat works without its log.
        return Path(os.devnull).open("w", encoding="utf-8")
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")


@contextmanager
def _configure_logging(settings: Settings, stream: TextIO, *, readable: bool) -> Generator[None]:
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            RedactionProcessor(settings),
            _keep_record,
            _console_renderer(stream) if readable else _JSON,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", BestEffortStream(stream))),
    )
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [StdlibLogBridge()]
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


def _console_renderer(stream: TextIO) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
    )


class BestEffortStream:
    """
    A stream for log records that discards what cannot be written.

    An exception from a log call, such as for a full disk, would end the turn that logs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


class StdlibLogBridge(logging.Handler):
    """
    Handler that forwards the log records of libraries and plugins to structlog.

    Of one logger at most so many in a minute, and long ones shortened: none can fill the log.
    """

    _MAX_A_MINUTE: Final = 300
    _MAX_CHARS: Final = 20_000

    def __init__(self) -> None:
        super().__init__()
        #: By logger: the minute, and the records in it.
        self._counts: dict[str, tuple[int, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        log = structlog.get_logger(record.name)
        count = self._count(record)
        if count > self._MAX_A_MINUTE:
            if count == self._MAX_A_MINUTE + 1:
                log.warning("log_flooded", logger=record.name, detail="the rest of this minute")
            return
        text = truncate_middle(record.getMessage(), self._MAX_CHARS)
        log.log(record.levelno, text, logger=record.name, exc_info=record.exc_info)

    def _count(self, record: logging.LogRecord) -> int:
        """Return the number of the record in its minute."""
        minute = int(record.created // 60)
        known, count = self._counts.get(record.name, (minute, 0))
        count = count + 1 if known == minute else 1
        self._counts[record.name] = minute, count
        return count


def _keep_record(_logger: object, _method: str, record: Any) -> Any:
    """Keep a record in memory, for ``log.tail``; secrets were removed before."""
    rest = {key: value for key, value in record.items() if key not in _COLUMNS}
    RECENT_LOG.add(
        at=str(record.get("timestamp", "")),
        level=str(record.get("level", "info")),
        event=str(record.get("event", "")),
        detail=json.dumps(rest, ensure_ascii=False, default=str) if rest else "",
    )
    return record


class RedactionProcessor:
    """Log processor that removes every secret of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._redactor = Redactor(iter_secret_texts(settings))

    def __call__(self, _logger: object, _method: str, record: Any) -> Any:
        return {key: self._redact_value(value) for key, value in record.items()}

    def _redact_value(self, value: object) -> object:
        if isinstance(value, dict):
            fields = cast("dict[object, object]", value)
            return {key: self._redact_value(inner) for key, inner in fields.items()}
        if isinstance(value, (list, tuple)):
            return [self._redact_value(inner) for inner in cast("list[object]", value)]
        if isinstance(value, (int, float, type(None))):
            return value
        return self._redactor.redact_text(str(value))
