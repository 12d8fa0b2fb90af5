"""The access policies of the channels, as the settings have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.access import AccessPolicy

if TYPE_CHECKING:
    from clew.config.settings import ChannelSettings


def make_access_policy(channel: ChannelSettings, *, people_answer: bool = False) -> AccessPolicy:
    """Return who may talk to the agent on a channel."""
    return AccessPolicy(
        allow=frozenset(channel.allow),
        operators=frozenset(channel.operators),
        groups=frozenset(channel.groups),
        mention=channel.mention,
        open_groups=channel.open_groups,
        people_answer=people_answer,
        codes=channel.pairing == "on" or (channel.pairing == "auto" and not channel.allow),
    )
