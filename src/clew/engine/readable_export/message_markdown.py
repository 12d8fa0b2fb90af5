"""Markdown of a message, as safe HTML or as Markdown confined to its own section."""

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

#: Longer messages are shown as plain text: parsing them takes seconds.
MAX_CHARS: Final = 100_000
#: Nesting of containers; the parser drops deeper ones.
_MAX_NESTING: Final = 40
#: The lowest heading of the document around messages.
_SECTION_LEVEL: Final = 3
_SCHEME: Final = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SAFE_SCHEMES: Final = frozenset({"http", "https", "mailto"})
_HEADING: Final = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_TICKS: Final = re.compile(r"`+")
#: An escaped character, the start of code, a link in angle brackets, or the start of HTML.
_INLINE: Final = re.compile(
    r"\\.|`+|<(?:https?:|mailto:)[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>|<(?=[A-Za-z/!?])",
    re.DOTALL | re.IGNORECASE,
)


def render_html(text: str, *, line_breaks: bool = False) -> str | None:
    """
    Return a message as inert HTML, or ``None`` if it cannot be rendered.

    Everything that is not Markdown is escaped; links lead to web and mail addresses only;
    an image becomes a link to it. With ``line_breaks``, line ends are kept, as in typed
    messages.
    """
    parser = _LINE_BREAK_PARSER if line_breaks else _STRICT_PARSER
    parsed = _parse_tokens(parser, text)
    return parser.renderer.render(parsed[0], parser.options, parsed[1]) if parsed else None


def confine_markdown(text: str) -> str | None:
    """
    Return a message as Markdown that cannot change the document around it.

    Headings are moved below those of the document, open code is closed, HTML is escaped.
    The result is compared with the original, both rendered: ``None`` where they differ, for
    example if a message defines links for the whole document.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parsed = _parse_tokens(_PLAIN_PARSER, text)
    if parsed is None:
        return None
    tokens, env = parsed
    lines = text.split("\n")
    for index, token in enumerate(tokens):
        _edit_lines(lines, token, tokens[index - 1])
    contained = "\n".join(line for line in lines if line is not _DELETED_LINE).strip("\n")
    wanted = _PLAIN_PARSER.renderer.render(_demote_tokens(tokens), _PLAIN_PARSER.options, env)
    end = f"{'#' * _SECTION_LEVEL} end"
    found = _PERMISSIVE_PARSER.render(f"{contained}\n\n{end}\n")
    return (
        contained
        if _normalize_spaces(found) == _normalize_spaces(f"{wanted}<h3>end</h3>")
        else None
    )


#: Placeholder for a deleted line.
_DELETED_LINE: Final = "\0gone"


def _parse_tokens(parser: MarkdownIt, text: str) -> tuple[list[Token], dict[str, Any]] | None:
    if len(text) > MAX_CHARS:
        return None
    env: dict[str, Any] = {}
    tokens = parser.parse(text, env)
    deepest = max((token.level for token in tokens), default=0)
    return None if deepest >= _MAX_NESTING - 1 else (tokens, env)


def _edit_lines(lines: list[str], token: Token, before: Token) -> None:
    if token.map is None:
        return
    first, last = token.map
    if token.type == "heading_open" and token.level == 0:
        _demote_heading(lines, first, last, token)
    elif token.type == "fence" and token.level == 0 and not _is_closed(lines[first:last], token):
        lines.append(token.markup)
    elif token.type == "inline" and before.type != "heading_open":
        lines[first:last] = _escape_html("\n".join(lines[first:last])).split("\n")


def _demote_heading(lines: list[str], first: int, last: int, token: Token) -> None:
    """Move a heading below those of the document."""
    level = "#" * _demoted_level(token)
    if token.markup.startswith("#"):
        lines[first] = _escape_html(_HEADING.sub(rf"\1{level}", lines[first], count=1))
        return
    text = " ".join(line.strip() for line in lines[first : last - 1])
    lines[first:last] = [f"{level} {_escape_html(text)}"] + [_DELETED_LINE] * (last - first - 1)


def _demoted_level(token: Token) -> int:
    return min(int(token.tag[1:]) + _SECTION_LEVEL, 6)


def _demote_tokens(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens with headings moved, as ``_demote_heading`` does in the text."""
    return [
        token.copy(tag=f"h{_demoted_level(token)}")
        if token.level == 0 and token.type in ("heading_open", "heading_close")
        else token
        for token in tokens
    ]


def _is_closed(lines: Sequence[str], token: Token) -> bool:
    last = lines[-1].strip()
    return len(lines) > 1 and last.startswith(token.markup) and not last.strip(token.markup[0])


def _escape_html(text: str) -> str:
    """Escape HTML outside of code."""
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


def _normalize_spaces(html: str) -> str:
    return " ".join(html.split())


def _build_parser(
    *, allows: Callable[[str], bool], html: bool = False, breaks: bool = False
) -> MarkdownIt:
    options = {"html": html, "maxNesting": _MAX_NESTING, "breaks": breaks}
    parser = MarkdownIt("commonmark", options)
    parser.enable(["table", "strikethrough"])
    if not html:
        # An unused link definition would vanish.
        parser.disable("reference")
    parser.validateLink = allows  # type: ignore[method-assign]
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _url_scheme(url: str) -> str:
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def _is_safe_url(url: str) -> bool:
    return _url_scheme(url) in _SAFE_SCHEMES


def _is_safe_or_relative(url: str) -> bool:
    return _url_scheme(url) in {*_SAFE_SCHEMES, ""}


def _allow_any(_: str) -> bool:
    return True


def _render_image(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Return an image as a link to it: a page that loads nothing does not track readers."""
    url, label = str(tokens[index].attrs.get("src", "")), tokens[index].content
    return f"{_open_link(url)}{escape(label or url)}</a>"


def _render_link(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    return _open_link(str(tokens[index].attrs.get("href", "")))


def _render_fence(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    index: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Return a code block with its info string, so that no text is lost."""
    info, code = tokens[index].info.strip(), tokens[index].content
    label = f' data-info="{escape(info)}"' if info and code else ""
    return f"<pre{label}><code>{escape((code or info).rstrip())}</code></pre>\n"


def _open_link(url: str) -> str:
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">'


#: For pages.
_STRICT_PARSER: Final = _build_parser(allows=_is_safe_url)
_LINE_BREAK_PARSER: Final = _build_parser(allows=_is_safe_url, breaks=True)
#: The intended rendering, and that of a reader that allows everything.
_PLAIN_PARSER: Final = _build_parser(allows=_is_safe_or_relative)
_PERMISSIVE_PARSER: Final = _build_parser(allows=_allow_any, html=True)
