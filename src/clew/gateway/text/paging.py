"""A message as the parts that a platform takes: the one way from what an agent writes to chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.text import sanitize_text
from clew.gateway.text.markdown import read, read_plain
from clew.gateway.text.pieces import Piece, Run, with_addresses
from clew.gateway.text.splitting import Cost, Measure, split

if TYPE_CHECKING:
    from clew.core.chat import OutboundMessage


def paginate(message: OutboundMessage, measure: Measure, limit: Cost) -> list[list[Piece]]:
    """
    Return a message in parts, each within ``limit``; none only where there is nothing to see.

    An address that would take more than half of a part stands behind its text, where it can be
    parted: hidden behind the text it would stand in each part that the text is cut into.
    """
    half = Cost(limit.length // 2, limit.marks)

    def hides(address: str) -> bool:
        return measure.links(address) and measure.run(Run("x", link=address), None).within(half)

    text = sanitize_text(message.text)
    pieces = read(text) if message.markup else read_plain(text)
    return split(with_addresses(pieces, hides), measure, limit)
