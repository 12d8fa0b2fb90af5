"""Accounts of channels on which a person is shut out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.access import ChannelAccount
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config import Settings
    from clew.core.access import Person


def find_accounts(
    settings: Settings,
    people: Sequence[Person],
    user: str,
    *,
    channel: str | None = None,
    account: str | None = None,
) -> list[ChannelAccount]:
    """
    Return the accounts on which a person is known, or the given channel's.

    ``channel`` is the NAME of one, or with ``account`` the platform of a person who is known.

    :raises UsageError: if nobody has this id there, or if there is no such channel
    """
    if channel is not None and account is None:
        return [get_channel_account(settings, channel)]
    known = [
        person.account
        for person in people
        if person.user == user
        and (
            account is None
            or person.account == ChannelAccount(channel=channel or "", account=account)
        )
    ]
    if not known:
        raise UsageError(
            f"no person with the id {user!r} has asked for access: `clew pair list` shows who "
            "has; for a person in an `allow` list, add --channel NAME"
        )
    return known


def get_channel_account(settings: Settings, name: str) -> ChannelAccount:
    from clew.gateway.gateway import (  # noqa: PLC0415  (only here is it needed)
        make_channel_spec,
        make_feature_factories,
    )
    from clew.plugin.loading import get_features  # noqa: PLC0415  (as above)

    if name not in settings.channels:
        known = ", ".join(settings.channels) or "none"
        raise UsageError(f"there is no channel {name!r} in the settings; there are {known}")
    factories = make_feature_factories(get_features(settings))
    channel = make_channel_spec(
        name, settings.channels[name], settings.session.double_text, factories
    ).create_channel()
    return ChannelAccount(channel=channel.platform, account=channel.account)
