"""Sending notices to the push services of browsers."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import httpx2
import structlog

from clew.core.scope import LOCAL
from clew.features.dashboard import push_crypto as crypto
from clew.features.dashboard import push_notices as notices
from clew.features.dashboard import push_subscriptions as subscriptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import ConversationId
    from clew.features.dashboard.push_notices import PushNotice
    from clew.features.dashboard.push_subscriptions import PushSubscription
    from clew.plugin import FeatureContext
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: Seconds for a push service to answer, and for which it keeps a notice.
_TIMEOUT: Final = 10.0
_KEPT_FOR: Final = 24 * 3600
_GONE: Final = (404, 410)


async def load_key(store: Store) -> str:
    """Return the key of this gateway, which is made when it is first needed."""
    known = await store.read(subscriptions.get_private_key)
    return known or await store.write(subscriptions.store_private_key, crypto.make_private_key())


async def load_public_key(store: Store) -> str:
    """Return the public part of this gateway's key, in base64url."""
    key = crypto.load_private_key(await load_key(store))
    return crypto.encode(crypto.public_bytes(key))


class PushSender:
    """Notices of one process."""

    def __init__(self, context: FeatureContext, *, contact: str) -> None:
        self._store, self._contact = context.store, contact

    async def tell_turn(self, conversation: ConversationId) -> None:
        """Tell what the last turn of a conversation ended with."""
        wanted = await self._store.read(subscriptions.list_subscriptions, LOCAL)
        notice = await self._store.read(notices.find_turn_notice, conversation)
        if notice is not None:
            await self._tell(notice, wanted)

    async def tell_questions(self) -> None:
        """Tell of the open questions that nobody was told of."""
        wanted = await self._store.read(subscriptions.list_subscriptions)
        for notice in await self._store.read(notices.list_question_notices):
            await self._tell(notice, wanted)

    async def _tell(self, notice: PushNotice, wanted: Sequence[PushSubscription]) -> None:
        # Claimed first: a notice that is lost with a process is less harm than one that is doubled.
        if not await self._store.write(subscriptions.claim, notice.subject):
            return
        key = await load_key(self._store)
        seeing = [one for one in wanted if one.scope in (LOCAL, notice.scope)]
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as http, asyncio.TaskGroup() as tasks:
            sent = [tasks.create_task(self._send(http, notice, one, key)) for one in seeing]
        gone = [one.id for one, task in zip(seeing, sent, strict=True) if task.result() in _GONE]
        if gone:
            await self._store.write(subscriptions.remove_dead, gone)

    async def _send(
        self, http: httpx2.AsyncClient, notice: PushNotice, one: PushSubscription, key: str
    ) -> int:
        payload = notice.to_json()
        headers = {
            "Authorization": crypto.make_authorization(
                one.endpoint,
                crypto.load_private_key(key),
                contact=self._contact,
                now=int(time.time()),
            ),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(_KEPT_FOR),
            "Urgency": "high" if notice.content["kind"] == "question" else "normal",
        }
        body = crypto.encrypt(payload, one.p256dh, one.auth)
        try:
            answer = await http.post(one.endpoint, content=body, headers=headers)
        except httpx2.HTTPError as error:
            log.warning("push_failed", subscription=one.id, error=type(error).__name__)
            return 0
        if answer.is_error:
            log.warning("push_refused", subscription=one.id, status=answer.status_code)
        return answer.status_code
