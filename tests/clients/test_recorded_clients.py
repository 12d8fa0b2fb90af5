"""Other programs as clients: what they sent once is answered, and is one conversation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.testing import FakeProvider, count_user_texts
from tests.acceptance.program import Clew
from tests.clients.recordings import Player, Recording, read_recordings

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDINGS = read_recordings()
ANSWERED = [each for each in RECORDINGS if not each.is_refused]
REFUSED = [each for each in RECORDINGS if each.is_refused]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """``clew serve`` with the fake provider behind it; what each client says stays apart."""
    clew = Clew(tmp_path_factory.mktemp("clients") / "home")
    with (
        FakeProvider(count_user_texts) as provider,
        clew.asking(provider).serving() as (url, _),
        httpx2.Client(base_url=url, timeout=60) as client,
    ):
        yield client


def stored(http: httpx2.Client, conversation: str) -> list[tuple[str, str]]:
    """Return the speakers and texts of a conversation, without the lines of files."""
    found: list[dict[str, Any]] = http.get(f"/api/conversations/{conversation}/entries").json()[
        "items"
    ]
    assert [entry["seq"] for entry in found] == list(range(1, len(found) + 1))
    return [(entry["role"], _without_files(entry)) for entry in found]


def _without_files(entry: dict[str, Any]) -> str:
    text: str = entry["text"]
    return text.partition("\n[file ")[0].strip() if entry["role"] == "user" else text


def _without_ids(text: str) -> str:
    """Return a text that may name files, without the ids that they have in one conversation."""
    return re.sub(r"att_\w+", "att", text)


@pytest.mark.parametrize("recording", ANSWERED, ids=lambda each: each.name)
def test_a_client_is_answered_and_its_turns_are_one_conversation(
    http: httpx2.Client, recording: Recording
) -> None:
    player = Player(http)
    player.play(recording.requests)
    conversations = list(dict.fromkeys(turn.conversation for turn in player.turns))
    assert len(conversations) == recording.told["conversations"]
    for conversation in conversations:
        turns = [turn for turn in player.turns if turn.conversation == conversation]
        said = [pair for turn in turns for pair in [("user", turn.asked), ("assistant", turn.text)]]
        # No entry is lost or doubled, and what was streamed is what is stored.
        assert stored(http, conversation) == said


@pytest.mark.parametrize("recording", ANSWERED, ids=lambda each: each.name)
def test_an_answer_that_is_asked_for_again_does_not_change_the_conversation(
    http: httpx2.Client, recording: Recording
) -> None:
    player = Player(http)
    player.play(recording.requests)
    before = stored(http, player.turns[0].conversation)
    last = next(each for each in reversed(recording.requests) if not each.get("side"))
    # The client shows another answer to its last message instead of the one that it got.
    player.play([last])
    *kept, again = player.turns
    assert _without_ids(again.text) == _without_ids(kept[-1].text)
    assert again.conversation not in {turn.conversation for turn in kept}
    assert stored(http, kept[0].conversation) == before


@pytest.mark.parametrize(
    "recording",
    [each for each in ANSWERED if any(one.get("side") for one in each.requests)],
    ids=lambda each: each.name,
)
def test_titles_and_tags_are_asked_for_beside_the_conversation(
    http: httpx2.Client, recording: Recording
) -> None:
    player = Player(http)
    player.play(recording.requests)
    assert len(player.asides) == sum(bool(each.get("side")) for each in recording.requests)
    beside = [aside.conversation for aside in player.asides]
    assert len({*beside, player.turns[0].conversation}) == len(beside) + 1
    # Nothing that a client keeps itself is listed.
    assert http.get("/api/conversations").json()["items"] == []


@pytest.mark.parametrize("recording", REFUSED, ids=lambda each: each.name)
def test_a_field_that_is_not_supported_is_refused_with_a_sentence(
    http: httpx2.Client, recording: Recording
) -> None:
    for request in recording.requests:
        response = Player(http).send(request)
        assert response.status_code == request["status"]
        problem = response.json()["error"]
        assert problem["type"] == "invalid_request_error"
        assert problem["code"] == "unsupported_parameter"
        assert problem["message"].startswith(f"{problem['param']}: ")
        assert problem["param"] in request["body"]
