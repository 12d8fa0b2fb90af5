"""Who may talk: codes for strangers, the operator's word, and what removal ends."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from clew.core.chat import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.people import AccessDecision, AccessStatus, ChannelAccount, Person, decide_access
from clew.core.route import Route
from clew.errors import UsageError
from clew.store.transactions import pairings
from clew.store.transactions.conversations import open_route
from clew.store.transactions.deliveries import deliver_to_chat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId, DeliveryId, IdGenerator, SessionIdFactory
    from clew.core.people import AccessPolicy
    from clew.core.route import RouteKey
    from clew.store.contract import Store, Tx

#: Without letters and digits that are taken for each other.
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
WELCOME = "You are paired: write what you want to know, /help lists commands."


class People:
    """The people of a store's channels; needs no owner."""

    def __init__(self, store: Store, ids: IdGenerator, session_ids: SessionIdFactory) -> None:
        self._store, self._ids, self._session_ids = store, ids, session_ids

    async def list(self) -> Sequence[Person]:
        return await self._store.read(pairings.list_people)

    async def standing(self, account: ChannelAccount, user: str) -> AccessStatus | None:
        return await self._store.read(pairings.get_access_status, account, user)

    async def code_for(
        self, account: ChannelAccount, user: str, *, name: str, route: RouteKey
    ) -> str | None:
        """
        Return a new code to show to a stranger; ``None`` where silence is right.

        It is good for a few minutes, and for its whole time once ``code_shown`` is called.
        """
        code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        shown = await self._store.write(
            pairings.issue_code,
            account,
            user,
            name=name,
            route=route,
            code=pairings.hash_code(code),
        )
        return f"{code[:4]}-{code[4:]}" if shown else None

    async def code_shown(self, account: ChannelAccount, user: str) -> None:
        """A person has the code that was made last: it is good for its time from now on."""
        await self._store.write(pairings.mark_code_shown, account, user)

    async def withdraw_code(self, account: ChannelAccount, user: str) -> None:
        """A code did not reach its person: the next message gets another."""
        await self._store.write(pairings.withdraw_code, account, user)

    async def approve(self, code: str, *, by: str) -> Person:
        """
        Let in whoever was shown this code, and tell them.

        :raises UsageError: if it is no code that is good now
        """
        person = await self._store.write(
            _approve,
            pairings.hash_code(code),
            by=by,
            new_conversation=self._ids.new_conversation_id(),
            delivery=self._ids.new_delivery_id(),
            session_ids=self._session_ids,
        )
        if person is None:
            raise UsageError(
                f"the code {code!r} lets nobody in: it is mistyped, used already or older than an "
                "hour, or five wrong ones came before it; whoever it was for can write again, "
                "and is shown a new one once the old one is over"
            )
        return person

    async def shut_out(
        self, account: ChannelAccount, user: str, *, to: AccessStatus, by: str
    ) -> None:
        """Take away at once that a person may talk, and end what is open of theirs."""
        await self._store.write(pairings.revoke_access, account, user, to=to, by=by)

    async def enforce(
        self, account: ChannelAccount, policy: AccessPolicy
    ) -> Sequence[ConversationId]:
        """End what is open of those whom the settings do not let talk any more."""
        return await self._store.write(_enforce, account, policy)


def _approve(
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
    message = OutboundMessage(text=WELCOME, markup=False)
    deliver_to_chat(t, conversation, route.key, message, id=delivery, kind=DeliveryKind.NOTICE)
    return person


def _enforce(t: Tx, account: ChannelAccount, policy: AccessPolicy) -> list[ConversationId]:
    def out(user: str, route: Route) -> bool:
        found = decide_access(
            policy,
            pairings.lock_access_status(t, account, user),
            user=user,
            kind=route.kind,
            chat=route.chat,
            addressed=True,
        )
        return found is not AccessDecision.ALLOW

    return pairings.cancel_excluded_work(t, account, out)
