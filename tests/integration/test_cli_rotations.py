"""``clew sessions branch|rewind|compact`` and what ``show --context`` prints, in this process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.entry_point import run_command
from clew.core.ids import SessionId
from clew.store.opening import open_store
from clew.store.transactions import locks

if TYPE_CHECKING:
    from pathlib import Path

#: Some 600 tokens; a window of 10,000 keeps three such messages.
LONG = "it flows and flows. " * 90


@dataclass(frozen=True, kw_only=True)
class Clew:
    """The program on a store of its own; it compacts only when it is asked to."""

    home: Path
    store_url: str
    capsys: pytest.CaptureFixture[str]

    def run(self, *args: str, code: int = 0) -> tuple[str, str]:
        """Return both outputs of a command."""
        settings = {
            "model.name": "offline",
            "model.context_window": "10000",
            "compaction.enabled": "false",
            "store.url": self.store_url,
        }
        flags = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        self.capsys.readouterr()
        assert run_command(["--home", str(self.home), *flags, *args]) == code, (
            self.capsys.readouterr()
        )
        return self.capsys.readouterr()

    def data(self, *args: str) -> Any:
        return json.loads(self.run(*args, "--json")[0])

    def said(self, name: str) -> str:
        return self.run("chat", "-c", name, "what did I say?")[0]


@pytest.fixture
def clew(tmp_path: Path, store_url: str, capsys: pytest.CaptureFixture[str]) -> Clew:
    return Clew(home=tmp_path, store_url=store_url, capsys=capsys)


def test_a_branch_and_a_rewind_continue_from_where_they_were_asked_to(clew: Clew) -> None:
    for text in ("one", "two"):
        clew.run("chat", text)
    old = clew.data("sessions", "show", "main")["conversation"]
    copy = clew.data("sessions", "branch", "main", "--as", "aside", "--at", "2", "--title", "Aside")
    assert (copy["title"], copy["origin"]) == ("Aside", {"id": old["id"], "seq": 2})
    assert clew.said("aside") == "You told me: one\n"
    assert clew.said("main") == "You told me: one; two\n"
    told = clew.run("sessions", "branch", old["head_session"])[0]
    plain = told.removeprefix("The copy is ").removesuffix(".\n")
    assert clew.data("sessions", "show", plain)["conversation"]["origin"]["id"] == old["id"]
    back = clew.data("sessions", "rewind", old["head_session"], "2")
    assert back["sessions"][-1]["opened_by"] == "rewind"
    told = clew.run("sessions", "rewind", "aside", "0")[0]
    assert told.endswith("is back at the beginning; the log keeps what came after it.\n")
    assert clew.said("main") == "You told me: one\n"


def test_an_impossible_rotation_is_refused_with_the_choices(clew: Clew) -> None:
    clew.run("chat", "hello there")
    for args, told in (
        (("rewind", "main", "99"), "entries 1 to 2"),
        (("rewind", "main", "-1"), "No such option"),
        (("branch", "main", "--at", "99"), "entries 1 to 2"),
        (("branch", "main", "--as", "cnv_1"), "is an id"),
        (("compact", "main", "--undo"), "no compaction to undo"),
        (("compact", "main", "--undo", "--dry-run"), "neither"),
        (("compact", "nowhere"), "clew sessions list"),
        (("show", "nowhere", "--context"), "clew sessions list"),
    ):
        out, err = clew.run("sessions", *args, code=2)
        assert (out, told in err) == ("", True), err
    assert "nothing to compact" in clew.run("sessions", "compact", "main")[0]
    out, err = clew.run("sessions", "compact", "main", "--dry-run")
    assert (out, "nothing to compact" in err) == ("", True)


def test_a_compaction_is_previewed_done_shown_and_undone(clew: Clew) -> None:
    for number in range(3):
        clew.run("chat", f"river {number}: {LONG}")
    preview = clew.data("sessions", "compact", "main", "--dry-run")
    assert preview["moved"] is False
    assert [line["seq"] for line in preview["goes"]] == [1, 2, 3]
    assert [line["seq"] for line in preview["stays"]] == [4, 5, 6]
    printed = clew.run("sessions", "compact", "main", "--dry-run")[0]
    assert printed.startswith("3 messages of about 1,8")
    assert [line.split()[0] for line in printed.splitlines()[3:]] == ["goes"] * 3 + ["stays"] * 3
    done = clew.data("sessions", "compact", "main", "--focus", "the river")
    assert (done["moved"], done["messages_before"]) == (True, 6)
    assert done["messages_after"] == preview["messages_after"] == 4
    context = clew.data("sessions", "show", preview["session"], "--context")
    assert context["session"] == done["session"]
    assert context["opened_by"] == "compression"
    assert [item["kind"] for item in context["base"]] == ["literal", "range"]
    assert [line["role"] for line in context["messages"]] == [
        "summary", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert context["tokens"] == done["tokens_after"]
    again = clew.run("sessions", "compact", "main")[0]
    assert again == "Nothing was compacted: there is nothing to compact yet\n"
    back = clew.data("sessions", "compact", "main", "--undo")
    assert back["sessions"][-1]["opened_by"] == "restore"
    assert "river 0" in clew.said("main")


def test_the_context_is_what_the_model_will_be_sent(clew: Clew) -> None:
    (clew.home / "SOUL.md").write_text("You are a gardener.")
    clew.run("chat", "hello there")
    printed = clew.run("sessions", "show", "main", "--context")[0]
    assert "You are a gardener." in printed
    assert "\nhello there\n" in printed
    context = clew.data("sessions", "show", "main", "--context")
    assert context["instructions"] == "You are a gardener."
    assert (context["base"], context["closed"]) == ([], False)
    texts = [line["text"] for line in context["messages"]]
    assert texts[0] == "hello there"
    assert len(texts) == 2
    # A new conversation has rendered nothing yet.
    clew.run("sessions", "new", "later")
    assert clew.data("sessions", "show", "later", "--context")["instructions"] is None
    assert "none yet" in clew.run("sessions", "show", "later", "--context")[0]


def test_while_another_compacts_it_is_not_done_twice(clew: Clew) -> None:
    clew.run("chat", "hello there")
    session = clew.data("sessions", "show", "main")["conversation"]["head_session"]

    async def hold() -> None:
        async with await open_store(clew.store_url, home=clew.home) as store:
            await store.write(locks.try_acquire_compression_lock, SessionId(session), "somebody")

    asyncio.run(hold())
    out, err = clew.run("sessions", "compact", "main", code=1)
    assert (out, "another compaction" in err) == ("", True)
