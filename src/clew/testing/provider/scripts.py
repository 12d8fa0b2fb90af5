"""Ready scripts: what to answer to which request."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from clew.testing.provider.replies import Fail, Reply, Text

if TYPE_CHECKING:
    from clew.testing.provider.request import Request, Script

DONE = Text("done")


def echo(request: Request) -> Reply:
    """Repeat the last user text."""
    return Text(f"echo: {request.last_user_text}")


def counter(request: Request) -> Reply:
    """Tell all user texts in the context, so that a test can see what the model remembers."""
    seen = request.user_texts
    return Text(f"turn {len(seen)}: I have seen: {' | '.join(seen)}")


def sequence(replies: Iterable[Reply | Script], default: Reply | Script = DONE) -> Script:
    """Give the replies in the order of the requests, then always ``default``."""
    rest = iter(list(replies))

    def script(request: Request) -> Reply:
        return _resolve(next(rest, default), request)

    return script


def per_user_text(
    answers: Mapping[str, Reply | Script | Sequence[Reply | Script]],
    default: Reply | Script = echo,
) -> Script:
    """
    Answer by the last user text.

    A list is given in order, one reply per request with that text (retries count), and then
    ``default`` applies; a single reply is given every time.
    """
    lists = {
        text: iter(list(_many(answer))) for text, answer in answers.items() if _is_many(answer)
    }

    def script(request: Request) -> Reply:
        text = request.last_user_text
        if text in lists:
            return _resolve(next(lists[text], default), request)
        return _resolve(cast("Reply | Script", answers.get(text, default)), request)

    return script


def once_each(replies: Iterable[Reply], then: Reply | Script = echo) -> Script:
    """
    Meet each last user text with each of the replies once, then with ``then``.

    With failures: every input runs through every failure before it succeeds.
    """
    once, met = tuple(replies), dict[str, int]()

    def script(request: Request) -> Reply:
        count = met[request.last_user_text] = met.get(request.last_user_text, 0) + 1
        return once[count - 1] if count <= len(once) else _resolve(then, request)

    return script


def within(window: int, script: Script) -> Script:
    """A model with a context window: more tokens than that are answered with an overflow."""

    def limited(request: Request) -> Reply:
        overflow = request.input_tokens > window
        return Fail("context_overflow", window=window) if overflow else script(request)

    return limited


def named(name: str) -> Script:
    """A script by name: ``echo``, ``counter``, or ``package.module:attribute``."""
    if name in {"echo", "counter"}:
        return echo if name == "echo" else counter
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(f"{name!r} is neither 'echo' nor 'counter' nor 'module:attribute'")
    return cast("Script", getattr(importlib.import_module(module), attribute))


def _resolve(answer: Reply | Script, request: Request) -> Reply:
    return answer(request) if callable(answer) else answer


def _is_many(answer: object) -> bool:
    return isinstance(answer, Sequence)


def _many(answer: object) -> Sequence[Reply | Script]:
    return cast("Sequence[Reply | Script]", answer)
