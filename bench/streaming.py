"""A model that streams for a while, at a steady pace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.testing.provider import Text, echo

if TYPE_CHECKING:
    from clew.testing.provider import ProviderRequest, Reply

#: Tokens in each second.
SPEED: Final = 200
_SECONDS: Final = 60


def script(request: ProviderRequest) -> Reply:
    """Talk for a minute if asked to go."""
    if request.last_user_text != "go":
        return echo(request)
    count = SPEED * _SECONDS
    return Text(" ".join(["again"] * count), chunks=count, delay=1 / SPEED)
