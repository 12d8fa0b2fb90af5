"""
The reference of failures as a page.

``python -m clew.agent.failure_reference docs/reference/errors.md`` writes it.
"""

# The page keeps the width of the other pages.
# ruff: noqa: E501

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clew.agent.advice import ADVICE, OF_TURNS
from clew.agent.failures import ELSEWHERE, ONCE_MORE, PASSING, FailureKind
from clew.agent.start_problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.advice import Advice

HEAD = """\
# Errors

<!-- Made by `python -m clew.agent.failure_reference docs/reference/errors.md`: do not edit. -->

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: the sentence on standard error says what to do; also an answer that did not come, an approval that nobody gave |
| 2 | not as asked: usage or settings; nothing was changed |
| 3 | `clew serve`: a gateway serves this home already; the sentence names its process |
| 130 | stopped by Ctrl-C |
| 143 | ended by SIGTERM (`clew chat`; `clew serve` ends with 0 when it has drained) |

## A model cannot be used

These are found before anything is asked: `clew serve` does not start, `clew chat`, `clew setup` and `clew doctor` say so.

| cause | advice |
|---|---|
| There is no key for the provider. | Set `model.api_key`, or the provider's variable in the environment. |
| The provider's package is not installed. | The sentence has the command that installs it. |
"""

TURNS = """\

## A turn fails

The person is told the provider's own words and the advice; programs get the code, in the error of
[HTTP](http.md) and [JSON-RPC](rpc.md). *Again* says whether the same model is asked again, after a pause; *others*
whether the models of `model.fallback` are asked then.

| code | cause | advice | again | others |
|---|---|---|---|---|
"""


def reference() -> str:
    """Return the page."""
    starts = (f"| {one.meaning} | {_sentence(one.advice)} |" for one in PROBLEMS)
    return "\n".join([f"{HEAD}{_lines(starts)}", f"{TURNS}{_lines(_rows())}", ""])


def _lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


def _rows() -> Iterator[str]:
    for kind in FailureKind:
        again = "once" if kind in ONCE_MORE else "yes" if kind in PASSING else "no"
        if kind is FailureKind.OVERFLOW:
            again = "once, after a compaction"
        if kind is FailureKind.TOO_LARGE:
            again = "once, without older pictures"
        yield _row(kind.value, ADVICE[kind], again, "yes" if kind in ELSEWHERE else "no")
    for code, advice in OF_TURNS.items():
        yield _row(code, advice, "no", "no")


def _row(code: str, advice: Advice, again: str, others: str) -> str:
    return f"| `{code}` | {advice.meaning} | {advice.text} | {again} | {others} |"


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def main() -> None:
    """Write the page to the file that is named, else print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
    else:
        sys.stdout.write(reference())


if __name__ == "__main__":
    main()
