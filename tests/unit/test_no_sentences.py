"""``clew.store`` and ``clew.core`` hold data and codes; the sentences for people are above them."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2] / "src" / "clew"
PACKAGES = ("core", "store")

#: A sentence, or a clause of one: three words or more, and one of these among them.
COMMON_WORDS = frozenset(
    {"a", "an", "the", "is", "are", "was", "were", "be", "been", "has", "have", "had", "it", "its"}
    | {"this", "that", "there", "they", "you", "your", "no", "not", "nobody", "of", "to", "in"}
    | {"on", "by", "with", "for", "from", "and", "or", "after", "before"}
)
SQL = re.compile(
    r"\s*(?:\{\} )?(?:SELECT|INSERT|UPDATE|DELETE|WITH|WHERE|ORDER|AND|FROM|JOIN|LOCK|CREATE|ALTER"
    r"|DROP|PRAGMA|TRUNCATE|FOR|SET|GRANT|BEGIN|--|e\.)\b"
)
QUOTED = re.compile(r"'((?:[^']|'')*)'")

#: Sentences that stay, each by its file (or folder) and for a reason.
ALLOWED = {
    "core/approval.py": "the question, which is stored to the letter as it was asked",
    "core/call_document.py": "a part of the question, which is stored to the letter",
    "core/channel_events.py": "the line of a file in the model's input",
    "core/file_reading.py": "as above, with the text of the file",
    "core/export_format/": "faults of an export file, each with its line: error messages",
    "core/grant.py": "the reason of a decision, stored with the call as it was given",
    "core/call_terms.py": "the reason of a refusal, which is the result of the call",
    "core/steered_programs.py": "the reason of a decision, stored with the call as it was given",
    "core/call_policy.py": "the reason of a decision, stored with the call as it was given",
    "core/quotation.py": "the line of a quoted message in the model's input",
    "core/secret_text.py": "part of an error message; two packages in one layer share it",
    "store/backup/": "error messages",
    "store/checks/": "a check, its SQL and its advice are one declaration (checks.md is its page)",
    "store/feature_schema.py": "message of an exception",
    "store/postgres/": "messages of driver errors, translated once",
    "store/records.py": "source code that it generates",
    "store/sqlite/": "messages of driver errors, translated once",
    "store/transactions/branches.py": "message of an exception",
    "store/transactions/rewinds.py": "message of an exception",
    "store/transactions/undelete.py": "error messages",
}


def _allowing(path: str) -> str | None:
    """Return the entry of ``ALLOWED`` for a file."""
    return next((one for one in ALLOWED if path == one or path.startswith(one)), None)


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each literal that is neither a docstring nor part of a raised exception."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Raise) or _is_super_init(node):
            skipped.update(ast.walk(node))
        elif isinstance(node, ast.JoinedStr) and node not in skipped:
            skipped.update(node.values)
            yield (
                node.lineno,
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{}"
                    for part in node.values
                ),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


def _is_super_init(node: ast.AST) -> bool:
    """Return whether a node passes a message to the constructor of an exception."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    )


def _reads_as_sentence(text: str) -> bool:
    words = re.findall(r"[A-Za-z']+", text)
    spaced = len(re.findall(r"[A-Za-z'},.;:)] [A-Za-z'{(]", text))
    return len(words) >= 3 and spaced >= 2 and not COMMON_WORDS.isdisjoint(words)


def find_sentences(source: str) -> list[tuple[int, str]]:
    """Return the sentences for people in a module, also those that its SQL quotes."""
    found: list[tuple[int, str]] = []
    for line, text in _texts(ast.parse(source)):
        parts = QUOTED.findall(text) if SQL.match(text) else [text]
        found += [(line, part) for part in parts if _reads_as_sentence(part)]
    return found


def _modules() -> list[str]:
    found = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in found)


def test_store_and_core_hold_no_sentence_for_people() -> None:
    found = {
        f"{path}:{line}": text
        for path in _modules()
        if _allowing(path) is None
        for line, text in find_sentences((ROOT / path).read_text())
    }
    assert found == {}, "record a code, and put it into words in clew.wording or in the front"


def test_each_exception_is_still_needed() -> None:
    used = {_allowing(path) for path in _modules() if find_sentences((ROOT / path).read_text())}
    assert set(ALLOWED) <= used


@pytest.mark.parametrize(
    "code",
    [
        'note = "the conversation was deleted"',
        'NOTICE = "This conversation was deleted elsewhere."',
        'say(f"a new conversation has begun; /resume {left} goes back")',
        "t.execute(\"UPDATE inbox SET note = 'the turn has ended' WHERE id = $1\")",
    ],
)
def test_a_sentence_is_found(code: str) -> None:
    assert len(find_sentences(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        '"""A docstring is for the reader of the code."""',
        'raise NotFound("there is no such conversation")',
        "t.execute(\"SELECT id FROM turn WHERE state = 'done' AND id NOT IN (SELECT 1)\")",
        'state = "not allowed"',
    ],
)
def test_other_literals_pass(code: str) -> None:
    assert find_sentences(code) == []
