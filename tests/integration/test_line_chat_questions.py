"""Questions in the line-by-line chat: what is typed allows only what it was meant for."""

from __future__ import annotations

import io
import json
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from clew.cli.entry_point import run_command
from clew.cli.line_chat import chat_with_editor
from clew.cli.line_editor import LineEditor
from clew.cli.output import Output
from clew.config import load_settings
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from clew.testing.provider import reply_in_sequence
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from clew.config import Settings

AGENT = '''
from pathlib import Path

from pydantic_ai import Agent

agent = Agent()


@agent.tool_plain(requires_approval=True)
def cut(colour: str) -> str:
    """Cut the roses of a colour."""
    with Path(__file__).with_name("cut.txt").open("a") as garden:
        garden.write(colour + "|")
    return f"cut all {colour} ones"
'''
LONG = "red " * 120 + "  ; rm -rf ~"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    # A module of its own for each test: Python imports a name once.
    module = f"gardener_{uuid4().hex}"
    (plugins / f"{module}.py").write_text(AGENT, encoding="utf-8")
    flags = {"agent.object": f"{module}:agent", "model.name": "openai-chat:fake"}
    return load_settings(home=tmp_path, flags=flags, environ={})


class Person(LineEditor):
    """Types at the prompt what a test says, and meanwhile each text once something is shown."""

    def __init__(self, *steps: tuple[str, str]) -> None:
        self.prompts: list[str | None] = ["cut them", None]
        self.begun: list[str] = []
        self._steps = steps
        self._reader, self._writer = os.pipe()
        self.screen: io.StringIO = io.StringIO()

    def read_message(self, prompt: str, *, begun: str = "") -> str | None:
        self.begun.append(begun)
        return self.prompts.pop(0)

    @contextmanager
    def enable_typeahead(self) -> Generator[int | None]:
        over = threading.Event()
        thread = threading.Thread(target=self._type, args=(over,))
        thread.start()
        try:
            yield self._reader
        finally:
            over.set()
            thread.join()

    def _type(self, over: threading.Event) -> None:
        """Type all steps; a chat that does not end after them finds its terminal gone."""
        steps, self._steps = self._steps, ()
        try:
            for wanted, typed in steps:
                block_until(lambda wanted=wanted: wanted in self.screen.getvalue())
                self.type(typed)
        except AssertionError:
            os.close(self._writer)
            raise
        if not over.wait(60):
            os.close(self._writer)

    def type(self, text: str) -> None:
        os.write(self._writer, text.encode())


class Reflex(io.StringIO):
    """A screen before which each text is typed in the moment in which something is shown."""

    def __init__(self, person: Person, *steps: tuple[str, str]) -> None:
        super().__init__()
        self._person, self._steps = person, list(steps)

    def write(self, text: str, /) -> int:
        count = super().write(text)
        if self._steps and self._steps[0][0] in text:
            self._person.type(self._steps.pop(0)[1])
        return count


def talk(settings: Settings, replies: Sequence[Calls | Text], person: Person) -> str:
    """Everything that a chat shows."""
    with FakeProvider(reply_in_sequence(replies)) as provider:
        at = replace(settings, model=replace(settings.model, base_url=provider.openai_url))
        screen = Output(person.screen)
        assert chat_with_editor(at, "main", person, out=screen, notes=screen) == 0
    return person.screen.getvalue()


def cuts(settings: Settings) -> list[str]:
    garden = settings.home / "plugins" / "cut.txt"
    return garden.read_text().split("|")[:-1] if garden.exists() else []


def calls(*colours: str) -> Calls:
    return Calls([ScriptedCall("cut", {"colour": colour}) for colour in colours])


END = Text("done now")
ASKED = "n refuses it"


def test_a_sentence_is_no_consent_and_is_not_lost(settings: Settings) -> None:
    person = Person((ASKED, "actually, no, do not do that\n"), ("it allows nothing", "n\n"))
    screen = talk(settings, [calls("red"), END, Text("as you say")], person)
    assert cuts(settings) == []
    assert "✗ cut is refused and does not run" in screen
    assert "(allowed" not in screen
    assert "> actually, no, do not do that" in screen
    assert "as you say" in screen


def test_all_of_the_arguments_are_shown_to_the_letter(settings: Settings) -> None:
    person = Person((ASKED, "y\n"))
    screen = talk(settings, [calls(LONG), END], person)
    assert LONG in screen
    assert cuts(settings) == [LONG]
    assert "(allowed: cut)" in screen


def test_an_answer_in_the_moment_of_the_question_counts(settings: Settings) -> None:
    person = Person()
    person.screen = Reflex(person, (ASKED, "y\n"))
    screen = talk(settings, [calls("red"), END], person)
    assert cuts(settings) == ["red"]
    assert "answers nothing" not in screen


def test_an_answer_before_the_question_was_shown_whole_allows_nothing(settings: Settings) -> None:
    person = Person()
    person.screen = Reflex(person, ("? cut(", "y\n"), (ASKED, "n\n"))
    screen = talk(settings, [calls("red"), END], person)
    assert cuts(settings) == []
    assert "“y” answers nothing" in screen


def test_all_calls_are_listed_and_all_allows_those(settings: Settings) -> None:
    person = Person(("allows all 3", "a\n"))
    screen = talk(settings, [calls("red", "white", "blue"), END], person)
    asked = [line for line in screen.splitlines() if line.startswith("? ")]
    assert [line.partition(":")[0] for line in asked] == ["? 1 of 3", "? 2 of 3", "? 3 of 3"]
    for colour in ("red", "white", "blue"):
        assert f'cut({{"colour":"{colour}"}})' in "".join(asked)
    assert sorted(cuts(settings)) == ["blue", "red", "white"]


def test_an_answer_given_twice_does_not_allow_the_next_call(settings: Settings) -> None:
    person = Person(("allows all 2", "y\ny\n"), ("answers nothing", "no\n"))
    screen = talk(settings, [calls("red", "white"), END], person)
    assert len(cuts(settings)) == 1
    assert screen.count("(allowed: cut)") == 1
    assert screen.count("✗ cut is refused") == 1
    assert ("user", "y") not in said(settings)


def test_input_typed_before_the_question_is_a_message(settings: Settings) -> None:
    slow = Calls([ScriptedCall("cut", {"colour": "red"})], text="I think about it", delay=0.2)
    person = Person(("I think", "y\n/approve\nye"), (ASKED, "s\n"), ("before it was typed", "n\n"))
    screen = talk(settings, [slow, END, Text("you said y")], person)
    assert cuts(settings) == []
    assert "nothing was allowed or refused" in screen
    assert "“yes” answers nothing" in screen
    assert ("user", "y") in said(settings)


def test_a_pasted_word_allows_nothing(settings: Settings) -> None:
    person = Person((ASKED, "\x1b[200~yes\x1b[201~\n"), ("answers nothing", "n\n"))
    talk(settings, [calls("red"), END], person)
    assert cuts(settings) == []


def test_an_open_question_is_shown_again_after_leaving(settings: Settings) -> None:
    leaving = Person((ASKED, "/quit\n"))
    screen = talk(settings, [calls("red")], leaving)
    assert "the question stays open" in screen
    assert cuts(settings) == []
    # The end of its session is filed as well, and is nothing that the person asked for.
    back = Person((ASKED, "/queue\n"), ("Nothing waits", "y\n"))
    back.prompts = [None]
    screen = talk(settings, [END], back)
    assert "done now" in screen
    assert '"end"' not in screen
    assert "“end”" not in screen
    assert cuts(settings) == ["red"]


def said(settings: Settings) -> list[tuple[str, str]]:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", out)
        args = ["--home", str(settings.home), "--set", "model.name=offline", "sessions", "show"]
        assert run_command([*args, "main", "--cursor", "0", "--limit", "100", "--json"]) == 0
    return [(item["role"], item["text"]) for item in json.loads(out.getvalue())["items"]]
