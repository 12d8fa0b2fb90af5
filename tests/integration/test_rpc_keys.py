"""Keys of requests over JSON-RPC: what counts as the same request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.testing import FakeProvider, count_user_texts
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import NewParams, OpenParams, SubmitParams
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import client, over_socket

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.integration.api_server import Server


@pytest.fixture
async def server(store_url: str, tmp_path: Path) -> AsyncGenerator[Server]:
    with FakeProvider(count_user_texts) as provider:
        settings = settings_for(tmp_path, provider=provider, store_url=store_url)
        async with running(settings) as found:
            yield found


@pytest.mark.both_databases
async def test_a_key_stands_for_a_message_to_one_conversation_under_any_of_its_names(
    server: Server,
) -> None:
    def message(name: str) -> SubmitParams:
        return SubmitParams(session_id=name, text="hello", key="k")

    async with client(over_socket(server)) as one:
        first = await one.call(methods.SUBMIT, message("talk"))
        other = await one.call(methods.OPEN, OpenParams(conversation="open"))
        for name in ("none", "open", other.conversation.id):
            with pytest.raises(CallFailed) as caught:
                await one.call(methods.SUBMIT, message(name))
            assert caught.value.code == ErrorCode.KEY_REUSED
        # What is sent again after its name was moved is the same, and so are its other names.
        await one.call(methods.NEW, NewParams(name="talk"))
        for name in ("talk", first.session, first.conversation):
            assert (await one.call(methods.SUBMIT, message(name))).inbox_id == first.inbox_id
        await one.call(methods.SUBMIT, message("none").model_copy(update={"key": "l"}))
