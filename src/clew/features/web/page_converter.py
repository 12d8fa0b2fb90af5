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
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.IGNORECASE
)
_EMPTY_LINES = re.compile(r"\n\s*\n\s*\n+")


def main() -> None:
    """Convert standard input."""
    given = json.loads(sys.stdin.buffer.readline())
    title, text = convert(sys.stdin.buffer.read(), url=given["url"], charset=given["charset"])
    json.dump({"title": title, "text": text}, sys.stdout)


def convert(page: bytes, *, url: str, charset: str | None) -> tuple[str, str]:
    """Return the title and the text of a page."""
    soup = BeautifulSoup(page, "html.parser", from_encoding=charset)
    title = " ".join(soup.title.get_text().split())[:200] if soup.title else ""
    _remove_unseen(soup)
    for tag, name in (("a", "href"), ("img", "src")):
        for each in soup.find_all(tag):
            _make_absolute(each, name, url)
    text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(soup)
    return title, _EMPTY_LINES.sub("\n\n", text).strip()[:_LONGEST]


def _remove_unseen(soup: BeautifulSoup) -> None:
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for tag in soup.find_all(_is_unseen):
        tag.decompose()


def _is_unseen(tag: Tag) -> bool:
    if tag.name in _UNSEEN or tag.has_attr("hidden"):
        return True
    return bool(_HIDDEN.search(str(tag.get("style") or "")))


def _make_absolute(tag: Tag, name: str, url: str) -> None:
    given = str(tag.get(name) or "")
    if given.startswith("data:"):
        del tag[name]
        return
    with contextlib.suppress(ValueError):
        tag[name] = urljoin(url, given)


if __name__ == "__main__":
    main()
