"""Pagination: the only way from an agent's text to the chunks of a platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.text import sanitize_text
from clew.gateway.text.markdown_reader import parse_markdown, parse_plain_text
from clew.gateway.text.rich_text import TextBlock, TextRun, show_addresses
from clew.gateway.text.splitting import TextCost, TextMeasure, split_blocks

if TYPE_CHECKING:
    from clew.core.channel_events import OutboundMessage


def paginate(
    message: OutboundMessage, measure: TextMeasure, limit: TextCost
) -> list[list[TextBlock]]:
    """
    Split a message into parts within ``limit``; none only if there is nothing to show.

    An address that would take more than half of a part is written after its text, where it
    can be split: hidden behind the text it would be repeated in each part that the text is
    split into.
    """
    half = TextCost(limit.length // 2, limit.marks)

    def can_hide(address: str) -> bool:
        return measure.can_link(address) and measure.run_cost(
            TextRun("x", link=address), None
        ).fits_within(half)

    text = sanitize_text(message.text)
    pieces = parse_markdown(text) if message.markup else parse_plain_text(text)
    return split_blocks(show_addresses(pieces, can_hide), measure, limit)
