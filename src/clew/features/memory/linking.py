"""Use cases of linked accounts, for chat commands and operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.memory import links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.scope import Scope
    from clew.plugin import FeatureContext


async def link_account(services: FeatureContext, account: Scope, code: str) -> Scope | None:
    """
    Link an account to the one that has given a code; return that, or ``None`` for a wrong code.

    :raises UsageError: if the two cannot be linked
    """
    main = await services.store.write(links.link, account, code)
    if main is not None:
        await _renew_sessions(services, [account], main)
    return main


async def unlink_account(services: FeatureContext, account: Scope) -> Sequence[Scope]:
    """Part an account from the others; return those that go on without its facts."""
    parted = await services.store.write(links.unlink, account)
    await _renew_sessions(services, parted, account)
    return parted


async def _renew_sessions(services: FeatureContext, scopes: Sequence[Scope], main: Scope) -> None:
    """Have open conversations go on with the facts that they now have."""
    for scope in scopes:
        for one in await services.store.write(links.queue_new_sessions, scope, main):
            services.work_on(one)
