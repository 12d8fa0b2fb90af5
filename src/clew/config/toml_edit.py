"""Edits of ``config.toml`` that change only the given keys, atomically."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import tomllib
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from clew.config.fields import env_name
from clew.config.load import load_settings
from clew.config.lookup import CORE_CATALOG
from clew.errors import ClewError, SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from clew.config.lookup import SettingsCatalog
    from clew.config.settings import Settings

_DISK_FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
BACKUP_NAME: Final = "config.toml.before"


CONFIG_NAME: Final = "config.toml"
_NAME = re.compile(r"[A-Za-z0-9_-]+")

_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def _find_none(_: Settings) -> Sequence[str]:
    return ()


def write_setting(
    home: Path,
    name: str,
    value: object,
    *,
    catalog: SettingsCatalog = CORE_CATALOG,
    environ: Mapping[str, str] = _NO_VARIABLES,
    find_problems: Callable[[Settings], Sequence[str]] = _find_none,
) -> Path:
    """
    Set one setting (``section.key``) in a folder's ``config.toml``; ``None`` removes it.

    The new file must be one with which ``environ`` can be used, without what it says of this
    setting. ``find_problems`` returns what is wrong with its settings, beside their types.

    :raises UsageError: if there is no such setting, the value cannot be used, or the layout
        of the file does not allow the edit
    :raises ClewError: if the file cannot be written
    """
    *path, key = name.split(".")
    if not path or not all(map(_NAME.fullmatch, (*path, key))):
        raise UsageError(f"a setting is called section.key, not {name!r}")
    file = home / CONFIG_NAME
    before = file.read_text(encoding="utf-8-sig") if file.is_file() else ""
    written = None if value is None else to_toml(value)
    after = edit_toml(before, {(".".join(path), key): written})
    others = {one: text for one, text in environ.items() if one != env_name((*path, key))}
    _check_loadable(after, home, catalog, others, find_problems)
    atomic_write(file, after)
    return file


def _check_loadable(
    content: str,
    home: Path,
    catalog: SettingsCatalog,
    environ: Mapping[str, str],
    find_problems: Callable[[Settings], Sequence[str]],
) -> None:
    """
    Check that the settings can be loaded.

    :raises SettingsError: if they cannot be used
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / CONFIG_NAME).write_text(content, encoding="utf-8")
        try:
            loaded = load_settings(home=Path(folder), environ=environ, catalog=catalog)
            if problems := find_problems(loaded):
                raise SettingsError(*problems)
        except SettingsError as error:
            told = [each.replace(folder, str(home)) for each in error.problems]
            raise SettingsError(*told) from None


def to_toml(value: object) -> str:
    """
    Return a value as TOML on one line.

    :raises UsageError: if TOML has no such value
    """
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(to_toml, cast('list[object]', value)))}]"
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return f"{{ {', '.join(f'{quote_toml(name)} = {to_toml(one)}' for name, one in fields)} }}"
    raise UsageError("a setting has a text, a number, yes or no, or a list or table of them")


def quote_toml(value: str) -> str:
    """Return a text as a TOML string."""
    return json.dumps(value, ensure_ascii=False)


def edit_toml(before: str, changes: Mapping[tuple[str, str], str | None]) -> str:
    """
    Return the file's text with these keys set or removed; all else stays as it is.

    :raises UsageError: if the layout of the file does not allow the edit
    """
    after = before
    for (section, key), value in changes.items():
        after = _set_key(after, section, key, value)
    _check_edit(before, after, changes)
    return after


def remove_table(before: str, section: str) -> str:
    """
    Return the file's text without a table and the tables in it; all else stays as it is.

    :raises UsageError: if the layout of the file does not allow the edit
    """
    rest = "\n".join(_drop_table(before, section)).rstrip("\n")
    after = f"{rest}\n" if rest else ""
    wanted: dict[str, Any] = tomllib.loads(before)
    *path, name = section.split(".")
    table = wanted
    for each in path:
        table = table.get(each, {})
    table.pop(name, None)
    if _without_empty(tomllib.loads(after)) != _without_empty(wanted):
        raise UsageError(
            f"config.toml is written in a way that does not allow to remove [{section}] without "
            "harm: remove it yourself"
        )
    return after


def _drop_table(before: str, section: str) -> list[str]:
    """Return the lines outside of a table; comments above the next table belong to that."""
    header = re.compile(rf"\s*\[\[?\s*{re.escape(section)}\s*[.\]]")
    kept: list[str] = []
    above: list[str] = []
    is_inside = False
    for line in before.splitlines():
        if line.lstrip().startswith("["):
            kept += above
            above, is_inside = [], header.match(line) is not None
        if not is_inside:
            kept.append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            above = []
        elif line.strip() or above:
            above.append(line)
    return kept + above


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if value != {}}


def _set_key(before: str, section: str, key: str, value: str | None) -> str:
    lines = before.splitlines()
    start, end = _find_table(lines, section)
    if start is None:
        if value is None:
            return before
        gap = [""] if lines and lines[-1].strip() else []
        return _join_lines([*lines, *gap, f"[{section}]", f"{key} = {value}"])
    inside = lines[start:end]
    at = next((n for n, line in enumerate(inside) if _is_assignment(line, key)), None)
    if at is not None:
        inside[at : at + 1] = [] if value is None else [f"{key} = {value}"]
    elif value is not None:
        last = max((n for n, line in enumerate(inside) if line.strip()), default=-1)
        inside.insert(last + 1, f"{key} = {value}")
    return _join_lines([*lines[:start], *inside, *lines[end:]])


def _find_table(lines: list[str], section: str) -> tuple[int | None, int]:
    """Return the first and the end line inside a table; ``None`` if there is none."""
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


def _is_assignment(line: str, key: str) -> bool:
    return re.match(rf"\s*{key}\s*=", line) is not None


def _join_lines(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _check_edit(before: str, after: str, changes: Mapping[tuple[str, str], str | None]) -> None:
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


def atomic_write(file: Path, content: str) -> None:
    """
    Write a file atomically, readable by its owner alone (0600).

    :raises ClewError: if the disk is full, or it may not be written; the old file is
        unchanged
    """
    made = file.with_name(f".{file.name}.{os.getpid()}")
    with _translate_os_errors(file):
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
def _translate_os_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRORS:
            raise ClewError(
                f"there is no space left to write {file}: make room on that disk, or name another "
                "folder with --home"
            ) from error
        raise ClewError(
            f"{file} cannot be written ({error.strerror}): make the folder writable for you, or "
            "name another one with --home"
        ) from error
