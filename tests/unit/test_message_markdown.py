"""A message is rendered as it was written, and nothing in it reaches beyond its place."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from clew.engine.readable_export import html as html_page
from clew.engine.readable_export import markdown
from clew.engine.readable_export.document import MessageBlock, NoteBlock
from clew.engine.readable_export.message_markdown import MAX_CHARS, confine_markdown, render_html

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Pieces of which hostile Markdown is made.
PIECES: Final = [
    "# ", "## ", "###### ", "===\n", "---\n", "```", "````", "~~~", "`", "``",
    "<script>", "</script>",
    "<!--", "-->", "<?", "<![CDATA[", "</article></div>", "<img src=x onerror=alert(1)>",
    "<b>", "\\",
    "[a](javascript:alert(1))", "[a](JaVaScRiPt&#58;alert(1))",
    "![x](data:text/html,x)", "[a]: /b\n",
    "[a]", "<javascript:alert(1)>", "<https://a.b/>", "[x](https://a.b/?\"onclick=x)", "[^1]: x\n",
    "&lt;b&gt;", "&#60;script&#62;", "&#x202e;", "> ", "- ", "1. ", "    ",
    "\t", "| a | b |\n", "|--|--|\n",
    "**", "*", "_", "~~", "a", "word ", "\n", "\n\n", "\r\n", "\r", "&", "\"", "'", "<", ">",
    "</pre>",
    "</code>", "x\n===\n", "\x00", "\x1b[2J", "\u202e", "é", "[a](mailto:a@b)", "<a@b.c>", "\x0b",
]  # fmt: skip
HOSTILE: Final = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
TAGS: Final = {
    "p", "br", "a", "pre", "code", "em", "strong", "s", "ul", "ol", "li", "blockquote", "hr",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip


class Seen(HTMLParser):
    """The elements of a page, each with its attributes, how deep they end, and the text."""

    VOID = frozenset({"br", "hr", "meta"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    handle_pi = unknown_decl = handle_comment


def said(text: str, who: str = "Assistant") -> MessageBlock:
    return MessageBlock(who=who, seq=1, at="now", time="now", text=text, conversation="c")


@pytest.mark.parametrize("who", ["Assistant", "You"])
@given(HOSTILE)
@example("x " * MAX_CHARS)
@example("> " * 90 + "deep")
def test_a_rendered_message_runs_nothing_loads_nothing_and_stays_in_its_place(
    who: str, text: str
) -> None:
    page = Seen(html_page.render_html_block(said(text, who)))
    assert page.open == [], "all that was opened is closed"
    (article, _), (header, _), (name, _), (time, _), (body, _), *inside = page.elements
    assert (article, header, name, time, body) == ("article", "header", "b", "time", "div")
    for tag, attributes in inside:
        if (tag, attributes) == ("div", {"class": "plain"}):
            continue
        assert tag in TAGS
        allowed = {"a": {"href", "rel", "title"}, "pre": {"data-info"}, "ol": {"start"}}
        assert set(attributes) <= allowed.get(tag, {"style"} if tag in ("th", "td") else set())
        assert (attributes.get("style") or "text-align:left").startswith("text-align:")
        if tag == "a":
            assert (attributes["href"] or "").startswith(("http:", "https:", "mailto:"))
    assert not set(page.text) & set("\x00\x1b\u202e\x0b")


def structure(document: str) -> list[str]:
    """The headings of a document that make its sections, and raw HTML wherever it is."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(document)
    found = [
        tokens[at + 1].content
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.tag in ("h1", "h2", "h3")
    ]
    inner = [one for token in tokens for one in [token, *(token.children or [])]]
    return found + [one.content for one in inner if one.type in ("html_block", "html_inline")]


@given(st.lists(HOSTILE, min_size=1, max_size=3))
def test_no_message_changes_the_sections_of_a_document(texts: list[str]) -> None:
    blocks = [block for text in texts for block in (said(text), NoteBlock(text="it happened"))]
    document = markdown.HEAD + "".join(map(markdown.render_markdown_block, blocks))
    assert structure(document) == ["Conversations", *["Assistant · now"] * len(texts)]
    assert "*it happened*\n" in document


ANSWER: Final = """\
# Plan

**Bold**, *soft*, `code <b>` and [a link](https://clew.example/).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```python
# no heading
print("<b>")
```

Title
-----
"""


def test_markdown_is_rendered_in_a_page() -> None:
    page = html_page.render_html_block(said(ANSWER))
    for html in (
        "<h1>Plan</h1>", "<strong>Bold</strong>", "<em>soft</em>", "<code>code &lt;b&gt;</code>",
        '<a href="https://clew.example/" rel="noopener noreferrer nofollow">a link</a>',
        "<li>one</li>", "<td>2</td>", "<h2>Title</h2>",
        '<pre data-info="python"><code># no heading\nprint(&quot;&lt;b&gt;&quot;)</code></pre>',
    ):  # fmt: skip
        assert html in page
    assert "**" not in page
    assert '<article class="answer" id="c-1">' in page


def test_a_message_keeps_its_markdown_below_the_headings_of_the_document() -> None:
    contained = confine_markdown(ANSWER)
    assert contained is not None
    expected = ANSWER.replace("# Plan", "#### Plan").replace("Title\n-----\n", "##### Title")
    assert contained == expected


@pytest.mark.parametrize(
    ("text", "contained"),
    [
        ("a <b> c `<b>` <https://x.y>", "a \\<b> c `<b>` <https://x.y>"),
        ("```\nopen", "```\nopen\n```"),
        ("a\n\n---\n\nb", "a\n\n---\n\nb"),
        ("###### low", "###### low"),
        ("two\nlines\n===", "#### two lines"),
        ("- # in a list\n- b", "- # in a list\n- b"),
        ("[file](src/a.py)", "[file](src/a.py)"),
    ],
)
def test_only_what_would_change_the_document_is_edited(text: str, contained: str) -> None:
    assert confine_markdown(text) == contained


@pytest.mark.parametrize(
    "text",
    ["[a]: https://b.c\n[a]", "[a](javascript:b)", "> " * 90 + "deep", "x" * (MAX_CHARS + 1)],
)
def test_a_message_that_cannot_be_contained_stands_as_text(text: str) -> None:
    assert confine_markdown(text) is None
    fence = markdown.render_markdown_block(said(text)).split("\n", 3)[3]
    assert fence == f"```text\n{text}\n```\n"


def test_nothing_that_was_said_is_left_out_of_a_page() -> None:
    assert "rm -rf /tmp/x" in str(render_html("```rm -rf /tmp/x && echo done"))
    assert "[a]: https://b.c" in str(render_html("[a]: https://b.c"))
    assert render_html("> " * 90 + "deep") is None
    assert "deep" in html_page.render_html_block(said("> " * 90 + "deep"))
    assert render_html("one\ntwo", line_breaks=True) == "<p>one<br />\ntwo</p>\n"
    assert '<a href="https://a.b/c.png" rel' in str(render_html("![alt](https://a.b/c.png)"))
