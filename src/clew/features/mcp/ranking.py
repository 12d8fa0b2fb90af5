"""Search of tools by words: BM25 over their names, servers, descriptions and parameters."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.features.mcp.definitions import McpTool

_K: Final = 1.2
_B: Final = 0.5
#: What a word counts for where it stands.
_NAME, _SERVER, _TEXT, _PARAMETER = 6, 4, 2, 1
#: Characters of a description that are searched.
_SEARCHED: Final = 1_500
_STOP_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "as", "at", "by", "for", "from", "in", "into", "is", "it", "its", "me"),
        *("my", "of", "on", "or", "that", "the", "this", "to", "what", "with"),
    )
)
#: Words that tools and people use for the same deed; one of them counts as much less than itself.
_KIN: Final = (
    ("list", "show", "display", "view", "all", "every"),
    ("get", "fetch", "read", "retrieve", "look"),
    ("create", "make", "add", "new", "insert"),
    ("update", "change", "edit", "modify", "set"),
    ("delete", "remove", "erase", "drop"),
    ("search", "find", "query", "look"),
    ("send", "post", "publish", "submit"),
    ("export", "download", "save"),
)
_KIN_WEIGHT: Final = 0.3
_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def split_words(text: str) -> Iterator[str]:
    """Yield the words of a text or name, without their usual endings."""
    for word in _WORD.findall(_HUMP.sub(" ", text)):
        lowered = word.lower()
        if lowered not in _STOP_WORDS:
            yield _stem(lowered)


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + ("y" if ending == "ies" else "")
    return word


def _weigh_words(query: str) -> dict[str, float]:
    """Return the words of a query, and those that mean the same deed, with what they count."""
    own = set(split_words(query))
    kin = {
        _stem(other) for group in _KIN if own & {_stem(word) for word in group} for other in group
    }
    return {**dict.fromkeys(kin, _KIN_WEIGHT), **dict.fromkeys(own, 1.0)}


def rank_tools(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """Return the tools that have a word of the query, the best first."""
    wanted = _weigh_words(query)
    documents = [_count_words(tool) for tool in tools]
    spread = Counter(word for one in documents for word in one)
    mean = sum(sum(one.values()) for one in documents) / max(1, len(documents))
    scored = [
        (_score(wanted, one, spread, len(tools), mean), tool)
        for one, tool in zip(documents, tools, strict=True)
    ]
    found = sorted(scored, key=lambda pair: (-pair[0], pair[1].server, pair[1].name))
    return [tool for score, tool in found if score > 0]


def _count_words(tool: McpTool) -> Counter[str]:
    counted: Counter[str] = Counter()
    parameters = cast("Mapping[str, object]", tool.schema.get("properties") or {})
    for weight, text in (
        (_NAME, tool.name),
        (_SERVER, tool.server),
        (_TEXT, tool.description[:_SEARCHED]),
        *((_PARAMETER, name) for name in dict(parameters)),
    ):
        for word in split_words(text):
            counted[word] += weight
    return counted


def _score(
    wanted: Mapping[str, float],
    words: Mapping[str, int],
    spread: Mapping[str, int],
    n: int,
    mean: float,
) -> float:
    length = sum(words.values()) / max(1.0, mean)
    score = 0.0
    for word, weight in wanted.items():
        if count := words.get(word, 0):
            rarity = math.log(1 + (n - spread[word] + 0.5) / (spread[word] + 0.5))
            score += weight * rarity * count * (_K + 1) / (count + _K * (1 - _B + _B * length))
    # Words that mean the same only order what has a word of the query itself.
    return score if any(words.get(word) for word, weight in wanted.items() if weight == 1) else 0.0
