"""The name of the model: people see it with a new conversation, the model when it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.entry import Role
from tests.contract.lifecycle.product import plan, running

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "openai-chat:other-model"


async def test_a_new_conversation_says_who_answers_and_how_much_fits(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, flags={"model.context_window": "123456"})
    async with running(given) as product, product.client() as client:
        await product.say(client, "hello")
        told = await product.command(client, "/new")
        assert told.startswith("New conversation")
        assert "openai-chat:fake-model" in told
        assert "123,456 tokens" in told


@pytest.mark.both_databases
async def test_a_model_that_a_person_chose_learns_of_it_once_and_people_do_not_see_that(
    store_url: str, tmp_path: Path
) -> None:
    given = plan(store_url, tmp_path, flags={"model.fallback": OTHER})
    async with running(given) as product, product.client() as client:
        await product.say(client, "hello")
        # To and fro is no change.
        await product.command(client, f"/model {OTHER}")
        await product.command(client, "/model openai-chat:fake-model")
        await product.say(client, "as before")
        await product.command(client, f"/model {OTHER}")
        for text in ("who are you?", "and now?"):
            await product.say(client, text)
        hello, before, changed, last = product.model.turns
        assert [one.model for one in (hello, before, changed, last)] == [
            *["fake-model"] * 2,
            *["other-model"] * 2,
        ]
        assert before.last_user_text == "as before"
        told = changed.messages[-1]
        assert told.role == "user"
        assert f"from openai-chat:fake-model to {OTHER}" in told.text
        assert told.text.endswith("who are you?")
        # It stays in the context as it was sent, and people turn about with the model.
        assert [one.role for one in last.messages] == ["user", "assistant"] * 3 + ["user"]
        assert last.messages[4] == told
        assert last.last_user_text == "and now?"
        said = [entry.text for entry in await product.log() if entry.role is Role.USER]
        assert said == ["hello", "as before", "who are you?", "and now?"]


async def test_a_model_chosen_before_the_first_message_gets_no_note(
    tmp_path: Path,
) -> None:
    given = plan(f"sqlite:///{tmp_path}/clew.db", tmp_path, flags={"model.fallback": OTHER})
    async with running(given) as product, product.client() as client:
        await product.open(client)
        await product.command(client, f"/model {OTHER}")
        await product.say(client, "hello")
        (asked,) = product.model.turns
        assert (asked.model, asked.last_user_text) == ("other-model", "hello")
