"""A limit of bytes is met with fewer bytes: older pictures become a line, and the turn goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import BinaryContent, ModelRequest, TextContent, UserPromptPart

from clew.agent.attachments import has_image, make_attachment_line
from clew.agent.attachments import replace_images as named
from clew.agent.provider_errors import FailureKind, classify_error, reclassify_text_only
from clew.core.channel_events import InlineFile
from clew.core.route import local_route
from clew.store.transactions.attachments import FetchedFile
from clew.testing import Calls, Fail, Reply, ScriptedCall, Text
from tests.failing.desk import FORMATS, open_desk

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Script
    from tests.failing.desk import Desk, Format, Told

PNG = b"\x89PNG\r\n\x1a\n"
#: Bytes of a picture, and of the largest request: two of them fit.
SIZE, MOST = 20_000, 70_000


def takes(most: int, script: Script, refusal: Fail | None = None) -> Script:
    """A provider with a limit of bytes."""

    def limited(request: ProviderRequest) -> Reply:
        large = len(json.dumps(request.raw)) > most
        return (refusal or Fail("too_large")) if large else script(request)

    return limited


async def shown(desk: Desk, talk: str, text: str, *, size: int = SIZE) -> Told:
    """Send a message with a picture, and wait for its end."""
    number = len(desk.ids) + sum(len(provider.requests) for provider in desk.providers)
    content = PNG + number.to_bytes(4) + bytes(size)
    file = FetchedFile(
        id=f"att_{number:026}", name=f"river{number}.png", media_type="image/png", content=content
    )
    before = [len(provider.requests) for provider in desk.providers]
    placed = await desk.engine.submit(
        desk.engine.new_input(text, files=[file]), target=local_route(talk)
    )
    desk.ids[talk] = placed.conversation_id
    return await desk.told_of(placed, await desk.end(placed), [], before)


def pictures(request: ProviderRequest) -> int:
    return json.dumps(request.raw).count("iVBORw0KGgo")


@pytest.mark.parametrize("form", FORMATS)
async def test_older_pictures_become_a_line_and_the_request_is_made_again_once(
    form: Format, tmp_path: Path
) -> None:
    asked: list[ProviderRequest] = []

    def answer(request: ProviderRequest) -> Reply:
        asked.append(request)
        return Text(f"I see {pictures(request)}")

    async with open_desk(tmp_path, form) as desk:
        talk = await desk.begin()
        desk.play(takes(MOST, answer))
        for count in (1, 2):
            assert (await shown(desk, talk, "look")).text == f"I see {count}"
        told = await shown(desk, talk, "look at this one")
        assert told.text == "I see 1"
        assert [request.status for request in told.requests] == [413, 200]
        [notice] = told.notices
        assert "older pictures" in notice
        assert json.dumps(asked[-1].raw).count("is not shown any more") == 2
        # The next ones fit, and what was left out stays so.
        assert (await desk.say(talk, "and now?")).text == "I see 1"
        assert (await shown(desk, talk, "look")).text == "I see 2"
        assert await desk.check() == []
    async with open_desk(tmp_path, form) as desk:
        desk.play(takes(MOST, answer))
        desk.ids[talk] = await desk.engine.resolve_name(talk)
        assert (await desk.say(talk, "and after a restart?")).text == "I see 2"


async def test_a_picture_that_is_too_large_itself_is_reported_and_blocks_nothing(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        desk.play(takes(MOST, lambda request: Text(f"I see {pictures(request)}")))
        told = await shown(desk, talk, "look", size=90_000)
        assert (told.outcome, told.code) == ("failed", "request_too_large")
        assert "Send fewer or smaller pictures" in told.text
        assert "/reset" not in told.text
        assert [request.status for request in told.requests] == [413]
        # The advice works.
        assert (await shown(desk, talk, "a smaller one")).text == "I see 1"


@pytest.mark.parametrize(
    "refusal",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "openai/gpt-oss-20b is not a multimodal model",
    ],
)
async def test_a_model_that_accepts_no_pictures_is_told_their_names_and_goes_on(
    tmp_path: Path, refusal: str
) -> None:
    asked: list[ProviderRequest] = []

    def blind(request: ProviderRequest) -> Reply:
        asked.append(request)
        seen = pictures(request)
        said = {"error": {"message": refusal, "type": "invalid_request_error"}}
        return Fail(status=400, body=said) if seen else Text("I read the name")

    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        desk.play(blind)
        told = await shown(desk, talk, "look")
        assert told.text == "I read the name"
        assert [request.status for request in told.requests] == [400, 200]
        [notice] = told.notices
        assert "accepts no pictures" in notice
        assert "is not shown: the model in use accepts no pictures]" in json.dumps(asked[-1].raw)
        told = await desk.say(talk, "and now?")
        assert [request.status for request in told.requests] == [200]
        assert await desk.check() == []


def photograph() -> BinaryContent:
    """A tool that returns a picture."""
    return BinaryContent(data=PNG + bytes(SIZE), media_type="image/png")


async def test_pictures_that_tools_return_make_room_for_newer_ones(tmp_path: Path) -> None:
    taken = 0

    def turn(request: ProviderRequest) -> Reply:
        nonlocal taken
        taken += 1
        return (
            Calls([ScriptedCall("photograph")])
            if taken <= 4
            else Text(f"I see {pictures(request)}")
        )

    async with open_desk(tmp_path, "messages", agent=Agent(tools=[photograph])) as desk:
        talk = await desk.begin()
        desk.play(takes(MOST, turn))
        told = await desk.say(talk, "take four")
        assert told.text.startswith("I see ")
        assert await desk.check() == []


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "messages.0.content.1: image exceeds 5 MB maximum: 6 > 5 bytes", "request_too_large"),
        (400, "At most 1 image(s) may be provided in one request.", "request_too_large"),
        (400, "Too many images in request: 60 images, the limit is 50", "request_too_large"),
        (400, "Request payload size exceeds the limit: 20971520 bytes.", "request_too_large"),
        (400, "request body too large", "request_too_large"),
        (413, "Request Entity Too Large", "request_too_large"),
        (413, "Requested 9000 tokens per minute, limit 6000", "context_length_exceeded"),
        (400, "This model's maximum context length is 4096 tokens", "context_length_exceeded"),
        (400, "Invalid request: temperature may be at most 2", "bad_request"),
        (400, "Invalid schema for function 'image_of': limit must be a number", "bad_request"),
    ],
)
def test_a_limit_of_bytes_is_distinguished_from_one_of_tokens(
    status: int, message: str, kind: str
) -> None:
    failure = classify_error(ModelHTTPError(status, "m", {"error": {"message": message}}))
    assert failure.kind.value == kind
    if failure.kind is FailureKind.TOO_LARGE:
        alone = reclassify_text_only(failure).kind
        assert alone is (FailureKind.OVERFLOW if status == 413 else FailureKind.REFUSED)


def test_a_picture_is_named_the_same_way_each_time() -> None:
    file = InlineFile(
        line="[file att_1: a.png]", sha256="ab", name="a.png", kind="picture", size=28
    )
    text = InlineFile(line="[file att_2: a.txt]", sha256="cd", name="a.txt", kind="text", size=28)
    request = ModelRequest(
        parts=[UserPromptPart(["look", make_attachment_line(file), make_attachment_line(text)])]
    )
    assert has_image(request)
    once = named(request)
    assert not has_image(once)
    assert once == named(request)
    [part] = once.parts
    assert isinstance(part, UserPromptPart)
    content = part.content
    assert content[1] == TextContent(
        "[file att_1: a.png is not shown any more: the request was too large]"
    )
    assert content[2] == make_attachment_line(text)
    assert named(once) is once
