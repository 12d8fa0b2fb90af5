"""
Messages of a campaign, and the answers of the provider: a function of the request alone.

A message is ``c7m2: look put; send # long``: key (conversation ``c7``, its message 2), then the
tools to call, step by step, and how much the person adds that means nothing. A call is named after
key, step and place, so it has the same id whenever it is asked for.

A summary names what it stands for: what was said, and each answer.
"""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.testing.provider import Calls, EmptyText, Reply, ScriptedCall, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.testing.provider import ProviderMessage, ProviderRequest

#: A step that is a reply without sense.
BLANK = "blank"
#: The provider's context window in tokens. Two that are long do not fit; one can be summarised at
#: once, and so can what a dump returns.
WINDOW = 4000
_LONG = 5600
_FILLING = {"long": _LONG, "some": 5000}
#: The beginning of a summary in a request, and of the request for one.
_SUMMARY = "<conversation_summary>"
SUMMARISE = "You keep the memory of a conversation"
#: Names the folder in which a process asks the provider to kill it.
CONTROL = "CLEW_KILLING_CONTROL"

_MESSAGE = re.compile(r"(?P<key>(?P<conversation>c\d+)m\d+): ?(?P<plan>.*)", re.DOTALL)
_ANSWER = re.compile(r"answer to (.*)")
_SAID = re.compile(r"\b(c\d+m\d+): ")
_ANSWERED = re.compile(r"answer to c\d+m\d+(?: c\d+m\d+)*")
_TOLD = re.compile(r"^(said|answered): (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Say:
    """One message."""

    key: str
    plan: str = ""

    @property
    def text(self) -> str:
        filling = _FILLING.get(self.plan.rpartition("# ")[2], 0)
        return f"{self.key}: {self.plan}" + " and so on" * (filling // 10)

    @property
    def conversation(self) -> str:
        return conversation_of(self.key)

    @property
    def steps(self) -> list[list[str]]:
        """The tools to call, step by step."""
        tools = self.plan.partition("#")[0]
        return [step.split() for step in tools.split(";") if step.strip()]


#: The entry in a history for an unusable reply.
_WITHOUT_SENSE = "(no answer: the reply was empty"


def parse(text: str) -> Say | None:
    """The message that a user text is; ``None`` for what the library says to the model."""
    found = _MESSAGE.fullmatch(text)
    return None if found is None else Say(key=found["key"], plan=found["plan"])


def conversation_of(key: str) -> str:
    """The conversation of a message, or of a call."""
    return key.partition("m")[0]


def key_of(what: str) -> str:
    """The message of a call."""
    return what.partition("s")[0]


def call_name(key: str, step: int, place: int) -> str:
    return f"{key}s{step}p{place}"


def result_of(tool: str, what: str) -> str:
    """Return the result of a tool."""
    return f"{tool} {what} done" + " and so on" * (_LONG // 10 if tool == "dump" else 0)


def keys_in(messages: Sequence[ProviderMessage]) -> list[str]:
    """The messages of people in a request, in order."""
    return [said.key for said in _said_in(messages)]


def _said_in(messages: Sequence[ProviderMessage]) -> list[Say]:
    """Return the messages of people; consecutive ones are sent as one."""
    texts = (text for message in messages if message.role == "user" for text in message.texts)
    apart = (piece for text in texts for piece in text.split("\n\n"))
    return [said for piece in apart if (said := parse(piece)) is not None]


def answered_by(text: str) -> list[str]:
    """The messages that a final answer answers; none for any other text."""
    found = _ANSWER.fullmatch(text)
    return [] if found is None else found[1].split()


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """Return the messages that a summary replaces."""

    said: tuple[str, ...] = ()
    #: The final answers, as they were given.
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the text of the summariser."""
        told = f"said: {' '.join(self.said)}\nanswered: {'; '.join(self.answers)}"
        return f"## Done\n{told}\n\n## Open questions\n{'None that is known of. ' * 10}"

    @property
    def unanswered(self) -> list[str]:
        answered = {key for text in self.answers for key in answered_by(text)}
        return [key for key in self.said if key not in answered]


def summary_in(messages: Sequence[ProviderMessage]) -> Summary:
    """Return the messages that the summary in a request replaces; none without one."""
    texts = [text for message in messages if message.role == "user" for text in message.texts]
    return _told(next((text for text in texts if text.startswith(_SUMMARY)), ""))


def summarise(transcript: str) -> Summary:
    """Return the messages that a transcript's summary replaces, with those of the earlier one."""
    before = _told(transcript)
    said = [*before.said, *_SAID.findall(transcript)]
    since: list[str] = _ANSWERED.findall(_TOLD.sub("", transcript))
    answers = [*before.answers, *since]
    return Summary(said=tuple(dict.fromkeys(said)), answers=tuple(dict.fromkeys(answers)))


def _told(text: str) -> Summary:
    told: dict[str, str] = dict(_TOLD.findall(text))
    answers = tuple(filter(None, told.get("answered", "").split("; ")))
    return Summary(said=tuple(told.get("said", "").split()), answers=answers)


def reply_to(request: ProviderRequest) -> Reply:
    """The next step of the last message's plan, or the answer to what was not answered yet."""
    if request.last_user_text.startswith(SUMMARISE):
        return Text(summarise(request.last_user_text).text)
    last = max(i for i, message in enumerate(request.messages) if keys_in([message]))
    said = _said_in(request.messages[last : last + 1])[-1]
    after = [m for m in request.messages[last + 1 :] if m.role == "assistant"]
    done = sum(1 for m in after if m.calls or m.text.startswith(_WITHOUT_SENSE))
    if done >= len(said.steps):
        return Text(f"answer to {' '.join(_unanswered(request.messages))}", chunks=6)
    step = said.steps[done]
    if step == [BLANK]:
        return EmptyText()
    names = [call_name(said.key, done, place) for place in range(len(step))]
    calls = [
        ScriptedCall(tool, {"what": name}, id=name) for tool, name in zip(step, names, strict=True)
    ]
    return Calls(calls)


def _unanswered(messages: Sequence[ProviderMessage]) -> list[str]:
    answers = (i for i, m in enumerate(messages) if m.role == "assistant" and not m.calls)
    after = max((i for i in answers if answered_by(messages[i].text)), default=-1)
    before = summary_in(messages).unanswered if after < 0 else []
    return list(dict.fromkeys([*before, *keys_in(messages[after + 1 :])]))


class Executioner:
    """The provider's part: kills the process that asked for it, while its request is under way."""

    def __init__(self) -> None:
        self._seen = 0
        self._order = ""

    def watch(self) -> None:
        """A request has come in."""
        folder = os.environ.get(CONTROL)
        if folder is None or not (path := order_in(Path(folder))).exists():
            return
        order = path.read_text()
        if order != self._order:
            self._order, self._seen = order, 0
        self._seen += 1
        wanted = json.loads(order)
        if self._seen == wanted["nth"]:
            path.unlink()
            os.kill(wanted["pid"], signal.SIGKILL)


def order_in(folder: Path) -> Path:
    """Point at which a process asks to be killed, its ``nth`` request: ``{"pid", "nth"}``."""
    return folder / "kill"


_executioner = Executioner()


def script(request: ProviderRequest) -> Reply:
    """The provider's script."""
    _executioner.watch()
    return reply_to(request)
