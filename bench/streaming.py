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


def write_markdown(request: ProviderRequest) -> Reply:
    """Write paragraphs and code for a minute if asked to go."""
    if request.last_user_text != "go":
        return echo(request)
    count = SPEED * _SECONDS
    return Text(_PARAGRAPHS * (count // SPEED), chunks=count, delay=1 / SPEED)


_PARAGRAPHS: Final = (
    " ".join(["and **so** it `goes` on"] * 12)
    + "\n\n```python\n"
    + "\n".join(["for number in range(10): print(number)"] * 8)
    + "\n```\n\n* one\n* another\n\n"
    + " ".join(["with some more words"] * 20)
    + "\n\n"
)
