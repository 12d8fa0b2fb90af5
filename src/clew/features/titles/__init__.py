"""Automatic titles: conversations are named after their first answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.plugin import FeatureContext, Registry


def register(registry: Registry) -> None:
    """Register the feature."""
    registry.add_after_turn("titles", give_title)


async def give_title(context: FeatureContext, conversation: ConversationId) -> None:
    """Give an answered conversation the title that it lacks."""
    from clew.features.titles import generator  # noqa: PLC0415  (declared by every command, needed by few)

    await generator.give_title(context, conversation)
