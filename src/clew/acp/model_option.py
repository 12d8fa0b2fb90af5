"""The model of a conversation as an option of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectOption

if TYPE_CHECKING:
    from clew.wire.results import Models

MODEL_OPTION: Final = "model"


def build_options(models: Models) -> list[SessionConfigOptionSelect]:
    """Return the options of a session: the model, from the next message on."""
    options = [SessionConfigSelectOption(value=name, name=name) for name in models.items]
    return [
        SessionConfigOptionSelect(
            id=MODEL_OPTION,
            name="Model",
            category="model",
            type="select",
            current_value=models.current,
            options=options,
        )
    ]
