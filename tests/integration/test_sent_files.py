"""Files that the agent sends: stored with the call, delivered as parts of the answer."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.config.secret import Secret
from clew.config.settings import ChannelSettings
from clew.config.workspaces import find_workspace
from clew.core.route import Route, local_route
from clew.core.scope import scope_of
from clew.core.sent_files import parse_files
from clew.gateway.gateway import Gateway
from clew.runtime import open_application
from clew.store.transactions import attachments, entries
from clew.testing import Calls, FakeProvider, ScriptedCall, Text, reply_in_sequence
from clew.testing.telegram import FakeTelegram
from clew.tui.state.blocks import build_blocks
from clew.wire.models import EntryShape
from tests.contract import invariants
from tests.integration.api_server import running, settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.runtime import Application
    from clew.testing import Reply

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


def send(path: str, **more: str) -> Calls:
    return Calls([ScriptedCall("send_file", {"path": path, **more})])


@dataclass(frozen=True, kw_only=True)
class Office:
    """A gateway with the tools of the product, and a workspace with files."""

    product: Application
    provider: FakeProvider
    home: Path

    def write(self, name: str, content: bytes) -> None:
        """Write a file into the workspace of the person 42."""
        workspace = find_workspace(self.product.engine.feature_context.settings, scope_of(ROUTE))
        workspace.create()
        workspace.write_file(name, content)

    @property
    def results(self) -> list[str]:
        """Return what the model was told of its calls, in order."""
        messages: list[dict[str, Any]] = (self.provider.requests[-1].json or {})["messages"]
        return [str(one["content"]) for one in messages if one["role"] == "tool"]

    async def answer(self, route: Route) -> str:
        """Return the stored message of the last answer."""
        conversation: ConversationId = await self.product.engine.resolve_name(route.key)
        store = self.product.engine.feature_context.store
        log = await store.read(entries.read_entries_after, conversation, after=0, limit=100)
        return log[-1].message


@asynccontextmanager
async def open_office(
    home: Path, url: str, replies: Sequence[Reply], channels: Mapping[str, ChannelSettings]
) -> AsyncGenerator[Office]:
    with FakeProvider(reply_in_sequence(replies)) as provider:
        settings = settings_for(home, provider=provider, store_url=url)
        settings = replace(settings, channels=dict(channels))
        async with open_application(settings, role="test") as product:
            async with Gateway(product.engine, settings):
                yield Office(product=product, provider=provider, home=home)
            assert await product.engine.feature_context.store.read(invariants.check) == []


def on_telegram(telegram: FakeTelegram) -> Mapping[str, ChannelSettings]:
    token = Secret.from_text(telegram.token)
    return {
        "telegram": ChannelSettings(
            token=token, base_url=telegram.base_url, allow=("42",), stream=False
        )
    }


ROUTE = Route(platform="telegram", kind="dm", chat="42")


@pytest.mark.both_databases
async def test_files_come_after_the_text_of_the_answer_that_they_belong_to(
    store_url: str, tmp_path: Path
) -> None:
    replies = [
        Calls([ScriptedCall("write_file", {"path": "a.csv", "content": "a,b\n1,2\n"})]),
        send("a.csv", caption="The numbers", name="numbers.csv"),
        send("missing.csv"),
        Text("Here they are."),
    ]
    with FakeTelegram() as telegram:
        async with open_office(tmp_path, store_url, replies, on_telegram(telegram)) as office:
            telegram.post_message("numbers please")
            await wait_until(lambda: len(telegram.messages) == 2)
            text, file = telegram.messages
            assert (text.text, text.file) == ("Here they are.", None)
            assert file.text == "The numbers"
            assert file.file == ("numbers.csv", b"a,b\n1,2\n")
            _, told, missing = office.results
            assert "goes with your answer" in told
            assert "there is no 'missing.csv' in the workspace" in missing
            (named,) = parse_files(await office.answer(ROUTE))
            assert (named.name, named.caption, named.size) == ("numbers.csv", "The numbers", 8)
            store = office.product.engine.feature_context.store
            content = await store.read(attachments.read_content, named.attachment)
            assert content == b"a,b\n1,2\n"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of a fresh store; what is only between a platform and the gateway needs one database."""
    return f"sqlite:///{tmp_path}/clew.db"


async def test_a_file_whose_arrival_is_unknown_comes_again_marked_and_its_text_does_not(
    url: str, tmp_path: Path
) -> None:
    with FakeTelegram() as telegram:
        replies = [send("a.png"), Text("Look.")]
        async with open_office(tmp_path, url, replies, on_telegram(telegram)) as office:
            office.write("a.png", PICTURE)
            telegram.fail_method("sendDocument", lost=True)
            telegram.post_message("picture please")
            await wait_until(lambda: len(telegram.messages) == 3)
            assert [one.text.strip() for one in telegram.messages] == [
                "Look.",
                "",
                "(may be a repeat)",
            ]
            assert [one.file and one.file.content for one in telegram.messages] == [
                None,
                PICTURE,
                PICTURE,
            ]


async def test_a_limit_is_told_before_a_file_is_sent_and_a_line_stands_for_one_that_is_refused(
    url: str, tmp_path: Path
) -> None:
    replies = [send("big.bin"), send("refused.bin"), Text("Done."), send("empty.bin"), Text("No.")]
    with FakeTelegram() as telegram:
        telegram.limit_files(999)
        async with open_office(tmp_path, url, replies, on_telegram(telegram)) as office:
            office.write("big.bin", b"x" * 3000)
            office.write("refused.bin", b"x" * 1000)
            office.write("empty.bin", b"")
            # As the platform documents it; what it takes today is less.
            limits = office.product.engine.feature_context.largest_files
            await wait_until(lambda: "telegram" in limits)
            limits["telegram"] = 2000
            telegram.post_message("files please")
            await wait_until(lambda: len(telegram.messages) == 2)
            assert "telegram takes files of at most 2 KB" in office.results[0]
            line = (
                "[The file refused.bin (1000 bytes) was not sent: Telegram refused the request: "
                "the file is too large. The dashboard and the API have it.]"
            )
            assert telegram.list_texts(42) == ["Done.", line]
            telegram.post_message("and the empty one?")
            await wait_until(lambda: len(telegram.messages) == 3)
            assert "is empty" in office.results[-1]


async def test_a_file_of_a_person_is_fetched_again_after_a_passing_failure(
    url: str, tmp_path: Path
) -> None:
    with FakeTelegram() as telegram:
        replies = [Text("Seen.")]
        async with open_office(tmp_path, url, replies, on_telegram(telegram)) as office:
            telegram.fail_method("getFile", lost=False)
            file = telegram.add_file("a.png", PICTURE)
            telegram.post_message(document={"file_id": file, "file_name": "a.png"}, caption="Look")
            await wait_until(lambda: telegram.list_texts(42) == ["Seen."])
            asked = str((office.provider.requests[-1].json or {})["messages"])
            assert "a.png" in asked
            assert "not fetched" not in asked


async def test_over_http_an_answer_names_its_files_which_are_fetched_by_id(
    url: str, tmp_path: Path
) -> None:
    replies = [send("a.png", caption="Look"), Text("Here."), Text("Nothing.")]
    with FakeProvider(reply_in_sequence(replies)) as provider:
        settings = settings_for(tmp_path, provider=provider, store_url=url)
        workspace = find_workspace(settings, scope_of(local_route("main")))
        workspace.create()
        workspace.write_file("a.png", PICTURE)
        async with running(settings) as server:
            await server.say("picture please", "main")
            path = "/api/conversations/main/entries"
            last = (await server.http.get(path)).json()["items"][-1]
            (file,) = last["files"]
            assert (file["name"], file["caption"], file["size"]) == ("a.png", "Look", len(PICTURE))
            got = await server.http.get(file["path"])
            assert got.content == PICTURE
            assert got.headers["content-type"] == "image/png"
            assert got.headers["content-disposition"].startswith("inline")
            await server.say("hello", "other")
            other = file["path"].replace(last_conversation(file["path"]), "other")
            assert (await server.http.get(other)).status_code == 404
            # The terminal shows the same file.
            *_, shown = build_blocks(EntryShape(**last))
            assert "File `a.png` (10 KB)" in shown.text
            assert f"`clew sessions file {last['session']} att_" in shown.text


def last_conversation(path: str) -> str:
    return path.split("/")[3]
