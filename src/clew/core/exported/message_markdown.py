"""The Markdown of a message: as safe HTML, or as Markdown that stays inside its own section."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from html import escape
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it.renderer import RendererProtocol
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

#: Longer messages are shown as they are: nobody reads them, and parsing them takes seconds.
LONGEST: Final = 100_000
#: Containers in containers; the parser leaves out what stands deeper.
_DEEPEST: Final = 40
#: The lowest heading of the document around messages.
_SECTION: Final = 3
_SCHEME: Final = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SAFE_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_HEADING: Final = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_TICKS: Final = re.compile(r"`+")
#: An escaped character, the beginning of code, a link in angle brackets, or what HTML begins with.
_INLINE: Final = re.compile(
    r"\\.|`+|<(?:https?:|mailto:)[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>|<(?=[A-Za-z/!?])",
    re.DOTALL | re.IGNORECASE,
)


def to_html(text: str, *, line_breaks: bool = False) -> str | None:
    """
    Return a message as HTML that runs and loads nothing, or ``None`` if it cannot be rendered.

    Everything that is not Markdown is escaped; links lead to web and mail addresses only; a picture
    becomes a link to it. With ``line_breaks`` each line end is one, as people type them.
    """
    parser = _TYPED if line_breaks else _STRICT
    parsed = _parse(parser, text)
    return parser.renderer.render(parsed[0], parser.options, parsed[1]) if parsed else None


def contain(text: str) -> str | None:
    """
    Return a message as Markdown that cannot change the document around it.

    Headings are moved below those of the document, open code is closed, HTML is escaped. The result
    is compared with the original, both rendered: ``None`` where they do not look the same, as where
    a message defines links for the whole document.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parsed = _parse(_PLAIN, text)
    if parsed is None:
        return None
    tokens, env = parsed
    lines = text.split("\n")
    for index, token in enumerate(tokens):
        _edit(lines, token, tokens[index - 1])
    contained = "\n".join(line for line in lines if line is not _GONE).strip("\n")
    wanted = _PLAIN.renderer.render(_demoted(tokens), _PLAIN.options, env)
    end = f"{'#' * _SECTION} end"
    found = _OPEN.render(f"{contained}\n\n{end}\n")
    return contained if _squeezed(found) == _squeezed(f"{wanted}<h3>end</h3>") else None


#: Stands for a line that was taken away.
_GONE: Final = "\0gone"


def _parse(parser: MarkdownIt, text: str) -> tuple[list[Token], dict[str, Any]] | None:
    if len(text) > LONGEST:
        return None
    env: dict[str, Any] = {}
    tokens = parser.parse(text, env)
    deepest = max((token.level for token in tokens), default=0)
    return None if deepest >= _DEEPEST - 1 else (tokens, env)


def _edit(lines: list[str], token: Token, before: Token) -> None:
    if token.map is None:
        return
    first, last = token.map
    if token.type == "heading_open" and token.level == 0:
        _demote(lines, first, last, token)
    elif token.type == "fence" and token.level == 0 and not _is_closed(lines[first:last], token):
        lines.append(token.markup)
    elif token.type == "inline" and before.type != "heading_open":
        lines[first:last] = _without_html("\n".join(lines[first:last])).split("\n")


def _demote(lines: list[str], first: int, last: int, token: Token) -> None:
    """Move a heading below those of the document."""
    level = "#" * _demoted_level(token)
    if token.markup.startswith("#"):
        lines[first] = _without_html(_HEADING.sub(rf"\1{level}", lines[first], count=1))
        return
    text = " ".join(line.strip() for line in lines[first : last - 1])
    lines[first:last] = [f"{level} {_without_html(text)}"] + [_GONE] * (last - first - 1)


def _demoted_level(token: Token) -> int:
    return min(int(token.tag[1:]) + _SECTION, 6)


def _demoted(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with their headings moved, as ``_demote`` moves them in the text."""
    return [
        token.copy(tag=f"h{_demoted_level(token)}")
        if token.level == 0 and token.type in ("heading_open", "heading_close")
        else token
        for token in tokens
    ]


def _is_closed(lines: Sequence[str], token: Token) -> bool:
    last = lines[-1].strip()
    return len(lines) > 1 and last.startswith(token.markup) and not last.strip(token.markup[0])


def _without_html(text: str) -> str:
    """Escape what is taken for HTML, outside of code."""
    runs: defaultdict[int, list[int]] = defaultdict(list)
    for run in _TICKS.finditer(text):
        runs[len(run[0])].append(run.start())
    pieces: list[str] = []
    at = copied = 0
    while found := _INLINE.search(text, at):
        at = found.end()
        if found[0][0] == "`":
            same = runs[len(found[0])]
            closing = bisect_right(same, found.start())
            if closing < len(same):
                at = same[closing] + len(found[0])
        elif found[0] == "<":
            pieces += [text[copied : found.start()], "\\<"]
            copied = at
    return "".join([*pieces, text[copied:]])


def _squeezed(html: str) -> str:
    return " ".join(html.split())


def _parser(
    *, allows: Callable[[str], bool], html: bool = False, breaks: bool = False
) -> MarkdownIt:
    options = {"html": html, "maxNesting": _DEEPEST, "breaks": breaks}
    parser = MarkdownIt("commonmark", options)
    parser.enable(["table", "strikethrough"])
    if not html:
        # A definition that nobody refers to would vanish.
        parser.disable("reference")
    parser.validateLink = allows  # type: ignore[method-assign]
    parser.add_render_rule("image", _picture)
    parser.add_render_rule("link_open", _link)
    parser.add_render_rule("fence", _fence)
    return parser


def _scheme(url: str) -> str:
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def _is_safe(url: str) -> bool:
    return _scheme(url) in _SAFE_SCHEMES


def _is_safe_or_relative(url: str) -> bool:
    return _scheme(url) in {*_SAFE_SCHEMES, ""}


def _any(_: str) -> bool:
    return True


def _picture(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """A picture as a link to it: a page that loads nothing cannot tell who reads it."""
    url, label = str(tokens[index].attrs.get("src", "")), tokens[index].content
    return f"{_opened(url)}{escape(label or url)}</a>"


def _link(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    return _opened(str(tokens[index].attrs.get("href", "")))


def _fence(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Code, with whatever stands beside its fence: nothing that was said is left out."""
    info, code = tokens[index].info.strip(), tokens[index].content
    label = f' data-info="{escape(info)}"' if info and code else ""
    return f"<pre{label}><code>{escape((code or info).rstrip())}</code></pre>\n"


def _opened(url: str) -> str:
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">'


#: For pages.
_STRICT: Final = _parser(allows=_is_safe)
_TYPED: Final = _parser(allows=_is_safe, breaks=True)
#: What a message means, and what its text could be taken for by a reader that allows everything.
_PLAIN: Final = _parser(allows=_is_safe_or_relative)
_OPEN: Final = _parser(allows=_any, html=True)
