"""What the command line said, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.cli.setting_up.offers import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.cli.setting_up.offers import Key


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What the command line said."""

    model: str | None = None
    base_url: str | None = None
    key: Key | None = None
    port: int | None = None
    #: Where servers of one's own are looked for: URLs by name.
    servers: Mapping[str, str] = field(default_factory=lambda: LOCAL)
    #: Whether the model is asked for a word before it is written down.
    test: bool = True
    replace: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """The model that is to be used."""

    #: ``PROVIDER:MODEL``, or ``offline``.
    name: str
    base_url: str | None = None
    key: Key | None = None
