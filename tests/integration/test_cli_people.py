"""``clew pair`` and ``clew deliveries``: the operator decides who talks, and what is sent again."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.entry_point import run_command
from clew.cli.pair import open_pairing
from clew.config import load_settings
from clew.core.access import ChannelAccount
from clew.core.route import RouteKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ACCOUNT = ChannelAccount(channel="telegram", account="1")


@pytest.fixture
def clew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Run a command to its exit code, its output (as JSON with ``--json``) and its messages."""

    def clew(*args: str) -> Any:
        code = run_command(["--home", str(tmp_path), *args])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out and "--json" in args else out, err

    return clew


@pytest.fixture
def code(tmp_path: Path) -> str:
    """Return the code that a stranger was shown."""

    async def ask() -> str | None:
        async with open_pairing(load_settings(home=tmp_path, environ={})) as people:
            route = RouteKey("agent:main:telegram:dm:42")
            return await people.issue_code(ACCOUNT, "42", name="Ann", route=route)

    code = asyncio.run(ask())
    assert code is not None
    return code


def test_an_operator_grants_and_revokes_access_by_code(clew: Callable[..., Any], code: str) -> None:
    listed = clew("pair", "list")[1]
    assert "Ann" in listed
    assert "asked" in listed
    assert code not in listed
    assert clew("pair", "approve", code)[:2] == (0, "42  Ann now has access to telegram\n")
    (person,) = clew("pair", "list", "--json")[1]["items"]
    assert (person["user"], person["standing"]) == ("42", "paired")
    assert clew("pair", "remove", "42")[1] == "42  removed\n"
    assert clew("pair", "block", "42", "--json")[1] == {"user": "42", "standing": "blocked"}
    assert clew("pair", "list", "--json")[1]["items"][0]["standing"] == "blocked"


def test_an_unknown_person_and_an_invalid_code_are_reported(clew: Callable[..., Any]) -> None:
    assert clew("pair", "list")[::2] == (0, "no requests yet\n")
    status, _, err = clew("pair", "approve", "ABCD-EFGH")
    assert status != 0
    assert "code" in err
    for args, words in (
        (("pair", "remove", "42"), "clew pair list"),
        (("pair", "remove", "42", "--channel", "telegram"), "there are none"),
        (("deliveries", "retry", "dlv_0"), "dlv_0"),
    ):
        status, _, err = clew(*args)
        assert status != 0
        assert words in err


def test_a_delivery_is_given_up_and_sent_once_more_by_the_operator(
    clew: Callable[..., Any], code: str
) -> None:
    assert clew("pair", "approve", code, "--json")[1]["approved_by"].startswith("local")
    assert clew("deliveries", "list")[::2] == (0, "nothing\n")
    (letter,) = clew("deliveries", "list", "--all", "--json")[1]["items"]
    assert (letter["state"], letter["route"]) == ("pending", "agent:main:telegram:dm:42")
    one = letter["id"]
    assert clew("deliveries", "drop", one)[1] == f"{one}  failed\n"
    assert "dropped by the operator" in clew("deliveries", "list")[1]
    retried = clew("deliveries", "retry", one, "--json")[1]["items"]
    assert [(each["id"], each["state"]) for each in retried] == [(one, "pending")]
    assert clew("deliveries", "list", "--json")[1]["items"] == []
