"""Ready-made scripts: a reply for each request."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from clew.testing.provider.replies import Fail, Reply, Text

if TYPE_CHECKING:
    from clew.testing.provider.request import ProviderRequest, Script

DONE_REPLY = Text("done")


def echo(request: ProviderRequest) -> Reply:
    """Repeat the last user text."""
    return Text(f"echo: {request.last_user_text}")


def count_user_texts(request: ProviderRequest) -> Reply:
    """List all user texts in the context, so that a test can check what the model sees."""
    seen = request.user_texts
    return Text(f"turn {len(seen)}: I have seen: {' | '.join(seen)}")


def reply_in_sequence(
    replies: Iterable[Reply | Script], default: Reply | Script = DONE_REPLY
) -> Script:
    """Give the replies in the order of the requests, then always ``default``."""
    rest = iter(list(replies))

    def script(request: ProviderRequest) -> Reply:
        return _evaluate_reply(next(rest, default), request)

    return script


def reply_by_user_text(
    answers: Mapping[str, Reply | Script | Sequence[Reply | Script]],
    default: Reply | Script = echo,
) -> Script:
    """
    Reply by the last user text.

    A list is used in order, one reply per request with that text (retries count), and then
    ``default`` applies; a single reply is given every time.
    """
    lists = {
        text: iter(list(_as_sequence(answer)))
        for text, answer in answers.items()
        if _is_sequence(answer)
    }

    def script(request: ProviderRequest) -> Reply:
        text = request.last_user_text
        if text in lists:
            return _evaluate_reply(next(lists[text], default), request)
        return _evaluate_reply(cast("Reply | Script", answers.get(text, default)), request)

    return script


def reply_once_each(replies: Iterable[Reply], then: Reply | Script = echo) -> Script:
    """
    Give each of the replies once for each last user text, then ``then``.

    With failures: every input meets every failure before it succeeds.
    """
    once, met = tuple(replies), dict[str, int]()

    def script(request: ProviderRequest) -> Reply:
        count = met[request.last_user_text] = met.get(request.last_user_text, 0) + 1
        return once[count - 1] if count <= len(once) else _evaluate_reply(then, request)

    return script


def with_context_window(window: int, script: Script) -> Script:
    """Return a script that answers requests of more than ``window`` tokens with an overflow."""

    def limited_script(request: ProviderRequest) -> Reply:
        overflow = request.input_tokens > window
        return Fail("context_overflow", window=window) if overflow else script(request)

    return limited_script


def load_script(name: str) -> Script:
    """Return a script by name: ``echo``, ``counter``, or ``package.module:attribute``."""
    if name in {"echo", "counter"}:
        return echo if name == "echo" else count_user_texts
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(f"{name!r} is neither 'echo' nor 'counter' nor 'module:attribute'")
    return cast("Script", getattr(importlib.import_module(module), attribute))


def _evaluate_reply(answer: Reply | Script, request: ProviderRequest) -> Reply:
    return answer(request) if callable(answer) else answer


def _is_sequence(answer: object) -> bool:
    return isinstance(answer, Sequence)


def _as_sequence(answer: object) -> Sequence[Reply | Script]:
    return cast("Sequence[Reply | Script]", answer)
