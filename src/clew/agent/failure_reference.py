"""
Generator of the reference page of failures.

``python -m clew.agent.failure_reference docs/reference/errors.md`` writes it.
"""

# The page keeps the width of the other pages.
# ruff: noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent.advice import ADVICE, TURN_ADVICE
from clew.agent.preflight import PREFLIGHT_PROBLEMS
from clew.agent.provider_errors import (
    FAILOVER_KINDS,
    RETRY_ONCE_KINDS,
    TRANSIENT_KINDS,
    FailureKind,
)
from clew.generated_page import write_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.advice import FailureAdvice

PAGE_HEADER = """\
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

TURN_FAILURES_HEADER = """\

## A turn fails

The person is told the provider's own words and the advice; programs get the code, in the error of
[HTTP](http.md) and [JSON-RPC](rpc.md). *Again* says whether the same model is asked again, after a pause; *others*
whether the models of `model.fallback` are asked then.

| code | cause | advice | again | others |
|---|---|---|---|---|
"""


def render_page() -> str:
    """Return the page."""
    starts = (f"| {one.meaning} | {_format_sentence(one.advice)} |" for one in PREFLIGHT_PROBLEMS)
    return "\n".join(
        [
            f"{PAGE_HEADER}{_join_lines(starts)}",
            f"{TURN_FAILURES_HEADER}{_join_lines(_iter_rows())}",
            "",
        ]
    )


def _join_lines(lines: Iterator[str]) -> str:
    return "\n".join(lines)


def _iter_rows() -> Iterator[str]:
    for kind in FailureKind:
        again = "once" if kind in RETRY_ONCE_KINDS else "yes" if kind in TRANSIENT_KINDS else "no"
        if kind is FailureKind.OVERFLOW:
            again = "once, after a compaction"
        if kind is FailureKind.TOO_LARGE:
            again = "once, without older pictures"
        yield _format_row(
            kind.value, ADVICE[kind], again, "yes" if kind in FAILOVER_KINDS else "no"
        )
    for code, advice in TURN_ADVICE.items():
        yield _format_row(code, advice, "no", "no")


def _format_row(code: str, advice: FailureAdvice, again: str, others: str) -> str:
    return f"| `{code}` | {advice.meaning} | {advice.text} | {again} | {others} |"


def _format_sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}."


def main() -> None:
    """Write the page to the file given as argument, or print it."""
    write_page(render_page())


if __name__ == "__main__":
    main()
