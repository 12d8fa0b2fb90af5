"""A conversation is deleted while its turn runs: the turn ends, and nothing counts as failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.testing import FakeProvider, Hang
from tests.integration.api_server import always, running, settings_for, until

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_turn_whose_conversation_is_deleted_ends_without_an_error(
    store_url: str, tmp_path: Path
) -> None:
    with FakeProvider(always(Hang())) as provider, structlog.testing.capture_logs() as logs:
        settings = settings_for(tmp_path, provider=provider, store_url=store_url)
        async with running(settings) as server:
            accepted = await server.engine.submit(
                "hello", target=server.engine.parse_target("talk")
            )
            await server.begun()
            await server.engine.delete_conversation(accepted.conversation_id)

            async def gone() -> bool:
                # Whichever it notices first: that it has lost the lease, or that nothing is there.
                events = {record["event"] for record in logs}
                return bool(events & {"conversation_gone", "turn_taken_over"})

            await until(gone)
    assert [record for record in logs if record["log_level"] == "error"] == []
