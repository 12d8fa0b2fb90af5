"""No test waits without a bound for what nothing announces."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
LEVELS = ["unit", "contract", "integration", "acceptance", "channels", "failing", "line", "tui"]

#: Loops that sleep and are meant to: each with its reason.
ALLOWED: dict[str, str] = {}


def test_no_test_waits_without_a_bound() -> None:
    found = {
        str(path.relative_to(TESTS)): loops
        for level in LEVELS
        for path in sorted((TESTS / level).rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        # To read a text is a tenth of reading its syntax.
        if "while" in text and "sleep" in text and (loops := _sleeping_loops(ast.parse(text)))
    }
    assert {path: lines for path, lines in found.items() if path not in ALLOWED} == {}
    assert found.keys() == ALLOWED.keys(), "an exception that is no longer needed"


def _sleeping_loops(tree: ast.Module) -> list[int]:
    return [
        loop.lineno
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While) and any(map(_is_sleep, ast.walk(loop)))
    ]


def _is_sleep(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
    )


#: Functions of the clients, whose own time limits of 5 and 10 seconds a busy machine exceeds.
CLIENTS = frozenset({"AsyncClient", "Client", "get", "post", "put", "patch", "delete", "request"})


def test_every_client_of_a_test_has_a_time_limit_of_its_own() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{call.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        if "httpx2." in text or "websockets" in text
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and (_has_default_limit(call) or ("websockets" in text and _opens_in_default_time(call)))
    ]
    assert found == []


def _opens_in_default_time(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Name)
        and call.func.id == "connect"
        and "open_timeout" not in {keyword.arg for keyword in call.keywords}
    )


def _has_default_limit(call: ast.Call) -> bool:
    """Return whether a call makes requests with the library's limit; a transport needs none."""
    named = {keyword.arg for keyword in call.keywords}
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "httpx2"
        and call.func.attr in CLIENTS
        and not named & {"timeout", "transport"}
    )
