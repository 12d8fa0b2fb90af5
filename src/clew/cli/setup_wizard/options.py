"""Options of ``clew setup``, and the model selected from them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from clew.cli.setup_wizard.providers import LOCAL_SERVERS
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.cli.setup_wizard.providers import KeyLocation


class SetupOptions(Record):
    """The options given on the command line."""

    model: str | None = None
    base_url: str | None = None
    key: KeyLocation | None = None
    port: int | None = None
    #: Addresses of local servers to try: URLs by name.
    servers: Mapping[str, str] = field(default_factory=lambda: LOCAL_SERVERS)
    #: True if the model is tested before it is written to the settings.
    test: bool = True
    replace: bool = False


class SelectedModel(Record):
    """The model to use."""

    #: ``PROVIDER:MODEL``, or ``offline``.
    name: str
    base_url: str | None = None
    key: KeyLocation | None = None
