"""Pairing and access: codes for strangers, approval by the operator, and revocation."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from clew.core.access import AccessDecision, AccessStatus, ChannelAccount, Person, decide_access
from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.route import Route
from clew.errors import UsageError
from clew.store.transactions import pairings
from clew.store.transactions.conversations import open_route
from clew.store.transactions.deliveries import deliver_to_chat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.access import AccessPolicy
    from clew.core.ids import ConversationId, DeliveryId, IdGenerator, SessionIdFactory
    from clew.core.route import RouteKey
    from clew.store.contract import Store, Tx

#: Without letters and digits that are easily confused.
_CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
WELCOME_TEXT = "You have access now. Write a message; /help lists the commands."


class PairingService:
    """The access of people on a store's channels; needs no owner."""

    def __init__(self, store: Store, ids: IdGenerator, session_ids: SessionIdFactory) -> None:
        self._store, self._ids, self._session_ids = store, ids, session_ids

    async def list_people(self) -> Sequence[Person]:
        return await self._store.read(pairings.list_people)

    async def get_access_status(self, account: ChannelAccount, user: str) -> AccessStatus | None:
        return await self._store.read(pairings.get_access_status, account, user)

    async def issue_code(
        self, account: ChannelAccount, user: str, *, name: str, route: RouteKey
    ) -> str | None:
        """
        Return a new code to show to a stranger; ``None`` if they get no reply.

        It is valid for a few minutes, and for its full time once ``confirm_code_shown`` is
        called.
        """
        code = "".join(secrets.choice(_CODE_ALPHABET) for _ in range(8))
        shown = await self._store.write(
            pairings.issue_code,
            account,
            user,
            name=name,
            route=route,
            code=pairings.hash_code(code),
        )
        return f"{code[:4]}-{code[4:]}" if shown else None

    async def confirm_code_shown(self, account: ChannelAccount, user: str) -> None:
        """Confirm that the person has the newest code, and start its full validity."""
        await self._store.write(pairings.mark_code_shown, account, user)

    async def withdraw_code(self, account: ChannelAccount, user: str) -> None:
        """Withdraw a code that did not reach its person; the next message gets another."""
        await self._store.write(pairings.withdraw_code, account, user)

    async def approve_code(self, code: str, *, by: str) -> Person:
        """
        Grant access to the person who was shown this code, and notify them.

        :raises UsageError: if the code is not valid now
        """
        person = await self._store.write(
            _approve_code,
            pairings.hash_code(code),
            by=by,
            new_conversation=self._ids.new_conversation_id(),
            delivery=self._ids.new_delivery_id(),
            session_ids=self._session_ids,
        )
        if person is None:
            raise UsageError(
                f"the code {code!r} is not valid: it is mistyped, used already or older than an "
                "hour, or five wrong codes came before it. The person can write to the agent "
                "again, and gets a new code when the old one has expired"
            )
        return person

    async def revoke_access(
        self, account: ChannelAccount, user: str, *, to: AccessStatus, by: str
    ) -> None:
        """Revoke a person's access at once, and end their open work."""
        await self._store.write(pairings.revoke_access, account, user, to=to, by=by)

    async def apply_policy(
        self, account: ChannelAccount, policy: AccessPolicy
    ) -> Sequence[ConversationId]:
        """End the open work of people whom the settings no longer admit."""
        return await self._store.write(_apply_policy, account, policy)


def _approve_code(
    t: Tx,
    code: bytes,
    *,
    by: str,
    new_conversation: ConversationId,
    delivery: DeliveryId,
    session_ids: SessionIdFactory,
) -> Person | None:
    person = pairings.approve_code(t, code, by=by)
    if person is None or person.route is None:
        return person
    route = Route.parse(person.route)
    conversation = open_route(t, route, new_conversation=new_conversation, session_ids=session_ids)
    message = OutboundMessage(text=WELCOME_TEXT, markup=False)
    deliver_to_chat(t, conversation, route.key, message, id=delivery, kind=DeliveryKind.NOTICE)
    return person


def _apply_policy(t: Tx, account: ChannelAccount, policy: AccessPolicy) -> list[ConversationId]:
    def is_excluded(user: str, route: Route) -> bool:
        found = decide_access(
            policy,
            pairings.lock_access_status(t, account, user),
            user=user,
            kind=route.kind,
            chat=route.chat,
            addressed=True,
        )
        return found is not AccessDecision.ALLOW

    return pairings.cancel_excluded_work(t, account, is_excluded)
