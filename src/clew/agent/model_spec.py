"""Settings of one model."""

from __future__ import annotations

from clew.record import Record


class ModelSpec(Record):
    """A model's name, address, key and timeout."""

    #: A Pydantic AI model string such as ``openai-chat:llama3``, or ``offline``.
    name: str
    base_url: str | None = None
    api_key: str | None = None
    #: Seconds that the provider may be silent.
    timeout: float = 120.0
    #: The setting with its name, and the table with its address and key; for messages.
    setting: str = "model.name"
    table: str = "model"
