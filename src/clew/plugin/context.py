"""The context that the code of a feature is given when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.core.ids import IdGenerator
    from clew.core.side_answer import SideAnswer
    from clew.store.contract import Store


class AskModel(Protocol):
    """A request to a model beside the conversation: no tools, nothing stored."""

    async def __call__(
        self, model: str, prompt: str, *, setting: str, max_tokens: int, seconds: float
    ) -> SideAnswer:
        """
        Return the answer to one prompt.

        ``setting`` is the one that names the model, for messages.

        :raises Exception: whatever the provider raises
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureContext:
    """The services of a running application."""

    settings: Settings
    store: Store
    ids: IdGenerator
    ask_model: AskModel
