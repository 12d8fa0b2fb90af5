"""Writing ``config.toml``: only the lines that are meant, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import tomllib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from clew.config.load import load
from clew.errors import ClewError, SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BACKUP: Final = "config.toml.before"


FILE: Final = "config.toml"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


def write_setting(home: Path, name: str, value: object) -> Path:
    """
    Set one setting (``section.key``) in a folder's ``config.toml``; ``None`` takes it out.

    :raises UsageError: if there is no such setting, the value cannot be used, or the file is
        written in a way that this cannot be done in
    :raises ClewError: if the file cannot be written
    """
    *path, key = name.split(".")
    if not path or not all(map(_NAME.fullmatch, (*path, key))):
        raise UsageError(f"a setting is called section.key, not {name!r}")
    file = home / FILE
    before = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    written = None if value is None else toml(value)
    after = changed(before, {(".".join(path), key): written})
    _try(after, home)
    write(file, after)
    return file


def _try(content: str, home: Path) -> None:
    """:raises SettingsError: if these settings cannot be used"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_text(content, encoding="utf-8")
        try:
            load(home=Path(folder), environ={})
        except SettingsError as error:
            told = [each.replace(folder, str(home)) for each in error.problems]
            raise SettingsError(*told) from None


def toml(value: object) -> str:
    """
    A value as TOML, on one line.

    :raises UsageError: if TOML has none like it
    """
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, cast('list[object]', value)))}]"
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return f"{{ {', '.join(f'{text(name)} = {toml(one)}' for name, one in fields)} }}"
    raise UsageError("a setting has a text, a number, yes or no, or a list or table of them")


def text(value: str) -> str:
    """A text as TOML."""
    return json.dumps(value, ensure_ascii=False)


def changed(before: str, changes: Mapping[tuple[str, str], str | None]) -> str:
    """
    The file's text with these keys set or gone; everything else stays as it is.

    :raises UsageError: if the file is written in a way that this cannot be done in
    """
    after = before
    for (section, key), value in changes.items():
        after = _with(after, section, key, value)
    _check(before, after, changes)
    return after


def _with(before: str, section: str, key: str, value: str | None) -> str:
    lines = before.splitlines()
    start, end = _table(lines, section)
    if start is None:
        if value is None:
            return before
        gap = [""] if lines and lines[-1].strip() else []
        return _joined([*lines, *gap, f"[{section}]", f"{key} = {value}"])
    inside = lines[start:end]
    at = next((n for n, line in enumerate(inside) if _assigns(line, key)), None)
    if at is not None:
        inside[at : at + 1] = [] if value is None else [f"{key} = {value}"]
    elif value is not None:
        last = max((n for n, line in enumerate(inside) if line.strip()), default=-1)
        inside.insert(last + 1, f"{key} = {value}")
    return _joined([*lines[:start], *inside, *lines[end:]])


def _table(lines: list[str], section: str) -> tuple[int | None, int]:
    """The lines inside a table: from, to; ``None`` if there is no such table."""
    start = next(
        (
            number + 1
            for number, line in enumerate(lines)
            if re.fullmatch(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?", line)
        ),
        None,
    )
    if start is None:
        return None, 0
    rest = enumerate(lines[start:], start=start)
    return start, next((n for n, line in rest if line.lstrip().startswith("[")), len(lines))


def _assigns(line: str, key: str) -> bool:
    return re.match(rf"\s*{key}\s*=", line) is not None


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _check(before: str, after: str, changes: Mapping[tuple[str, str], str | None]) -> None:
    wanted: dict[str, Any] = tomllib.loads(before)
    for (section, key), value in changes.items():
        table = wanted
        for name in section.split("."):
            table = table.setdefault(name, {}) if value is not None else table.get(name, {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = tomllib.loads(f"x = {value}")["x"]
    try:
        is_right = tomllib.loads(after) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        told = "; ".join(
            f"{section}.{key} = {value}" if value is not None else f"no {section}.{key}"
            for (section, key), value in changes.items()
        )
        raise UsageError(
            "config.toml is written in a way that setup cannot change without harm: set it "
            f"yourself ({told}), or move the file away and run setup again"
        )


def write(file: Path, content: str) -> None:
    """
    Put a file in place, for its owner alone (0600); a reader finds the old or the new one, whole.

    :raises ClewError: if there is no room, or it may not be written; the old one is as it was
    """
    made = file.with_name(f".{file.name}.{os.getpid()}")
    with _told(file):
        try:
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "w", encoding="utf-8", newline="\n") as stream:  # noqa: PTH123
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            made.replace(file)
        except OSError:
            with suppress(OSError):
                made.unlink()
            raise


@contextmanager
def _told(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise ClewError(
                f"there is no room to write {file}: make room on that disk, or name another "
                "folder with --home"
            ) from error
        raise ClewError(
            f"{file} cannot be written ({error.strerror}): make the folder writable for you, or "
            "name another one with --home"
        ) from error
