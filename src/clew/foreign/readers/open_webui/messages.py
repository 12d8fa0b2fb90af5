"""Messages of Open WebUI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import (
    make_event,
    read_content,
    read_data_url,
    read_files,
    read_moment,
)
from clew.foreign.conversations import (
    ForeignCall,
    ForeignCompaction,
    ForeignFile,
    ForeignMessage,
    ForeignResult,
    ForeignUsage,
)
from clew.foreign.readers.open_webui.parts import ReplyFragment, read_output, read_text
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.foreign.conversations import ForeignItem, ForeignSender


class FileFetcher(Protocol):
    """Reader of the files that messages name."""

    def fetch(self, name: str) -> ForeignFile | None:
        """Return a file by its id; ``None`` if there is none."""
        ...


class MessageReader:
    """Reader of the messages of one line."""

    def __init__(self, files: FileFetcher, sender: ForeignSender | None, *, at: int) -> None:
        self._files, self._sender = files, sender
        self._at = at
        self.items: list[ForeignItem] = []

    def add(self, name: str, value: object) -> None:
        """Add a message with all that is stored beside it."""
        told = as_object(value)
        self._at = read_moment(told.get("timestamp"), self._at)
        if summary := as_text(told.get("contextSummary") or told.get("context_summary")):
            compaction = ForeignCompaction(id=f"{name}:summary", at=self._at, summary=summary)
            self.items.append(compaction)
        match told.get("role"):
            case "user":
                self.items.append(self._make_question(name, told))
            case "assistant":
                self.items += self._make_answer(name, told)
            case role:
                kind = "damaged" if not told else "system" if role == "system" else "unknown"
                text = read_content(told.get("content")) or "A message that cannot be read"
                self._add_event(name, value, kind, text)
        for key in ("error", "sources"):
            if told.get(key):
                self._add_event(f"{name}:{key}", told[key], key, _describe(key, told[key]))

    def add_beside(self, name: str, value: object) -> None:
        """Add a message beside the line."""
        told = as_object(value)
        text = read_content(told.get("content")) or "An empty message"
        self._add_event(name, value, "variant", text)

    def _add_event(self, name: str, value: object, kind: str, text: str) -> None:
        self.items.append(make_event(value, name=name, at=self._at, kind=kind, text=text))

    def _make_question(self, name: str, told: Mapping[str, Any]) -> ForeignMessage:
        content = told.get("content")
        return ForeignMessage(
            id=name,
            role=Role.USER,
            at=self._at,
            text=read_content(content),
            files=[*read_files(content), *self._list_files(told)],
            sender=self._sender,
        )

    def _list_files(self, told: Mapping[str, Any]) -> Iterator[ForeignFile]:
        for one in map(as_object, as_list(told.get("files"))):
            url = as_text(one.get("url"))
            title = as_text(one.get("name"))
            if url.startswith("data:"):
                yield read_data_url(url, name=title or "picture")
                continue
            key = as_text(one.get("id")) or _find_id(url)
            found = self._files.fetch(key)
            yield found or ForeignFile(name=title or key or url, media_type="", content=None)

    def _make_answer(self, name: str, told: Mapping[str, Any]) -> Sequence[ForeignItem]:
        content = read_content(told.get("content"))
        parts = [*read_output(told.get("output"))] or [*read_text(content)]
        model = as_text(told.get("model") or told.get("modelName"))
        usage = read_usage(
            as_object(told.get("usage")) or as_object(as_object(told.get("info")).get("usage"))
        )
        if not any(part.text or part.call for part in parts):
            text = "An answer that was not finished" if not told.get("done") else "An empty answer"
            return [make_event(dict(told), name=name, at=self._at, kind="empty", text=text)]
        return list(_number(name, _fold(parts, at=self._at, model=model), usage))


def _find_id(url: str) -> str:
    """Return the id in an address such as ``/api/v1/files/ID/content``."""
    return url.partition("/files/")[2].partition("/")[0] or ("" if "/" in url else url)


def _describe(key: str, value: object) -> str:
    if key == "error":
        return read_content(value) or json.dumps(value)
    return f"{len(as_list(value))} sources of the answer"


def _fold(parts: Iterable[ReplyFragment], *, at: int, model: str) -> Iterator[ForeignMessage]:
    """Yield the messages that the parts make: a result ends the message with its call."""
    empty = ForeignMessage(id="", role=Role.ASSISTANT, at=at, model=model)
    answer, names = empty, dict[str, str]()
    for part in parts:
        match part.kind:
            case "text":
                answer = replace(answer, text=_join(answer.text, part.text))
            case "reasoning":
                answer = replace(answer, reasoning=_join(answer.reasoning, part.text))
            case "call":
                call = ForeignCall(id=part.call, name=part.name, arguments=part.text)
                names[part.call] = part.name
                answer = replace(answer, calls=(*answer.calls, call))
            case "result":
                if answer != empty:
                    yield answer
                answer = empty
                result = ForeignResult(
                    call_id=part.call, name=names.get(part.call, ""), text=part.text
                )
                yield ForeignMessage(id="", role=Role.TOOL, at=at, results=(result,))
    if answer != empty:
        yield answer


def _join(one: str, other: str) -> str:
    return "\n".join(filter(None, (one, other)))


def _number(
    name: str, messages: Iterable[ForeignMessage], usage: ForeignUsage | None
) -> Iterator[ForeignMessage]:
    """Yield the messages with their ids; the last answer has the tokens of all."""
    several = list(messages)
    answers = [place for place, one in enumerate(several) if one.role is Role.ASSISTANT]
    for place, one in enumerate(several):
        used = usage if answers and place == answers[-1] else None
        yield replace(one, id=f"{name}/{place}" if place else name, usage=used)


def read_usage(told: Mapping[str, Any]) -> ForeignUsage | None:
    """Return the tokens of an answer, in the words of either API."""
    first = [told.get("input_tokens"), told.get("prompt_tokens"), told.get("prompt_eval_count")]
    last = [told.get("output_tokens"), told.get("completion_tokens"), told.get("eval_count")]
    counts = [next((one for one in some if isinstance(one, int)), 0) for some in (first, last)]
    return ForeignUsage(input_tokens=counts[0], output_tokens=counts[1]) if any(counts) else None
