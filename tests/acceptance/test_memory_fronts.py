"""Through the fronts of one gateway, what somebody has said reaches nobody else."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest

from clew.testing import FakeProvider
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import Clew, until
from tests.channels.fakes import FAKES
from tests.features.delegation_world import do, obey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.channels.fakes import Fake

_CANARY: Final = re.compile(r"zq\d{3}")
_GROUP: Final = -5


@dataclass(kw_only=True)
class Place:
    """Where somebody talks with the agent."""

    #: One for each scope; threads have that of their group.
    canary: str
    say: Callable[[str], object]
    count_answers: Callable[[], int]


@pytest.mark.slow
def test_no_fact_said_on_a_front_is_sent_for_anybody_else(tmp_path: Path, store_url: str) -> None:
    sent: list[ProviderRequest] = []

    def answer(request: ProviderRequest) -> Reply:
        sent.append(request)
        return obey(request)

    with ExitStack() as stack:
        provider = stack.enter_context(FakeProvider(answer))
        telegram = stack.enter_context(FakeTelegram())
        names = ("slack", "discord", "mattermost")
        fakes = {name: stack.enter_context(FAKES[name](None)) for name in names}
        home = tmp_path / "home"
        home.mkdir()
        tables = {name: fake.settings for name, fake in fakes.items()}
        own = {"token": telegram.token, "base_url": telegram.base_url, "groups": ["*"]}
        write_channels(home, {**tables, "telegram": own})
        clew = Clew(home, {"CLEW_STORE__URL": store_url}).asking(provider)
        url, _ = stack.enter_context(clew.serving())
        web, lines = list_local(clew, url)
        places = [*list_people(fakes), *list_telegram(telegram), web]
        tell(places, lambda canary: do(("remember", {"fact": f"Canary {canary} sings."})))
        tell(places, lambda _: "/new")
        tell([*places, lines], lambda canary: f"hello {canary}")
        tell(places, lambda _: do(("recall", {"query": "canary sings"})))
    mixed = [found for one in sent if len(found := set(_CANARY.findall(str(one.raw)))) > 1]
    assert mixed == []
    greeted = {
        found[0]: one.system_text
        for one in sent
        if (found := re.findall(r"hello (zq\d{3})", one.last_user_text))
    }
    assert {canary for canary, core in greeted.items() if f"Canary {canary} sings" in core} == {
        place.canary for place in places
    }


def write_channels(home: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    lines: list[str] = []
    for name, table in tables.items():
        given = {"allow": ["*"], "stream": False, **table}
        lines += [
            f"[channels.{name}]",
            *(f"{key} = {json.dumps(one)}" for key, one in given.items()),
        ]
    (home / "config.toml").write_text("\n".join(lines), encoding="utf-8")


def list_people(fakes: Mapping[str, Fake]) -> Iterator[Place]:
    """Return two people on each platform; those of all platforms have the same numbers."""
    for number, fake in enumerate(fakes.values()):
        for person in (1, 2):
            yield Place(
                canary=f"zq{number}0{person}",
                say=lambda text, fake=fake, person=person: fake.say(text, user=person),
                count_answers=lambda fake=fake, person=person: sum(
                    one.chat == person for one in fake.seen()
                ),
            )


def list_telegram(telegram: FakeTelegram) -> Iterator[Place]:
    """Return two people, and a group in which both are."""
    for person in (1, 2):
        yield Place(
            canary=f"zq90{person}",
            say=lambda text, person=person: telegram.post_message(text, user=person),
            count_answers=lambda person=person: len(telegram.list_texts(person)),
        )

    def write(text: str) -> None:
        called = text if text.startswith("/") else f"@clew_bot please:\n{text}"
        telegram.post_message(called, user=1, chat=_GROUP)

    yield Place(canary="zq909", say=write, count_answers=lambda: len(telegram.list_texts(_GROUP)))


def list_local(clew: Clew, url: str) -> Iterator[Place]:
    """Return a client of HTTP and the command line, which share the operator's facts."""
    http, lines = [0], [0]

    def post(text: str) -> None:
        answer = httpx2.post(
            f"{url}/v1/chat/completions",
            json={"messages": [{"role": "user", "content": text}]},
            headers={"X-Clew-Conversation": "web"},
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
        http[0] += 1

    def chat(text: str) -> None:
        clew.ok("chat", "-c", "lines", text=f"{text}\n")
        lines[0] += 1

    yield Place(canary="zq800", say=post, count_answers=lambda: http[0])
    yield Place(canary="zq800", say=chat, count_answers=lambda: lines[0])


def tell(places: Sequence[Place], make_text: Callable[[str], str]) -> None:
    """Have all say something at once, and wait for their answers."""
    before = [place.count_answers() for place in places]
    for place in places:
        place.say(make_text(place.canary))
    until(
        lambda: all(
            place.count_answers() > count for place, count in zip(places, before, strict=True)
        )
    )
