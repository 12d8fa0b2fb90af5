"""Answer of a model to a request beside the conversation."""

from __future__ import annotations

from clew.record import Record


class SideAnswer(Record):
    """The answer to one prompt, with what it cost."""

    text: str
    #: False if the model ran out of tokens.
    is_complete: bool
    model: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    #: Cost in millionths of a US dollar, if the price is known.
    cost_micros: int | None = None
