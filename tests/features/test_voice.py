"""Recordings become text before the model is asked, and answers are spoken: on Telegram."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clew.config.secret import Secret
from clew.config.settings import ChannelSettings
from clew.features.voice.recordings import find_format, is_recording, measure_millis
from clew.features.voice.settings import VoiceService, find_problems
from clew.features.voice.speakable import MAX_CHARS, make_speakable
from clew.gateway.gateway import Gateway
from clew.runtime import open_application
from clew.store.transactions import entries
from clew.testing import FakeProvider, Text
from clew.testing.telegram import FakeTelegram
from tests.contract import invariants
from tests.features.voice_service import VoiceServer, make_ogg
from tests.integration.api_server import settings_for
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.runtime import Application
    from clew.store.contract import Store
    from clew.testing import ProviderRequest, Reply
    from tests.features.voice_service import Heard

KEY = "sk-of-the-test-12345"
PLACE = "agent:main:telegram:dm:42"


def last_said(request: ProviderRequest) -> Reply:
    """Answer with the last line that the person said."""
    said = [text for one in request.messages if one.role == "user" for text in one.texts]
    return Text(f"You said: {said[-1]}")


def always(heard: Heard) -> Callable[[bytes], Heard]:
    return lambda _: heard


@dataclass(frozen=True, kw_only=True)
class Phone:
    """A person with Telegram, and what is behind it."""

    telegram: FakeTelegram
    service: VoiceServer
    provider: FakeProvider
    product: Application

    @property
    def store(self) -> Store:
        return self.product.engine.feature_context.store

    def record(self, name: str, *, content: bytes | None = None, **more: Any) -> None:
        """Send a voice note."""
        file = self.telegram.add_file("voice.ogg", content or make_ogg(name))
        voice = {"file_id": file, "duration": 12, "mime_type": "audio/ogg"} | more
        self.telegram.post_message(voice=voice)

    async def answers(self, count: int) -> list[str]:
        """Return the messages that the person got, once there are so many."""
        await wait_until(lambda: len(self.telegram.messages) >= count)
        return [one.text for one in self.telegram.messages]

    async def usage(self) -> list[tuple[Any, ...]]:
        return await self.store.read(
            lambda t: t.fetch_all(
                "SELECT purpose, model, cost_micros FROM usage WHERE purpose <> 'turn' "
                "AND purpose <> 'title' ORDER BY created_at"
            )
        )


@asynccontextmanager
async def open_phone(
    home: Path,
    url: str,
    hear: Callable[[bytes], Heard] = lambda _: "hello from my voice",
    *,
    services: tuple[str, ...] = ("stt",),
    before: FakeTelegram | None = None,
    **more: Any,
) -> AsyncGenerator[Phone]:
    with (
        VoiceServer(hear).running() as service,
        before or FakeTelegram() as telegram,
        FakeProvider(last_said) as provider,
    ):
        one = VoiceService(base_url=service.url, api_key=Secret.from_text(KEY), price=6000, **more)
        settings = replace(
            settings_for(home, provider=provider, store_url=url),
            channels={
                "telegram": ChannelSettings(
                    token=Secret.from_text(telegram.token),
                    base_url=telegram.base_url,
                    allow=("42",),
                    stream=False,
                )
            },
            tables={"voice": dict.fromkeys(services, one)},
        )
        async with open_application(settings, role="test") as product:
            async with Gateway(product.engine, settings, commands=product.commands):
                yield Phone(telegram=telegram, service=service, provider=provider, product=product)
            assert await product.engine.feature_context.store.read(invariants.check) == []


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Of a fresh store; what is only between the services and the gateway needs one database."""
    return f"sqlite:///{tmp_path}/clew.db"


@pytest.mark.both_databases
async def test_a_voice_note_is_read_before_the_model_is_asked_and_its_file_is_kept(
    store_url: str, tmp_path: Path
) -> None:
    async with open_phone(tmp_path, store_url, language="en") as phone:
        phone.record("one")
        (answer,) = await phone.answers(1)
        assert "voice.ogg, audio/ogg" in answer
        assert "transcript below]\nhello from my voice\n[end of the transcript of" in answer
        (asked,) = phone.service.asked
        assert (asked.content, asked.authorization) == (make_ogg("one"), f"Bearer {KEY}")
        assert asked.fields["filename"] == "recording.ogg"
        assert (asked.fields["language"], asked.fields["response_format"]) == ("en", "json")
        assert await phone.usage() == [("transcript", "gpt-4o-mini-transcribe", 3000)]
        # The same recording again, and /retry: it is known.
        phone.record("one")
        await phone.answers(2)
        phone.telegram.post_message("/retry")
        answers = await phone.answers(4)
        assert "hello from my voice" in answers[-1]
        assert phone.service.count("transcriptions") == 1
        conversation = await phone.product.engine.resolve_name(PLACE)
        log = await phone.store.read(entries.read_entries_after, conversation, after=0, limit=9)
        assert "hello from my voice" in log[0].text


FAILURES = {
    429: "the limit of the service is reached (429)",
    500: "the service failed (500): the key",
    401: "the service refused the key (401)",
    400: "the service refused it (400): the key",
    b"[1, 2": "the service answered without a text",
    b'{"text": 5}': "the service answered without a text",
    "  ": "the service heard no words in it",
    None: "the service did not answer in 3 s",
}


async def test_a_service_that_fails_leaves_the_message_with_the_reason_and_retry_asks_again(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.features.voice.client._PAUSE", 0.0)
    async with open_phone(tmp_path, url, timeout=timedelta(seconds=3)) as phone:
        there = 0
        for number, (heard, why) in enumerate(FAILURES.items()):
            phone.service.hear = always(heard)
            phone.record(f"note {number}")
            there += 2
            notice, answer = (await phone.answers(there))[-2:]
            assert f"no transcript: {why}" in answer
            assert f"There is no transcript of voice.ogg: {why}" in notice
            assert KEY not in answer + notice
            if heard == 429:
                # It is told once, until a recording was read.
                phone.record("another one")
                there += 1
                assert "no transcript" in (await phone.answers(there))[-1]
            phone.service.hear = always("heard at last")
            phone.telegram.post_message("/retry")
            there += 2
            assert "heard at last" in (await phone.answers(there))[-1]


@pytest.mark.both_databases
async def test_a_gateway_that_stops_while_a_recording_is_read_loses_nothing_and_the_next_one_reads(
    store_url: str, tmp_path: Path
) -> None:
    async with open_phone(tmp_path, store_url, always(None)) as phone:
        phone.record("one")
        await wait_until(lambda: len(phone.service.asked) == 1)
        assert phone.telegram.messages == []
        telegram = phone.telegram
    async with open_phone(tmp_path, store_url, before=telegram) as phone:
        (answer,) = await phone.answers(1)
        assert "hello from my voice" in answer
        assert [one.content for one in phone.service.asked] == [make_ogg("one")]


async def test_what_is_no_recording_that_a_service_takes_is_told_and_not_sent(
    url: str, tmp_path: Path
) -> None:
    async with open_phone(tmp_path, url, longest=timedelta(seconds=30)) as phone:
        phone.record("amr", content=b"#!AMR\n" + bytes(90), mime_type="audio/amr")
        assert "audio/amr is no format that it can be made of" in (await phone.answers(2))[-1]
        phone.record("long", content=make_ogg("long", 31))
        assert "it is 31 s long, and voice.stt.longest is 30 s" in (await phone.answers(3))[-1]
        assert phone.service.asked == []


async def test_a_message_whose_reader_is_gone_goes_on_without_a_text(
    url: str, tmp_path: Path
) -> None:
    async with open_phone(tmp_path, url, services=()) as phone:
        phone.record("one")
        (answer,) = await phone.answers(1)
        assert "told by name only]" in answer


async def test_an_answer_to_a_voice_note_is_spoken_behind_its_text_and_others_as_people_choose(
    url: str, tmp_path: Path
) -> None:
    async with open_phone(tmp_path, url, services=("stt", "tts")) as phone:
        phone.record("one")
        await phone.answers(2)
        text, speech = phone.telegram.messages
        assert "hello from my voice" in text.text
        assert (speech.text, speech.file) == ("", ("answer.ogg", make_ogg("speech", 6)))
        assert phone.service.asked[-1].fields["input"].startswith("You said:")
        assert await phone.usage() == [
            ("transcript", "gpt-4o-mini-transcribe", 3000),
            ("speech", "gpt-4o-mini-tts", 600),
        ]
        phone.telegram.post_message("written")
        assert (await phone.answers(3))[-1] == "You said: written"
        phone.telegram.post_message("/voice on")
        assert "every answer is also spoken" in (await phone.answers(4))[-1]
        assert phone.service.count("speech") == 1
        phone.service.speech = 500
        phone.telegram.post_message("again")
        assert (await phone.answers(5))[-1] == "You said: again"
        await phone.product.engine.wait_until_idle()
        phone.telegram.post_message("/voice")
        assert "The last one was not: the service failed (500)" in (await phone.answers(6))[-1]
        phone.telegram.post_message("/voice loud")
        assert "write /voice on, /voice off or /voice auto" in (await phone.answers(7))[-1]
        phone.telegram.post_message("/voice off")
        await phone.answers(8)
        phone.record("two")
        await phone.answers(9)
        await phone.product.engine.wait_until_idle()
        assert len([one for one in phone.telegram.messages if one.file]) == 1


def test_recordings_are_known_by_their_first_bytes_and_ogg_says_how_long_it_is() -> None:
    signs = {
        b"OggS" + bytes(60): "ogg", b"ID3\4" + bytes(9): "mp3", b"\xff\xfb\x90": "mp3",
        bytes(4) + b"ftypM4A ": "m4a", b"RIFF\0\0\0\0WAVEfmt ": "wav",
        b"\x1a\x45\xdf\xa3webm": "webm", b"fLaC\0": "flac", b"#!AMR\n": None, b"": None,
    }  # fmt: skip
    assert {content: find_format(content) for content in signs} == signs
    assert measure_millis(make_ogg("a", 7)) == 7000
    assert [measure_millis(one) for one in (b"", b"OggS", b"OggSOpusHead", b"RIFF")] == [None] * 4
    assert is_recording("audio/mp4", b"x")
    assert is_recording("application/octet-stream", b"OggS" + bytes(40))
    assert not is_recording("video/mp4", bytes(4) + b"ftypisom")
    assert not is_recording("image/png", b"\x89PNG")


def test_what_is_spoken_has_no_marks_addresses_or_code() -> None:
    text = "# Plan\n\n**Two** `steps`:\n\n- see [the page](https://a.b/c)\n- https://a.b\n```py\nx\n```\nDone."
    assert make_speakable(text) == "Plan\nTwo steps:\nsee the page\nDone."
    assert make_speakable("```\nx = 1\n```") == ""
    long = "One sentence. " * 400
    assert len(make_speakable(long)) <= MAX_CHARS
    assert make_speakable(long).endswith("sentence.")


def test_a_table_that_is_no_service_is_refused(tmp_path: Path) -> None:
    settings = replace(settings_for(tmp_path), tables={"voice": {"sst": VoiceService()}})
    assert list(find_problems(settings)) == ["[voice.sst]: there are [voice.stt] and [voice.tts]"]
