"""Rules about paths, and the tools of files that use whole folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.policy_rule import PolicyRule, Verdict
from clew.core.scope import LOCAL
from clew.sandbox.workspace import name_folder
from clew.testing import Calls, Text
from tests.features.test_files import call, open_product, run_calls

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_search_leaves_out_what_a_rule_denies_or_asks_about_and_needs_no_question(
    tmp_path: Path, store_url: str
) -> None:
    home = tmp_path / "home"
    rules = [
        PolicyRule(then=Verdict.DENY, paths=("*.env", "keys")),
        PolicyRule(then=Verdict.ASK, tools=("search_files",), paths=("private/*",)),
    ]
    work = home / "work" / name_folder(LOCAL)
    for name in ("a.txt", "x.env", "keys/a", "private/a"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("the word\n")
    calls = [
        call("search_files", pattern="word"),
        call("search_files", pattern="word", path="keys"),
        call("list_files", recursive=True),
        call("read_file", path="x.env"),
        call("read_file", path="keys/a"),
    ]
    replies = [Calls(tuple(calls)), Text("done")]
    async with open_product(home, store_url, replies, rules) as (product, provider):
        denied = "not approved: rule 1 denies it"
        assert await run_calls(product, provider) == [
            "a.txt:1: the word\n[a rule leaves out 3]",
            denied,
            "a.txt  9\nprivate/a  9\n[a rule leaves out 2]",
            denied,
            denied,
        ]
