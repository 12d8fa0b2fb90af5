"""
Program that converts a page to Markdown; it runs with limits of its own.

Reads a line of JSON (``url``, ``charset``) and the page; writes JSON (``title``, ``text``).
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Comment, Tag
from markdownify import MarkdownConverter

#: Characters of the text.
_LONGEST = 2_000_000
#: Elements that are not visible on a page.
_UNSEEN = ("script", "style", "noscript", "template", "svg", "iframe", "object", "head", "canvas")
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?![.\d])"
    r"|font-size\s*:\s*(?:0?\.\d+|1)(?:px|pt)|(?:left|right|top|bottom|text-indent)\s*:\s*-\d{3}"
    r"|clip\s*:\s*rect\(\s*[01]\D|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
#: Together they hide as well.
_FLAT = re.compile(r"(?:height|width)\s*:\s*[01](?![.\d%])", re.IGNORECASE)
_CLIPPED = re.compile(r"overflow\s*:\s*hidden", re.IGNORECASE)
#: Comments in style sheets, and the rules of one that hold everywhere.
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CONDITIONAL = re.compile(r"@[^{};]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_MOST_RULES = 2_000
#: Of style sheets only what hides the whole, whatever its size: others make menus and images.
_HIDDEN_BY_RULE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_EMPTY_LINES = re.compile(r"\n\s*\n\s*\n+")


#: States of an element, such as ``:not(.open)``: what they select may be seen a moment later.
_MATTERS = re.compile(r"[:*>~+]|^(?:html|body|main|article)\b", re.IGNORECASE)


def main() -> None:
    """Convert standard input."""
    given = json.loads(sys.stdin.buffer.readline())
    title, text = convert(sys.stdin.buffer.read(), url=given["url"], charset=given["charset"])
    json.dump({"title": title, "text": text}, sys.stdout)


def convert(page: bytes, *, url: str, charset: str | None) -> tuple[str, str]:
    """Return the title and the text of a page."""
    soup = _parse(page, charset)
    title = " ".join(soup.title.get_text().split())[:200] if soup.title else ""
    _remove_unseen(soup)
    for tag, name in (("a", "href"), ("img", "src")):
        for each in soup.find_all(tag):
            _make_absolute(each, name, url)
    text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(soup)
    return title, _EMPTY_LINES.sub("\n\n", text).strip()[:_LONGEST]


def _parse(page: bytes, charset: str | None) -> BeautifulSoup:
    if charset is None:
        # What can be read as UTF-8 is; a guess by frequent letters garbles short pages.
        with contextlib.suppress(UnicodeDecodeError):
            return BeautifulSoup(page.decode(), "html.parser")
    return BeautifulSoup(page, "html.parser", from_encoding=charset)


def _remove_unseen(soup: BeautifulSoup) -> None:
    for selector in _find_hiding_selectors(soup):
        # What the library does not know of CSS is left as it is.
        with contextlib.suppress(Exception):
            for tag in soup.select(selector):
                tag.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for tag in soup.find_all(_is_unseen):
        tag.decompose()


def _is_unseen(tag: Tag) -> bool:
    if tag.name in _UNSEEN or tag.has_attr("hidden"):
        return True
    style = _CSS_COMMENT.sub("", str(tag.get("style") or ""))
    return bool(_HIDDEN.search(style) or (_FLAT.search(style) and _CLIPPED.search(style)))


def _find_hiding_selectors(soup: BeautifulSoup) -> list[str]:
    """Return the selectors of the page's own style sheets that hide what they select."""
    found: list[str] = []
    for sheet in soup.find_all("style"):
        always = _CONDITIONAL.sub("", _CSS_COMMENT.sub("", sheet.get_text()))
        for selector, declarations in _RULE.findall(always):
            if _HIDDEN_BY_RULE.search(declarations) and not _MATTERS.search(selector.strip()):
                found.append(selector.strip())
    return found[:_MOST_RULES]


def _make_absolute(tag: Tag, name: str, url: str) -> None:
    given = str(tag.get(name) or "")
    if given.startswith("data:"):
        del tag[name]
        return
    with contextlib.suppress(ValueError):
        tag[name] = urljoin(url, given)


if __name__ == "__main__":
    main()
