"""
The contracts of the session lifecycle: what each promises, and which tests prove it.

A test proves a contract whose id its name begins with: ``test_s1_11_old_unfinished_…``. As a plugin
(``pytest -p tests.contracts_table``, which ``make contracts`` does) it prints a table of what was
proved, and the run fails if a contract was not. ``python -m tests.contracts_table
docs/reference/contracts.md`` writes the reference page.
"""

# The page keeps the width of the other pages.
# ruff: noqa: E501

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.mutations.catalogue import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "contracts.md"
_TEST = re.compile(r"test_s(\d)_(\d+)_\w+")

SECTIONS = {
    "S0": "The current session survives compaction and restart",
    "S1": "Closing, titles, empty answers, orphans",
    "S2": "Warm state stays coherent",
    "S3": "Two compactions of one session",
    "S4": "Session boundaries reach plugins",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    id: str
    #: The promise, in a few words.
    what: str
    #: Its effect for a person.
    seen: str


def _contract(name: str, what: str, seen: str) -> Contract:
    return Contract(id=name, what=what, seen=seen)


CONTRACTS = (
    _contract(
        "S0.1",
        "a compaction is durable at once, whatever led to it",
        "After a crash the conversation continues where it was, and does not spend a second summary.",
    ),
    _contract(
        "S0.2",
        "a session that moves takes every route along, with one move",
        "The same conversation answers in the chat, the terminal and over HTTP, also after a compaction.",
    ),
    _contract(
        "S0.3",
        "a turn without compaction writes nothing to routes or heads",
        "Nothing: an ordinary message cannot change where a chat leads.",
    ),
    _contract(
        "S0.4",
        "tools, subprocesses, hooks and routes name the same session",
        "A script that a tool starts finds the right conversation under `CLEW_SESSION_ID` (and `HERMES_SESSION_ID`).",
    ),
    _contract(
        "S1.1",
        "closing the last client ends the open session, not its compacted predecessor",
        "Closing a window closes the conversation unless another person or a chat still uses it. The next message reopens it.",
    ),
    _contract(
        "S1.2",
        "closing a client before anything was said ends its session",
        "Windows that were opened and closed leave no open sessions behind.",
    ),
    _contract(
        "S1.3",
        "the id of an older session acts on the current one",
        "A program that remembers an id from before a compaction still works.",
    ),
    _contract(
        "S1.4",
        "an early title that cannot be given is dropped",
        "A conversation whose requested title is taken gets an automatic title.",
    ),
    _contract(
        "S1.5",
        "an early title that failed for a passing reason is given later",
        "A requested title is not lost because the disk was full for a moment.",
    ),
    _contract(
        "S1.6",
        "a turn that worked and gave no text says what went wrong",
        "Instead of silence: the name of the tool that the model invented.",
    ),
    _contract(
        "S1.7",
        "a turn that a person interrupted stays silent",
        "No error message after one's own `/stop`.",
    ),
    _contract(
        "S1.8",
        "an overflow gives advice",
        "The answer names the context window and `/compact`.",
    ),
    _contract(
        "S1.9", "any other failure shows its text", "The answer names the error and `/reset`."
    ),
    _contract("S1.10", "real text passes unchanged", "The exact text of the model."),
    _contract(
        "S1.11",
        "an abandoned old continuation is closed",
        "`/sessions` and the store do not fill up; every message stays and is found.",
    ),
    _contract(
        "S1.12", "without a predecessor it is left alone", "Conversations are not closed by age."
    ),
    _contract("S1.13", "younger than seven days it is left alone", "As above."),
    _contract(
        "S1.14",
        "a session that has ended stays as it ended",
        "The reason of an end is never rewritten.",
    ),
    _contract("S1.15", "after another end it is left alone", "As S1.12."),
    _contract(
        "S1.16",
        "without messages it is left alone; empty ghosts are pruned on their own",
        "Conversations without messages disappear after a day.",
    ),
    _contract("S1.17", "a title does not protect an orphan", "As S1.11."),
    _contract(
        "S1.18",
        "the target of a route is left alone, however old",
        "A chat in daily use continues, however long ago it was compacted.",
    ),
    _contract(
        "S2.1",
        "switching away and back finds the state again",
        "`/resume` back and forth is as quick as staying.",
    ),
    _contract(
        "S2.2",
        "turns in a row reuse one state and send the same prefix",
        "The provider's prompt cache hits: cheaper and quicker turns, also after a restart.",
    ),
    _contract(
        "S2.3",
        "an entry of another process is in the next request",
        "A message from the terminal is known in the chat's next answer.",
    ),
    _contract(
        "S2.4", "one conversation's numbers never change another's", "No mixed-up conversations."
    ),
    _contract(
        "S2.5",
        "the kept position is the stored one",
        "No message is sent to the model twice or left out.",
    ),
    _contract(
        "S2.6",
        "a state that is being built or was dropped is not touched",
        "As S2.5, under load.",
    ),
    _contract(
        "S2.7",
        "a state that the store does not know is not reused",
        "After a restored backup the model sees what is in the store.",
    ),
    _contract(
        "S3.1",
        "of two that compact one session, one moves it",
        "One conversation stays one: no fork, no lost half.",
    ),
    _contract(
        "S3.2",
        "while another holds the lock nothing is summarised",
        "No summary is paid for twice.",
    ),
    _contract(
        "S3.3",
        "a lock that cannot be used hinders no compaction",
        "Long conversations continue also where versions are mixed, and are never compacted in a circle.",
    ),
    _contract(
        "S4.1",
        "`/new` finalises the session that it leaves",
        "A memory plugin keeps the messages before `/new`.",
    ),
    _contract("S4.2", "and reports the session that it opens", "Plugins start with a clean state."),
    _contract("S4.3", "finalise comes before reset, each once", "Nothing is remembered twice."),
    _contract(
        "S4.4",
        "stopping finalises the sessions of running turns and no other",
        "A restart loses nothing that plugins keep.",
    ),
    _contract(
        "S4.5", "a plugin that raises cannot break `/new`", "`/new` answers, whatever is installed."
    ),
    _contract(
        "S4.6",
        "expiry finalises too, once, also over a restart",
        "Messages before a pause are kept as after `/new`.",
    ),
    _contract(
        "S4.7",
        "of two names in an imported record the newer decides",
        "Imported conversations are not finalised a second time.",
    ),
)


def contract_of(test: str) -> str | None:
    """Return the contract that a test proves, by its name."""
    match = _TEST.match(test)
    return None if match is None else f"S{match[1]}.{match[2]}"


def proofs() -> dict[str, list[tuple[Path, str]]]:
    """Return the tests of each contract, by file and name."""
    found: defaultdict[str, list[tuple[Path, str]]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "def test_s" not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                proved := contract_of(node.name)
            ):
                found[proved].append((path, node.name))
    return dict(found)


HEAD = """\
# Contracts of the session lifecycle

<!-- Made by `python -m tests.contracts_table docs/reference/contracts.md`: do not edit. -->

What Clew promises about conversations, their sessions and those who use them. Each promise has tests of its own,
which carry its number in their names and run against SQLite and PostgreSQL where a store is involved.
`make contracts` runs them and prints the table. *Fails without* names what was taken out of the product, bit by bit, to see its own
test fail; `make mutations MUTATIONS=--contracts` does it again and prints after how many seconds each was noticed.
"""


def page() -> str:
    """The reference page."""
    return HEAD + "".join(_section(name, title) for name, title in SECTIONS.items())


def _section(name: str, title: str) -> str:
    known = proofs()
    rows = [_row(one, known.get(one.id, [])) for one in CONTRACTS if one.id.startswith(f"{name}.")]
    head = (
        "| id | contract | what one notices | proved by | fails without |\n|---|---|---|---|---|\n"
    )
    return f"\n## {name} {title}\n\n{head}{''.join(rows)}"


def _row(contract: Contract, tests: Sequence[tuple[Path, str]]) -> str:
    proved, without = "<br>".join(_links(tests)), "<br>".join(safeguards(contract.id))
    return f"| {contract.id} | {contract.what} | {contract.seen} | {proved} | {without} |\n"


def safeguards(contract: str) -> list[str]:
    """Mechanisms of a contract, each with a mutation that its own test detects."""
    return [
        mutation.mechanism
        for mutation in ALL
        if contract_of(mutation.test.rpartition("::")[2]) == contract
    ]


def _links(tests: Sequence[tuple[Path, str]]) -> Iterator[str]:
    for path, name in tests:
        sentence = re.sub(r"^test_s\d_\d+_", "", name).replace("_", " ")
        yield f"[{sentence}](../../{path.relative_to(ROOT).as_posix()})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print id, what is promised, and how many of its tests passed."""
    tried = tally(terminalreporter)
    terminalreporter.write_sep("=", "contracts")
    for one in CONTRACTS:
        passed, all_of_them = tried.get(one.id, (0, 0))
        good = passed == all_of_them > 0
        mark = f"{passed} of {all_of_them} passed" if all_of_them else "NO TEST"
        colour = {"green": True} if good else {"red": True}
        terminalreporter.write_line(f"{one.id:<6} {one.what:<82} {mark}", **colour)
    kept = sum(passed == tests > 0 for passed, tests in tried.values())
    terminalreporter.write_line(f"{kept} of {len(CONTRACTS)} contracts are kept")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A contract that no test proves fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.exitstatus == 0:
        proved = {name for name, (passed, _) in tally(reporter).items() if passed}
        if {one.id for one in CONTRACTS} - proved:
            session.exitstatus = 1


def tally(reporter: pytest.TerminalReporter) -> Mapping[str, tuple[int, int]]:
    """Return the numbers of passed and run tests of each contract."""
    counted: defaultdict[str, list[bool]] = defaultdict(list)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in reporter.getreports(outcome):
            name = report.nodeid.rpartition("::")[2]
            if proved := contract_of(name):
                counted[proved].append(outcome == "passed")
    return {name: (sum(each), len(each)) for name, each in counted.items()}


def main() -> None:
    """Write the page to the file that is named, else print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main()
