"""The judge: what people have seen on a platform, against what they had said."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.channels.fakes import Seen

#: The beginning of an answer that may have been sent before.
MARK = "(may be a repeat)"
#: The end of a text that is incomplete.
MORE = "…"


@dataclass
class Verdict:
    """Result: complaints and counts."""

    wrong: list[str] = field(default_factory=list[str])
    answers: int = 0
    #: Answers that say that they may be repeats.
    marked: int = 0
    #: Beginnings of answers that stayed: nobody knew that they had arrived.
    left: int = 0


def answer_to(text: str) -> str:
    return f"You said: {text}"


def unmarked(text: str) -> str:
    """The text without the mark of a repeat."""
    return text.removeprefix(MARK).lstrip()


def judge(seen: Sequence[Seen], said: Mapping[int, Sequence[str]]) -> Verdict:
    """Each message is answered, in order within its chat, once or with a mark."""
    verdict = Verdict()
    shown: defaultdict[int, list[str]] = defaultdict(list)
    for message in seen:
        shown[message.chat].append(message.text)
    for chat, texts in said.items():
        _judge_chat(verdict, chat, [answer_to(text) for text in texts], shown[chat])
    return verdict


def _judge_chat(verdict: Verdict, chat: int, wanted: Sequence[str], shown: Sequence[str]) -> None:
    whole = [text for text in shown if not text.endswith(MORE)]
    plain = [text for text in whole if not text.startswith(MARK)]
    told = [unmarked(text) for text in whole]
    verdict.left += len(shown) - len(whole)
    verdict.marked += len(whole) - len(plain)
    verdict.answers += len(set(told) & set(wanted))
    verdict.wrong += [f"{chat}: no answer {text!r}" for text in wanted if text not in told]
    verdict.wrong += [f"{chat}: {text!r} twice" for text in set(plain) if plain.count(text) > 1]
    verdict.wrong += [f"{chat}: nobody asked for {text!r}" for text in set(told) - set(wanted)]
    if (order := list(dict.fromkeys(told))) != [text for text in wanted if text in told]:
        verdict.wrong.append(f"{chat}: out of order: {order}")
