"""
Sessions that Hermes Agent stored twice: in its database, and in a file beside it.

Releases between the two wrote to both, but older messages only to the file, and after a crash a
file has the messages of the turn that the database lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.foreign.readers.hermes.rows import StoredMessage


def join_transcript(
    rows: Sequence[StoredMessage], lines: Sequence[StoredMessage]
) -> list[StoredMessage]:
    """Return the messages of both, each once, in order."""
    prompts = [one for one in rows if is_prompt(one)]
    stored = [one for one in rows if not is_prompt(one)]
    known, told = _list_keys(stored), _list_keys(lines)
    if len(lines) > len(stored) and known <= told:
        return [*prompts, *lines]
    return list(rows) if told <= known else [*prompts, *_weave(stored, lines)]


def is_prompt(one: StoredMessage) -> bool:
    """Return whether it is the system prompt of a session."""
    return not one.key and one.item.id.endswith(":prompt")


def _list_keys(messages: Sequence[StoredMessage]) -> set[tuple[str, ...]]:
    return {one.key for one in messages if one.key}


def _weave(stored: list[StoredMessage], lines: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the rows with what the file has before and after what both have."""
    keys = [one.key for one in stored]
    common = [place for place, one in enumerate(lines) if one.key and one.key in keys]
    if not common:
        return [*lines, *stored]
    begin = keys.index(lines[common[0]].key)
    end = len(keys) - keys[::-1].index(lines[common[-1]].key)
    head, tail = lines[: common[0]], lines[common[-1] + 1 :]
    return [*stored[:begin], *head, *stored[begin:end], *tail, *stored[end:]]
