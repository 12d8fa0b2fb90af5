"""A client that nobody made for Clew: ``llm`` talks to it with four lines of its own settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from clew.testing import Fail, FakeProvider, count_user_texts, echo
from tests import forking
from tests.acceptance.program import PATIENCE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TOKEN = "s3cret-token"


@dataclass(frozen=True, kw_only=True)
class Llm:
    """The program with settings of its own."""

    folder: Path
    clew: Clew

    def configure(self, url: str, *more: str) -> None:
        """As its documentation says."""
        self.folder.mkdir(exist_ok=True)
        lines = ["- model_id: mine", "  model_name: clew", f"  api_base: {url}/v1", *more]
        (self.folder / "extra-openai-models.yaml").write_text("\n".join(lines) + "\n")

    def run(self, *args: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return forking.run(
            ["-m", "mine", *args],
            environ={**self.clew.environ, "LLM_USER_PATH": str(self.folder)},
            text=text or "",
            within=PATIENCE,
            program="llm.cli:cli",
        )

    def says(self, *args: str, text: str | None = None) -> str:
        done = self.run(*args, text=text)
        assert done.returncode == 0, done
        return done.stdout.strip()


@pytest.fixture
def llm(clew: Clew, tmp_path: Path) -> Llm:
    return Llm(folder=tmp_path / "llm", clew=clew)


@pytest.fixture
def url(clew: Clew, llm: Llm) -> Iterator[str]:
    """A gateway with the fake provider behind it, known to ``llm``."""
    with FakeProvider(count_user_texts) as provider, clew.asking(provider).serving() as (found, _):
        llm.configure(found)
        yield found


@pytest.mark.usefixtures("url")
def test_it_is_answered_plain_and_streamed(llm: Llm) -> None:
    assert llm.says("--no-stream", "hello") == "turn 1: I have seen: hello"
    assert llm.says("hello") == "turn 1: I have seen: hello"
    assert llm.says("look at this", text="the file") == (
        "turn 1: I have seen: the file look at this"
    )


@pytest.mark.usefixtures("url")
def test_it_continues_by_resending_and_stays_in_one_conversation(clew: Clew, llm: Llm) -> None:
    for way in ([], ["--no-stream"]):
        llm.says(*way, "-s", "be brief", "first")
        assert llm.says(*way, "-c", "second").startswith("turn 2")
        assert llm.says(*way, "-c", "third") == "turn 3: I have seen: first | second | third"
    listed = clew.data("sessions", "list", "--all")["items"]
    assert [each["entries"] for each in listed] == [6, 6]
    assert clew.data("sessions", "list")["items"] == []


def test_a_header_in_its_settings_names_the_conversation(clew: Clew, llm: Llm, url: str) -> None:
    llm.configure(url, "  headers:", "    X-Clew-Conversation: notes")
    llm.says("one")
    assert llm.says("two") == "turn 2: I have seen: one | two"
    assert [text for who, text in clew.said("notes") if who == "user"] == ["one", "two"]


def test_its_key_is_the_token_and_a_wrong_one_is_reported(clew: Clew, llm: Llm) -> None:
    with clew.with_env({"CLEW_API__TOKEN": TOKEN}).serving() as (url, _):
        llm.configure(url, "  api_key_name: mine")
        assert llm.says("--key", TOKEN, "hi there") == "You said: hi there"
        refused = llm.run("--key", "another", "hello")
    assert refused.returncode != 0
    assert "api.token" in refused.stderr


@pytest.mark.parametrize("way", [[], ["--no-stream"]], ids=["streamed", "plain"])
def test_a_failure_is_reported_with_what_to_do(clew: Clew, llm: Llm, way: list[str]) -> None:
    with (
        FakeProvider(lambda request: Fail("authentication")) as provider,
        clew.asking(provider).serving() as (url, _),
    ):
        llm.configure(url)
        failed = llm.run(*way, "hello")
        asked = len(provider.requests)
    assert failed.returncode != 0
    assert "401" in failed.stderr
    # Neither of the two asks again what cannot be answered.
    assert asked == 1


def test_unsupported_client_tools_are_reported(clew: Clew, llm: Llm) -> None:
    with FakeProvider(echo) as provider, clew.asking(provider).serving() as (url, _):
        llm.configure(url, "  supports_tools: true")
        refused = llm.run("-T", "llm_time", "what time is it?")
    assert refused.returncode != 0
    assert "tools" in refused.stderr
