"""Checks of the host: permissions of the home folder, disk space, API port."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Final

from clew.api.discovery import discover_server
from clew.config.load import FOLDERS
from clew.core.byte_size import format_size
from clew.core.doctor_finding import fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.config import ApiSettings
    from clew.core.doctor_finding import DoctorFinding

#: Free bytes on the disk: below these a write may fail at any moment, or soon.
_FULL_BELOW: Final = 100 * 1024 * 1024
_LOW_BELOW: Final = 1024 * 1024 * 1024
#: Seconds to wait for whatever listens on the port.
_TIMEOUT: Final = 3.0
_OTHERS_MODE: Final = 0o077


def check_home(folder: Path, *, mend: bool) -> DoctorFinding:
    """Check that only the owner can read the home; with ``mend``, fix the permissions."""
    what = "home"
    if not folder.exists():
        return ok(what, f"{folder} does not exist yet: the first command creates it")
    if os.name != "posix":
        return ok(what, str(folder))
    loose = [path for path in _iter_private_paths(folder) if _file_mode(path) & _OTHERS_MODE]
    if not loose:
        return ok(what, f"{folder}, accessible only to its owner")
    if not mend:
        return fail(what, f"others may use {_format_paths(loose)}", fix="clew doctor --fix")
    try:
        for path in loose:
            path.chmod(_file_mode(path) & ~_OTHERS_MODE)
    except OSError as error:
        return fail(
            what,
            f"the access to {error.filename} cannot be restricted: {error.strerror}",
            fix=f"chown -R {os.getuid()} {folder}, as a user that may do so",
        )
    return ok(what, f"access restricted to the owner: {_format_paths(loose)}")


def _iter_private_paths(folder: Path) -> Iterator[Path]:
    """Yield the paths that only the owner may use; a link counts as its target."""
    yield folder
    yield from (folder / name for name in FOLDERS if (folder / name).is_dir())
    for pattern in (
        "config.toml",
        "service.env",
        "*.db",
        "*.db-wal",
        "*.db-shm",
        "logs/*",
        "run/*",
    ):
        yield from (path for path in folder.glob(pattern) if path.is_file())


def _file_mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:  # e.g. the lock of an ended owner, or a WAL file just checkpointed
        return 0


def _format_paths(paths: list[Path]) -> str:
    shown = ", ".join(f"{path} ({_file_mode(path):04o})" for path in paths[:3])
    return shown if len(paths) <= 3 else f"{shown} and {len(paths) - 3} more"


def check_disk(folder: Path) -> DoctorFinding:
    """Check the free disk space."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    found = f"{format_size(free)} free at {folder}"
    fix = "make room, or name another folder with --home"
    if free < _FULL_BELOW:
        return fail("disk", found, fix=fix)
    return warn("disk", found, fix=fix) if free < _LOW_BELOW else ok("disk", found)


def check_port(settings: ApiSettings, home: Path | None = None) -> DoctorFinding:
    """
    Check that ``clew serve`` can listen on its port, or already does.

    With ``home``, the address that its gateway advertised is compared too.
    """
    what, host = "port", settings.host.strip("[]")
    if settings.port == 0:
        return ok(what, "any free one")
    place = f"{settings.port} on {host}"
    if _is_listening(host, settings.port):
        if _is_clew_gateway(host, settings.port):
            return ok(what, f"a gateway answers at {place}")
        told = None if home is None else discover_server(home)
        if told is not None and told.is_running and told.url.endswith(f":{settings.port}"):
            return warn(
                what,
                f"the gateway of this home runs at {place}, but does not answer now",
                fix="try again in a moment",
            )
        return fail(
            what,
            f"another program listens at {place}",
            fix="stop that program, or set api.port to another one",
        )
    refused = _find_bind_error(host, settings.port)
    if refused is None:
        return ok(what, f"{place} is free")
    return fail(what, f"{place} cannot be listened on: {refused}", fix="set api.host or api.port")


def _is_listening(host: str, number: int) -> bool:
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        socket.create_connection((here, number), timeout=_TIMEOUT).close()
    except OSError:
        return False
    return True


def _is_clew_gateway(host: str, number: int) -> bool:
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        with closing(HTTPConnection(here, number, timeout=_TIMEOUT)) as connection:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            return answer.status == 200 and answer.read(1000) == b'{"status":"ok"}'
    except (OSError, HTTPException):
        return False


def _find_bind_error(host: str, number: int) -> str | None:
    """Return why the port cannot be bound; binding without listening disturbs no one."""
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
