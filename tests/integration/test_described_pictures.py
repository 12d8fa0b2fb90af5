"""A model that is not shown pictures reads what another one sees in them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clew.core.attachments import FetchedFile
from clew.core.route import local_route
from clew.testing import Fail, FakeProvider, Text
from tests.integration.api_server import running, settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)


@pytest.mark.unequal("that a model is shown no pictures is a setting, which is not stored")
async def test_a_picture_is_described_by_the_model_that_sees_and_one_that_fails_blocks_nothing(
    tmp_path: Path,
) -> None:
    blind: list[str] = []
    sees = True

    def answer(request: ProviderRequest) -> Reply:
        raw = json.dumps(request.raw)
        if request.model == "eyes":
            assert "image_url" in raw
            return Text("A cat on a chair.") if sees else Fail("authentication")
        assert "image_url" not in raw
        blind.append("\n".join(request.user_texts))
        return Text("seen")

    with FakeProvider(answer) as provider:
        settings = settings_for(tmp_path, provider=provider)
        model = replace(settings.model, pictures=False, picture_model="openai-chat:eyes")
        async with running(replace(settings, model=model)) as server:
            for number in range(2):
                sees = not number
                file = FetchedFile(
                    id=f"att_{number:026}", name="a.png", media_type="image/png",
                    content=PNG + bytes(number),
                )  # fmt: skip
                item = server.engine.new_input("look", files=[file])
                accepted = await server.engine.submit(item, target=local_route("talk"))
                await server.engine.wait_for_input(accepted)
            await wait_until(lambda: len(blind) == 2)
            store = server.engine.feature_context.store
            used = await store.read(
                lambda t: t.fetch_column("SELECT model FROM usage WHERE purpose = 'description'")
            )
    assert "description below]\nA cat on a chair.\n[end of the description of a.png]" in blind[0]
    assert "no description: model.picture_model failed: " in blind[1]
    assert used == ["eyes"]
