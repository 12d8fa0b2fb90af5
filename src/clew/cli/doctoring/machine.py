"""The machine: who may read the home folder, how much room there is, who has the port."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Final

from clew.api.whereabouts import discover_server
from clew.cli.doctoring.findings import fail, ok, size, warn
from clew.config.load import FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.cli.doctoring.findings import Finding
    from clew.config import ApiSettings

#: Bytes on the disk: with less a write may fail at any moment, or soon.
_FULL: Final = 100 * 1024 * 1024
_TIGHT: Final = 1024 * 1024 * 1024
#: Seconds that whatever listens on our port may take.
_PATIENCE: Final = 3.0
_OTHERS: Final = 0o077


def home(folder: Path, *, mend: bool) -> Finding:
    """Whether others may read what is in the home; with ``mend`` they may not any more."""
    what = "home"
    if not folder.exists():
        return ok(what, f"{folder} is not there yet: the first command makes it")
    if os.name != "posix":
        return ok(what, str(folder))
    loose = [path for path in _private(folder) if _mode(path) & _OTHERS]
    if not loose:
        return ok(what, f"{folder}, for its owner alone")
    if not mend:
        return fail(what, f"others may use {_named(loose)}", fix="clew doctor --fix")
    try:
        for path in loose:
            path.chmod(_mode(path) & ~_OTHERS)
    except OSError as error:
        return fail(
            what,
            f"{error.filename} cannot be closed to others: {error.strerror}",
            fix=f"chown -R {os.getuid()} {folder}, as the user that may",
        )
    return ok(what, f"closed to others: {_named(loose)}")


def _private(folder: Path) -> Iterator[Path]:
    """What only its owner may use; links belong to whoever they lead to."""
    yield folder
    yield from (folder / name for name in FOLDERS if (folder / name).is_dir())
    for pattern in ("config.toml", "*.db", "*.db-wal", "*.db-shm", "logs/*", "run/*"):
        yield from (path for path in folder.glob(pattern) if path.is_file())


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:  # a lock whose owner has ended, a log that was written back
        return 0


def _named(paths: list[Path]) -> str:
    shown = ", ".join(f"{path} ({_mode(path):04o})" for path in paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def disk(folder: Path) -> Finding:
    """How much room is left."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    found = f"{size(free)} free at {folder}"
    fix = "make room, or name another folder with --home"
    if free < _FULL:
        return fail("disk", found, fix=fix)
    return warn("disk", found, fix=fix) if free < _TIGHT else ok("disk", found)


def port(settings: ApiSettings, home: Path | None = None) -> Finding:
    """Whether ``clew serve`` could listen, or does; that of ``home`` says where it is."""
    what, host = "port", settings.host.strip("[]")
    if settings.port == 0:
        return ok(what, "any free one")
    place = f"{settings.port} on {host}"
    if _listens(host, settings.port):
        if _is_ours(host, settings.port):
            return ok(what, f"a gateway answers at {place}")
        told = None if home is None else discover_server(home)
        if told is not None and told.url.endswith(f":{settings.port}"):
            return warn(
                what,
                f"the gateway of this home told that it is at {place}, and does not answer now",
                fix="try again in a moment; it may be busy, or another program has its port",
            )
        return fail(
            what,
            f"another program listens at {place}",
            fix="stop that program, or set api.port to another one",
        )
    refused = _refusal(host, settings.port)
    if refused is None:
        return ok(what, f"{place} is free")
    return fail(what, f"{place} cannot be listened on: {refused}", fix="set api.host or api.port")


def _listens(host: str, number: int) -> bool:
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        socket.create_connection((here, number), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


def _is_ours(host: str, number: int) -> bool:
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        with closing(HTTPConnection(here, number, timeout=_PATIENCE)) as connection:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            return answer.status == 200 and answer.read(1000) == b'{"status":"ok"}'
    except (OSError, HTTPException):
        return False


def _refusal(host: str, number: int) -> str | None:
    """Why nobody could listen there; binding without listening is in nobody's way."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, number, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(os.name == "posix"))
                made.bind(address)
            break
    except OSError as error:
        return error.strerror or str(error)
    return None
