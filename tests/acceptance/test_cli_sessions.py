"""``clew sessions``: what was said is found, shown, named and deleted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.terminal import Terminal

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_without_conversations_the_list_says_how_to_begin_one(clew: Clew) -> None:
    ran = clew.run("sessions", "list")
    assert (ran.code, ran.out) == (0, "")
    assert "clew chat" in ran.err
    assert clew.data("sessions", "list") == {"items": [], "next": None}


def test_lists_continue_at_their_cursor_newest_first(durable: Clew) -> None:
    for name in ("one", "two", "three"):
        durable.ok("chat", "-c", name, "hello there")
    page = durable.data("sessions", "list", "--limit", "2")
    rest = durable.data("sessions", "list", "--limit", "2", "--cursor", page["next"])
    routes = [item["routes"] for item in page["items"] + rest["items"]]
    assert routes == [[f"agent:main:local:{name}"] for name in ("three", "two", "one")]
    assert rest["next"] is None
    table = durable.ok("sessions", "list", "--limit", "1").splitlines()
    assert [line.split()[0] for line in table] == ["NAME", "three"]


def test_a_conversation_is_shown_with_its_sessions_and_entries(clew: Clew) -> None:
    clew.ok("chat", "hello there")
    clew.ok("chat", "and again")
    shown = clew.data("sessions", "show", "main", "--cursor", "1", "--limit", "2")
    assert [entry["seq"] for entry in shown["items"]] == [2, 3]
    assert shown["next"] == "3"
    (session,) = shown["conversation"]["sessions"]
    assert (session["opened_by"], session["messages"]) == ("start", 4)
    assert shown["usage"]["output_tokens"] > 0
    printed = clew.ok("sessions", "show", session["id"], "--limit", "2")
    assert "You said: and again" in printed
    assert "\nhello there\n" not in printed
    assert session["id"] in printed


def test_messages_are_found_with_their_place(clew: Clew) -> None:
    clew.ok("chat", "-c", "garden", "the roses are red")
    clew.ok("chat", "-c", "sea", "the waves are blue")
    (answer, question) = clew.data("sessions", "search", "roses")["items"]
    assert (question["seq"], question["role"]) == (1, "user")
    assert (answer["seq"], answer["role"]) == (2, "assistant")
    assert "garden" in clew.ok("sessions", "search", "roses", "red")
    assert clew.data("sessions", "search", "roses blue")["items"] == []
    assert clew.run("sessions", "search", " ").code == 2


def test_a_title_is_given_once_and_can_be_taken_away(clew: Clew) -> None:
    clew.ok("chat", "-c", "one", "hello there")
    clew.ok("chat", "-c", "two", "hello there")
    assert clew.data("sessions", "rename", "one", "Plans")["title"] == "Plans"
    taken = clew.run("sessions", "rename", "two", "Plans")
    assert (taken.code, taken.out) == (2, "")
    assert "Plans" in taken.err
    assert "Plans" in clew.ok("sessions", "list", "--title", "plan")
    assert clew.data("sessions", "rename", "one", "")["title"] is None


def test_a_new_conversation_takes_the_name_and_the_old_one_stays(durable: Clew) -> None:
    old = durable.data("chat", "hello there")["conversation"]
    new = durable.ok("sessions", "new", "main", "--title", "Afresh").strip()
    assert durable.data("chat", "what did I say?")["text"] == "You have not told me anything yet."
    (session,) = durable.data("sessions", "show", old)["conversation"]["sessions"]
    assert session["end_reason"] == "reset"
    assert durable.data("sessions", "show", "main")["conversation"]["id"] == new
    assert durable.ok("chat", "-c", old, "what did I say?") == "You told me: hello there\n"


def test_deleting_needs_a_yes(clew: Clew) -> None:
    clew.ok("chat", "hello there")
    refused = clew.run("sessions", "delete", "main")
    assert (refused.code, refused.out) == (2, "")
    assert "--yes" in refused.err
    assert clew.ok("sessions", "delete", "main", "--yes").startswith("deleted cnv_")
    gone = clew.run("sessions", "show", "main")
    assert gone.code == 2
    assert "clew sessions list" in gone.err
    assert clew.data("sessions", "search", "hello")["items"] == []


def test_a_deleted_conversation_is_undeleted_or_permanently_removed(durable: Clew) -> None:
    conversation = durable.data("chat", "hello there")["conversation"]
    done = durable.run("sessions", "delete", "main", "--yes")
    assert f"clew sessions undelete {conversation}" in done.err
    assert conversation in durable.ok("sessions", "undelete")
    assert durable.ok("sessions", "undelete", conversation).startswith(conversation)
    assert durable.ok("chat", "what did I say?") == "You told me: hello there\n"
    durable.ok("sessions", "delete", "main", "--yes")
    durable.ok("sessions", "delete", conversation, "--now", "--yes")
    refused = durable.run("sessions", "undelete", conversation)
    assert (refused.code, refused.out) == (2, "")
    assert "clew sessions undelete" in refused.err
    assert durable.data("sessions", "undelete")["items"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
def test_a_person_is_asked_before_a_conversation_is_deleted(clew: Clew) -> None:
    clew.ok("chat", "hello there")
    with Terminal(clew, "sessions", "delete", "main") as terminal:
        # By its name, or by its title where that was given already.
        terminal.see("with its 2 entries?")
        terminal.type("n\n")
        assert terminal.ended() == 130
    with Terminal(clew, "sessions", "delete", "main") as terminal:
        terminal.see("with its 2 entries?")
        terminal.type("y\n")
        terminal.see("deleted cnv_")
        assert terminal.ended() == 0
