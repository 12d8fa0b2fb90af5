"""Random Markdown with a word planted wherever text can stand, and what a platform made of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from clew.core.channel_events import OutboundMessage
from clew.features.webhooks import codec as webhook
from clew.gateway.channels.discord import messages as discord
from clew.gateway.channels.slack import messages as slack
from clew.gateway.channels.telegram import messages as telegram
from clew.gateway.text.markdown_reader import parse_markdown
from clew.gateway.text.markdown_writer import JOINER, count_utf16_units
from clew.gateway.text.rich_text import CodeFrame, TextStyle, to_plain_text
from clew.testing.discord.state import validate_message as checked_by_discord
from clew.testing.slack.state import validate_message as checked_by_slack
from clew.testing.slack.state import visible_text as shown_by_slack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Stands for a word of its own, and for one in an address, which may be hidden.
WORD, ADDRESS = "\ue000", "\ue001"

Draw = st.DrawFn

_INLINE = [
    WORD, f"**{WORD}**", f"*{WORD} {WORD}*", f"~~{WORD}~~", f"`{WORD}`", f"`` a`{WORD} ``",
    f"[{WORD}](http://e.example/{ADDRESS})", f"[{WORD}](http://e.example/{ADDRESS} \"{WORD}\")",
    f"![{WORD}](http://e.example/{ADDRESS}.png)", f"[{WORD}](tg://user?id={WORD})",
    f"[**{WORD}** `{WORD}`](http://e.example/{ADDRESS})", f"<http://e.example/{WORD}>",
    f"[](http://e.example/{WORD})", f"http://e.example/{WORD}_a?b=1&c=2",
    f"&lt;{WORD}&gt;", f"&amp;{WORD}", f"\\*{WORD}\\*", f"<b title='{WORD}'>{WORD}</b>",
    f"<!channel> {WORD}", f"@everyone {WORD}", f"<@U1> {WORD}", f"@{WORD}", f"[{WORD}", f"![{WORD}",
    f"👨‍👩‍👧‍👦{WORD}", f"🇩🇪 {WORD}", f"שלום {WORD}", f"e\u0301{WORD}", f"$x_{WORD}$", f"|{WORD}|",
    f"a\\\n{WORD}", f"a  \n{WORD}", f"[^1] {WORD}", f"```{WORD}```", "\u200b", "&nbsp;",
    f"\ud800{WORD}", f"**{WORD}", f"`{WORD}", f"[ref][{WORD}]",
]  # fmt: skip
_LONG = [
    f"[{WORD}](http://e.example/{'a' * 5000}{ADDRESS})",
    f"[{'l' * 300} {WORD}](http://e.example/{'a' * 1100}{ADDRESS})",
    f"![{WORD}](http://e.example/{'a' * 3500}{ADDRESS})",
    f"<http://e.example/{'b' * 5000}{WORD}>",
    f"http://e.example/{'&' * 2500}{WORD}",
    f"{'w' * 4500}{WORD}",
    f"**{'👍🏽' * 1200}{WORD}**",
    "e" + "\u0301" * 4200 + WORD,
    f"`{'`' * 3000}{WORD}",
    f"`{'<&>' * 900}{WORD}`",
    f"{'> ' * 70}{WORD}",
    f"{'- ' * 70}{WORD}",
    f"{'[' * 300}{WORD}",
    f"{'*' * 300}{WORD}",
    f"{f'**{WORD}** ' * 150}",
]
_INFO = [
    "",
    "python",
    "C++",
    WORD,
    f"{WORD} {WORD}",
    f"python title={WORD}",
    f"{WORD} -rf /tmp && echo {WORD}",
]

LINES = st.lists(st.sampled_from(_INLINE), min_size=1, max_size=8).map(" ".join)


@st.composite
def fences(draw: Draw) -> str:
    mark = draw(st.sampled_from(["```", "~~~", "````"]))
    inside = [f"x = {WORD}", "```", "", f"<{WORD}>", f"  {WORD} & @everyone", "~~~", "y" * 2500]
    lines = draw(st.lists(st.sampled_from(inside), max_size=6))
    close = [mark] if draw(st.booleans()) else []
    return "\n".join([f"{mark}{draw(st.sampled_from(_INFO))}", *lines, *close])


@st.composite
def tables(draw: Draw) -> str:
    rows = draw(st.lists(LINES.filter(lambda line: "\n" not in line), max_size=4))
    body = [f"| {row.replace('|', '/')} | {WORD} |" for row in rows]
    return "\n".join([f"| {WORD} | b |", "|---|---|", *body])


@st.composite
def lists(draw: Draw) -> str:
    items = draw(st.lists(st.tuples(st.integers(0, 3), LINES), min_size=1, max_size=6))
    mark = draw(st.sampled_from(["-", "1.", "7)"]))
    return "\n".join(f"{'   ' * depth}{mark} {line}" for depth, line in items)


SIMPLE = st.one_of(
    LINES,
    LINES,
    st.sampled_from(_LONG),
    fences(),
    tables(),
    lists(),
    LINES.map(lambda line: f"# {line}"),
    LINES.map(lambda line: f"{line}\n==="),
    LINES.map(lambda line: f"    {line}"),
    LINES.map(lambda line: f"<div>\n{line}\n</div>"),
    st.sampled_from(
        ["", "---", "#", ">", "-", "```\n```", f"<!-- {WORD} -->", f"[{WORD}]: http://e.example/"]
    ),
)
QUOTES = st.lists(SIMPLE, min_size=1, max_size=3).map(
    lambda blocks: "\n".join(f"> {line}" for line in "\n\n".join(blocks).split("\n"))
)
ITEMS = SIMPLE.map(lambda block: "- " + block.replace("\n", "\n  "))
DOCUMENTS = st.lists(st.one_of(SIMPLE, SIMPLE, QUOTES, ITEMS), min_size=1, max_size=8).map(
    lambda blocks: planted("\n\n".join(blocks))
)


@dataclass(frozen=True, slots=True)
class Document:
    """A text, and the words that are to be read in it and behind it."""

    text: str
    words: Sequence[str]
    addresses: Sequence[str]


def planted(text: str) -> Document:
    """Return the text with a word of its own in each place."""
    words: list[str] = []
    addresses: list[str] = []

    def named(found: re.Match[str]) -> str:
        kept = words if found[0] == WORD else addresses
        kept.append(f"q{len(words) + len(addresses)}z")
        return kept[-1]

    return Document(re.sub(f"[{WORD}{ADDRESS}]", named, text), words, addresses)


def squeezed(text: str) -> str:
    return "".join(text.split()).replace(JOINER, "")


@dataclass(frozen=True, slots=True)
class Platform:
    """Functions that make, check and read the messages of one platform."""

    render: Callable[[str], Sequence[str]]
    #: Returns the text that people read; fails if the platform would refuse the message.
    shown: Callable[[str], str]


def judge(document: Document, platform: Platform) -> int:
    """Fail where something is lost, out of order, or refused; return the number of messages."""
    chunks = platform.render(document.text)
    assert chunks, "no message at all"
    read_ = squeezed("".join(platform.shown(chunk) for chunk in chunks))
    place = 0
    for word in document.words:
        found = read_.find(word, place)
        assert found >= 0, f"{word} is missing, or not in its place"
        place = found + len(word)
    everything = squeezed("".join(chunks))
    for word in document.addresses:
        assert word in everything or word in read_, f"the address {word} is missing"
    return len(chunks)


def _telegram(chunk: str) -> str:
    for one in (chunk, telegram.with_repeat_notice(chunk), telegram.without_formatting(chunk)):
        body: dict[str, Any] = json.loads(one)
        text: str = body["text"]
        assert text.strip()
        assert count_utf16_units(text) <= 4096
        entities: list[dict[str, Any]] = body.get("entities", [])
        assert len(entities) <= 100
        hidden = text.encode("utf-16-le")
        for entity in entities:
            begins, ends = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
            assert 0 <= begins < ends <= len(hidden)
            hidden[begins:ends].decode("utf-16-le")
            assert len(entity.get("url", "")) <= 2048
            if entity["type"] in ("pre", "code"):
                hidden = hidden[:begins] + b"x\0" * entity["length"] + hidden[ends:]
        assert not re.search(r"(?<!\w)@\w", hidden.decode("utf-16-le"))
    return json.loads(chunk)["text"]


def _slack(chunk: str) -> str:
    for one in (chunk, slack.with_repeat_notice(chunk), slack.without_formatting(chunk)):
        body: dict[str, Any] = json.loads(one)
        checked_by_slack(body)
        assert len(body["text"]) <= 4000
        assert not re.search("[<>]", body["text"])
    body = json.loads(chunk)
    for element in body["blocks"][0]["elements"]:
        for inner in element["elements"]:
            assert inner["type"] in ("text", "link")
            assert len(inner.get("url", "")) <= 3000
    return shown_by_slack(body["text"], body["blocks"])


def _marked(text: str) -> str:
    pieces = parse_markdown(text)
    prose = " ".join(
        run.text
        for piece in pieces
        if not isinstance(piece.frame, CodeFrame)
        for run in piece.runs
        if not run.style & TextStyle.CODE
    )
    assert not re.search(r"(?<!\w)@\w|@(everyone|here)", prose)
    fences = [line for line in text.split("\n") if re.match(r"(> )?```", line)]
    assert len(fences) % 2 == 0, "a fence is left open"
    assert all(re.fullmatch(r"(> )?```", line) for line in fences[1::2])
    return to_plain_text(pieces)


def _discord(chunk: str) -> str:
    for one in (chunk, discord.with_repeat_notice(chunk)):
        content = json.loads(one)["content"]
        assert content.strip()
        assert count_utf16_units(content) <= 2000
        body = discord.build_message(one, key="k")
        checked_by_discord(body)
        assert body["allowed_mentions"]["parse"] == []
    return _marked(json.loads(chunk)["content"])


def _webhook(longest: int) -> Platform:
    def shown(chunk: str) -> str:
        assert len(json.loads(webhook.with_repeat_notice(chunk))["text"]) <= longest
        return _marked(json.loads(chunk)["text"])

    return Platform(lambda text: webhook.render(OutboundMessage(text=text), longest=longest), shown)


PLATFORMS = {
    "telegram": Platform(lambda text: telegram.render(OutboundMessage(text=text)), _telegram),
    "discord": Platform(lambda text: discord.render(OutboundMessage(text=text)), _discord),
    "slack": Platform(lambda text: slack.render(OutboundMessage(text=text)), _slack),
    "webhook": _webhook(4000),
    "narrow webhook": _webhook(300),
}
