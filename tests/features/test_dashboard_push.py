"""Notices of the dashboard: who gets them, how often, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.route import local_route
from clew.features.dashboard import logins, push_notices
from clew.features.dashboard.push_sender import PushSender
from tests.features.push_service import PushService
from tests.features.test_dashboard_login import log_in, opened, own
from tests.integration.api_server import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.ids import ConversationId
    from tests.integration.api_server import Server


async def answer(server: Server, text: str) -> ConversationId:
    accepted = await server.engine.submit(text, target=local_route("talk"))
    await server.engine.wait_for_input(accepted)
    return accepted.conversation_id


@pytest.mark.both_databases
async def test_notices_are_told_once_and_end_with_their_login(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_notices, "_SHORTEST_TURN", 0)
    service = PushService()
    with service.running() as url:
        async with opened(tmp_path, store_url, push_services=(url,)) as server:
            refused = await server.http.post(
                "/api/push", json=service.subscription, headers=own(server)
            )
            assert refused.status_code == 401
            await log_in(server, token=TOKEN)
            added = await server.http.post(
                "/api/push", json=service.subscription, headers=own(server)
            )
            assert added.json() == {"subscribed": True}
            sender = PushSender(server.engine.feature_context, contact="mailto:me@example.com")
            conversation = await answer(server, "hello")
            await sender.tell_turn(conversation)
            await sender.tell_turn(conversation)
            assert [one["kind"] for one in service.notices] == ["answer"]
            (login,) = await server.store.read(logins.list_logins)
            await server.store.write(logins.revoke_login, login.id)
            await sender.tell_turn(await answer(server, "again"))
            assert len(service.notices) == 1


async def test_a_browser_that_asks_for_notices_elsewhere_is_refused(tmp_path: Path) -> None:
    service = PushService()
    async with opened(tmp_path) as server:
        await log_in(server, token=TOKEN)
        for wrong in (
            {"endpoint": "http://127.0.0.1:1/send", "keys": service.subscription["keys"]},
            {"endpoint": "https://fcm.googleapis.com/x", "keys": {"p256dh": "x", "auth": "y"}},
            {"endpoint": "https://fcm.googleapis.com/x"},
        ):
            told = await server.http.post("/api/push", json=wrong, headers=own(server))
            assert (told.status_code, told.json()["error"]["code"]) == (400, "invalid_value")
        foreign = {**own(server), "Origin": "https://evil.example"}
        told = await server.http.post("/api/push", json=service.subscription, headers=foreign)
        assert told.status_code == 403
