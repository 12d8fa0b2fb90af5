"""The state of a gateway and of its service."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from clew.api.discovery import discover_server
from clew.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from clew.api.discovery import ServerAddress
    from clew.cli.service.manager import ManagedState, ServiceManager

#: Seconds to wait for the gateway's answer.
_TIMEOUT: Final = 5.0


class GatewayState(Record):
    """State of the gateway of a home: by the lock of its file, never by a number."""

    address: ServerAddress | None
    #: Whether it can read and write its store.
    ready: bool

    @property
    def running(self) -> bool:
        return self.address is not None


class ServiceStatus(Record):
    """A gateway and its service."""

    gateway: GatewayState
    #: The file of the service, if there is one.
    file: Path | None
    #: Whether that file serves another home, or was written by somebody else.
    foreign: bool
    #: What the process manager says; ``None`` where none runs.
    managed: ManagedState | None


def read_gateway_state(home: Path) -> GatewayState:
    """Return the state of the gateway of a home, whoever started it."""
    found = discover_server(home)
    if found is None or not found.is_running:
        return GatewayState(address=None, ready=False)
    return GatewayState(address=found, ready=_is_ready(found.url))


def _is_ready(url: str) -> bool:
    place = urlsplit(url).netloc
    try:
        with closing(HTTPConnection(place, timeout=_TIMEOUT)) as connection:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False


def read_service_status(manager: ServiceManager, name: str, home: Path) -> ServiceStatus:
    """Return the state of a home's gateway and service."""
    file = manager.locate_file(name)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError:
        text = None
    return ServiceStatus(
        gateway=read_gateway_state(home),
        file=None if text is None else file,
        foreign=text is not None and manager.read_home(text) != home,
        managed=manager.query_state(name) if text is not None and manager.available else None,
    )
