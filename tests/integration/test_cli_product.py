"""The commands that need the product, run in this process."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import signal
import socket
import sqlite3
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from clew.cli.entry_point import run_command
from clew.cli.line_chat import chat_with_editor
from clew.cli.line_editor import LineEditor
from clew.cli.logs import logs_to_file
from clew.cli.output import Output
from clew.config import Secret, Settings
from clew.config.settings import ModelSettings
from clew.runtime import configure_default_logging, open_application
from clew.testing import (
    CutStream,
    Endless,
    Fail,
    FakeProvider,
    Hang,
    Text,
    count_user_texts,
    reply_by_user_text,
    reply_in_sequence,
)
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


@pytest.fixture
def provider() -> Generator[FakeProvider]:
    with FakeProvider(count_user_texts) as provider:
        yield provider


@pytest.fixture
def clew(tmp_path: Path) -> Callable[..., int]:
    def clew(*args: str, **settings: str) -> int:
        given = {"model.name": "offline", **settings}
        flags = [part for key, value in given.items() for part in ("--set", f"{key}={value}")]
        return run_command(["--home", str(tmp_path), *flags, *args])

    return clew


def model(provider: FakeProvider) -> dict[str, str]:
    return {"model.name": "openai-chat:fake", "model.base_url": provider.openai_url}


def test_a_question_is_answered_on_standard_output(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "hello", "there") == 0
    assert capsys.readouterr() == ("You said: hello there\n", "")
    assert clew("chat", "--json", "what did I say?") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["text"] == "You told me: hello there"


def test_a_title_leads_to_its_conversation_where_no_name_is_so(
    clew: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "-c", "trip", "hello") == 0
    assert clew("sessions", "rename", "trip", "My Trip") == 0
    capsys.readouterr()
    assert clew("chat", "-c", "my trip", "hello again") == 0
    assert "as its title: cnv_" in capsys.readouterr().err
    screen = Output(io.StringIO())
    keyboard = Typist(["and again", None])
    chat_with_editor(Settings(home=tmp_path), "My Trip", keyboard, out=screen, notes=screen)
    capsys.readouterr()
    assert clew("sessions", "list", "--json") == 0
    (only,) = json.loads(capsys.readouterr().out)["items"]
    assert (only["title"], only["entries"]) == ("My Trip", 6)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_original_without_a_title_keeps_its_name(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("sessions", "new", "trip") == 0
    assert clew("chat", "-c", "trip", "/branch") == 0
    assert "It begins with the context of the original" in capsys.readouterr().out
    assert clew("sessions", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["items"]
    assert {one["title"] for one in listed} == {None, "trip"}


def test_a_failure_is_reported_and_exits_1(
    clew: Callable[..., int],
    provider: FakeProvider,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    provider.script = reply_in_sequence([], default=Fail("authentication"))
    assert clew("chat", "hello", **model(provider)) == 1
    out, err = capsys.readouterr()
    assert (out, "401" in err) == ("", True)
    # The provider's words are enough: no traceback in the log.
    log = (tmp_path / "logs" / "chat.log").read_text()
    assert "model_request_failed" in log
    assert "Traceback" not in log


def test_a_short_key_that_a_provider_quotes_is_not_shown(
    clew: Callable[..., int], provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"error": {"message": "bad key sk-123"}}
    provider.script = reply_in_sequence([], default=Fail("authentication", body=body))
    assert clew("chat", "hello", **model(provider), **{"model.api_key": "sk-123"}) == 1
    assert "bad key ********" in capsys.readouterr().err


def test_a_provider_that_is_misspelt_is_guessed(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "hello", **{"model.name": "opnai:gpt-5"}) != 0
    assert "did you mean openai:gpt-5?" in capsys.readouterr().err


def test_a_reply_is_broken_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = Terminal()
    Output(shown).write_reply("/new [title]: start a new conversation here; the old one is kept")
    assert shown.getvalue().splitlines() == [
        "/new [title]: start a new conversation",
        "    here; the old one is kept",
    ]


def test_commands_are_carried_out(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert clew("chat", "hello there") == 0
    assert clew("chat", "/retry") == 0
    assert clew("chat", "--json", "/status") == 0
    assert clew("chat", "-c", "cnv_none", "/status") == 2
    out, err = capsys.readouterr()
    assert out.startswith("You said: hello there\nYou said: hello there\n{")
    assert "clew sessions list" in err


def test_ctrl_c_stops_an_answer(
    clew: Callable[..., int], provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.script = reply_in_sequence([], default=Hang())
    with pressed_when(lambda: bool(provider.requests)):
        assert clew("chat", "hello", **model(provider)) == 130
    assert "stopped" in capsys.readouterr().err


def test_a_search_rebuilds_a_damaged_index_where_only_commands_open_the_store(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert clew("chat", "hello green world") == 0
    # As an upgrade leaves it that changes how messages are split into words.
    with closing(sqlite3.connect(tmp_path / "clew.db")) as database, database:
        database.execute("UPDATE search_state SET is_broken = 1")
    capsys.readouterr()
    assert clew("sessions", "search", "green") == 0
    assert "hello green world" in capsys.readouterr().out
    assert clew("fsck") == 0


def test_sessions_are_listed_shown_found_named_begun_and_deleted(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*args: str, code: int = 0) -> str:
        capsys.readouterr()
        assert clew(*args) == code
        out, err = capsys.readouterr()
        return out or err

    def data(*args: str) -> Any:
        return json.loads(printed(*args, "--json"))

    assert "clew chat" in printed("sessions", "list")
    printed("chat", "-c", "work", "hello there")
    assert "work" in printed("sessions", "list")
    (listed,) = data("sessions", "list")["items"]
    assert data("sessions", "show", "work")["conversation"] == listed
    assert "You said: hello there" in printed("sessions", "show", "work")
    assert data("sessions", "show", "work", "--cursor", "0", "--limit", "1")["next"] == "1"
    assert "hello" in printed("sessions", "search", "hello there")
    assert len(data("sessions", "search", "hello")["items"]) == 2
    assert "nothing found" in printed("sessions", "search", "goodbye")
    assert listed["id"] in printed("sessions", "rename", "work", "Plans")
    assert data("sessions", "rename", "work", "")["title"] is None
    new = printed("sessions", "new", "work").strip()
    assert data("sessions", "new", "other", "--title", "Other")["title"] == "Other"
    assert "is an id" in printed("sessions", "new", new, code=2)
    assert "--yes" in printed("sessions", "delete", "work", code=2)
    assert new in printed("sessions", "delete", "work", "--yes")
    assert data("sessions", "delete", listed["id"], "--yes")["deleted"] == listed["id"]
    assert data("sessions", "undelete")["items"][0]["id"] == listed["id"]
    assert listed["id"] in printed("sessions", "undelete")
    assert data("sessions", "undelete", listed["id"])["id"] == listed["id"]
    assert listed["id"] in printed("sessions", "delete", listed["id"], "--yes")
    assert listed["id"] in printed("sessions", "undelete", listed["id"])
    assert "can be" in printed("sessions", "undelete", listed["id"], code=2)
    found = data("sessions", "delete", listed["id"], "--now", "--yes")
    assert found == {"deleted": listed["id"], "undo_until": None}
    assert "clew sessions list" in printed("sessions", "show", "work", code=2)


class Typist(LineEditor):
    """Types what a test says: at the prompt, and while answers run."""

    def __init__(self, lines: Sequence[str | None], ahead: Sequence[str] = ()) -> None:
        self.lines, self._ahead = list(lines), list(ahead)
        #: The text that each prompt began with.
        self.begun: list[str] = []
        self._reader, self._writer = os.pipe()

    def read_message(self, prompt: str, *, begun: str = "") -> str | None:
        self.begun.append(begun)
        line = self.lines.pop(0)
        if line == "^C":
            raise KeyboardInterrupt
        return line

    @contextmanager
    def enable_typeahead(self) -> Generator[int | None]:
        if self._ahead:
            os.write(self._writer, self._ahead.pop(0).encode())
        yield self._reader


def talk(home: Path, keyboard: LineEditor, provider: FakeProvider | None = None) -> tuple[int, str]:
    """The exit code of a chat, and everything that it printed."""
    settings = Settings(home=home) if provider is None else with_model(home, provider)
    stream = io.StringIO()
    screen = Output(stream)
    code = chat_with_editor(settings, "main", keyboard, out=screen, notes=screen)
    return code, stream.getvalue()


def with_model(home: Path, provider: FakeProvider) -> Settings:
    model = ModelSettings(name="openai-chat:fake", base_url=provider.openai_url)
    return Settings(home=home, model=model)


def test_a_chat_goes_line_by_line_until_the_person_leaves(tmp_path: Path) -> None:
    code, screen = talk(tmp_path, Typist(["hello there", "", "/nonsense", "^C", "again", None]))
    assert code == 0
    assert "You said: hello there\n" in screen
    assert "There is no command /nonsense" in screen
    assert "once more" in screen
    assert "You said: again\n" in screen
    assert talk(tmp_path, Typist(["^C", "^C"]))[0] == 0
    assert talk(tmp_path, Typist(["/quit"]))[0] == 0


def test_input_typed_ahead_is_answered_in_order(tmp_path: Path, provider: FakeProvider) -> None:
    provider.script = reply_by_user_text(
        {"first": Text("one", delay=0.1)}, default=count_user_texts
    )
    keyboard = Typist(["first", "/quit"], ahead=["second\n/status\n/retry\nun"])
    code, screen = talk(tmp_path, keyboard, provider)
    assert code == 0
    assert keyboard.begun == ["", "un"]
    order = [
        "one\n",
        "> second\n",
        "turn 2: I have seen: first | second\n",
        "> /retry\n",
        "turn 2:",
    ]
    places = [screen.index(text) for text in order[:-1]]
    assert places == sorted(places)
    assert "doing: " in screen


def test_ctrl_c_stops_the_answer_and_the_chat_continues(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"go on": Endless()}, default=count_user_texts)
    with pressed_when(lambda: bool(provider.requests)):
        code, screen = talk(tmp_path, Typist(["go on", "and now?", None]), provider)
    assert code == 0
    assert "(stopped)" in screen
    assert "turn 2: I have seen: go on | and now?" in screen


def test_abandoned_work_is_taken_over(tmp_path: Path, provider: FakeProvider) -> None:
    provider.script = reply_by_user_text({"first": [Hang()]}, default=count_user_texts)
    asyncio.run(leave(tmp_path, provider))
    _, screen = talk(tmp_path, Typist([None]), provider)
    assert "not answered yet: “first”" in screen
    assert "not answered yet: “second”" in screen
    assert "turn 2: I have seen: first | second" in screen


async def leave(home: Path, provider: FakeProvider) -> None:
    """Hand two messages in, and go away while the first is being answered."""
    async with open_application(with_model(home, provider), role="test", own_only=True) as product:
        for text in ("first", "second"):
            await product.engine.submit(text, target=product.engine.parse_target("main"))
        await asyncio.to_thread(block_until, lambda: bool(provider.requests))


def test_a_refused_input_is_reported_and_the_chat_continues(tmp_path: Path) -> None:
    keyboard = Typist(["x" * 2_000_001, "short", None])
    code, screen = talk(tmp_path, keyboard)
    assert code == 0
    assert "2,000,001 characters" in screen
    assert "You said: short" in screen
    assert keyboard.begun == ["", "x" * 2_000_001, ""]


def test_an_attempt_that_failed_is_reported(tmp_path: Path, provider: FakeProvider) -> None:
    provider.script = reply_by_user_text({"first": [CutStream(after=2)]}, default=count_user_texts)
    _, screen = talk(tmp_path, Typist(["first", None]), provider)
    assert "ignore the text" in screen
    assert screen.count("turn 1: I have seen: first\n") == 1


@contextmanager
def pressed_when(ready: Callable[[], bool]) -> Generator[None]:
    """Press Ctrl-C once something is so."""

    def press() -> None:
        block_until(ready)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_logs_hold_no_secret(tmp_path: Path) -> None:
    secret = ModelSettings(name="openai:x", api_key=Secret.from_text("sk-very-secret"))
    log = structlog.get_logger("clew.test")
    with logs_to_file(Settings(home=tmp_path, model=secret)):
        log.warning("asked", key="sk-very-secret", nested={"list": ["x sk-very-secret y", 1, None]})
        try:
            raise ValueError("sk-very-secret")
        except ValueError:
            log.exception("failed")
        logging.getLogger("library").warning("it says %s", "sk-very-secret")
    written = (tmp_path / "logs" / "chat.log").read_text(encoding="utf-8")
    records = [json.loads(line) for line in written.splitlines()]
    assert [record["event"] for record in records] == [
        "asked",
        "failed",
        "it says ********",
    ]
    assert "sk-very-secret" not in written
    assert records[0]["nested"] == {"list": ["x ******** y", 1, None]}


def test_a_program_that_logs_in_its_own_way_does_so_again_after_a_front(tmp_path: Path) -> None:
    before = structlog.get_config()
    with logs_to_file(Settings(home=tmp_path)):
        assert structlog.get_config() != before
    assert structlog.get_config() == before


def test_a_traceback_without_configured_logs_contains_no_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        configure_default_logging()
        said = "the cat is called Minka"
        try:
            raise LookupError(str(len(said)))
        except LookupError:
            structlog.get_logger("clew.test").exception("failed")
        written = capsys.readouterr().out
        assert "LookupError: 23" in written
        assert "Minka" not in written
    finally:
        structlog.configure(**before)


def test_a_gateway_that_cannot_work_does_not_say_that_it_is_ready(
    clew: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert clew("serve", **{"api.port": str(taken.getsockname()[1])}) == 2
    assert clew("serve", **{"agent.instructions_file": "none.md", "api.port": "0"}) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "in use" in err
    assert "none.md" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path, size: int) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "chat.log").symlink_to("/dev/full")
    with logs_to_file(Settings(home=tmp_path)):
        for _ in range(2):
            structlog.get_logger("ours").warning("told", text="x" * size)
            logging.getLogger("theirs").warning("x" * size)
