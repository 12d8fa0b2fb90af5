"""
Commands of Clew beside the gateway, each in a process of its own.

They are the same commands as on the command line. A check of a large store, or of code that
people have written, must not slow or end the gateway, and writes its own log.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from clew.background import kill_and_wait, start_child
from clew.config.fields import env_name
from clew.config.introspection import effective_values, iter_secret_texts, iter_secrets
from clew.core.redaction import Redactor
from clew.core.text import truncate_text
from clew.errors import OperationRefused, SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.settings import Settings

#: Characters of an error that is passed on.
_MAX_ERROR: Final = 2_000
#: Names of the commands that are running: one of each at a time.
_RUNNING: Final[set[str]] = set()


class CommandFailed(UsageError):
    """A command ended without a result."""


async def run_command(settings: Settings, *arguments: str) -> Any:
    """
    Run a command with ``--json`` and return what it prints, without secrets.

    It works on the store of the running gateway, also if the file names another one by now.

    :raises OperationRefused: while the same command is running
    :raises CommandFailed: with the message of the command
    """
    name = arguments[0]
    if name in _RUNNING:
        raise OperationRefused(f"clew {name} is running already: wait until it is done")
    _RUNNING.add(name)
    try:
        return await _run_child(settings, *arguments)
    finally:
        _RUNNING.discard(name)


async def _run_child(settings: Settings, *arguments: str) -> Any:
    child = await start_child(
        sys.executable,
        # Not the folder in which the gateway was started.
        *("-P", "-m", "clew", "--home", str(settings.home), *arguments, "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # What it starts in turn ends with it.
        start_new_session=True,
        env={**os.environ, **dict(_iter_variables(settings))},
    )
    try:
        printed, messages = await child.communicate()
    finally:
        await kill_and_wait(child)
    redactor = Redactor(iter_secret_texts(settings))
    try:
        return json.loads(redactor.redact_text(printed.decode("utf-8", "replace")))
    except ValueError:
        told = redactor.redact_text(messages.decode("utf-8", "replace")).strip()
        raise CommandFailed(_find_message(told) or f"clew {arguments[0]} ended early") from None


def _find_message(printed: str) -> str:
    """Return the message of a command for people; the log of its process is left out."""
    lines = [line for line in printed.splitlines() if not line.startswith("{")]
    return truncate_text("\n".join(lines).removeprefix("clew: "), _MAX_ERROR)


def _iter_variables(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings of the gateway that a new process would not find: flags, the store."""
    secrets = dict(iter_secrets(settings))
    for one in effective_values(settings):
        if one.origin.kind != "flag":
            continue
        path = tuple(one.name.split("."))
        if one.name in secrets:
            try:
                yield env_name(path), secrets[one.name].reveal()
            except SettingsError:  # the command says so
                continue
        elif one.value is not None:
            yield env_name(path), _to_text(one.value)
    yield env_name(("store", "url")), settings.store.url


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
