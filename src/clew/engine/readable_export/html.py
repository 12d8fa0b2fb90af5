"""Export as one self-contained HTML file without scripts."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from clew.engine.readable_export.document import (
    CollapsibleBlock,
    HeadingBlock,
    MessageBlock,
    NoteBlock,
)
from clew.engine.readable_export.message_markdown import render_html

if TYPE_CHECKING:
    from clew.engine.readable_export.document import DocumentBlock

#: Characters that HTML forbids, and marks that change the direction of the text.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --you: #4a7dff1f; }
* { box-sizing: border-box; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 3rem 0 0; border-top: 1px solid var(--line); padding-top: 1.5rem; }
h2, .text, dd { overflow-wrap: anywhere; }
.about, header, .remark, summary { font-size: .85rem; color: GrayText; }
.about { margin: 0 0 1.5rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 0; }
dd { margin: 0; }
article { margin: 1.25rem 0; padding: .75rem 1rem; border-radius: .75rem; background: var(--soft); }
article.person { background: var(--you); margin-left: 3rem; }
header { display: flex; gap: .6rem; align-items: baseline; }
header b { color: CanvasText; }
header time { margin-left: auto; }
.text > :first-child { margin-top: .4rem; }
.text > :last-child { margin-bottom: 0; }
.text h1, .text h2, .text h3 { font-size: 1.15rem; margin: 1.2rem 0 .4rem; border: 0; padding: 0; }
.text h4, .text h5, .text h6 { font-size: 1rem; margin: 1rem 0 .4rem; }
.text p, .text li, .text td, .text th, .plain { unicode-bidi: plaintext; }
.plain { white-space: pre-wrap; }
code, pre { font-family: ui-monospace, monospace; font-size: .85rem; }
code { background: var(--soft); border-radius: .25rem; padding: .1em .3em; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem .8rem; overflow-x: auto; white-space: pre; line-height: 1.45; }
pre code { background: none; padding: 0; }
pre[data-info]::before { content: attr(data-info); display: block; color: GrayText;
  font-size: .75rem; margin-bottom: .3rem; }
.text table { border-collapse: collapse; display: block; overflow-x: auto; }
.text td, .text th { border: 1px solid var(--line); padding: .25rem .6rem; }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 3px solid var(--line); }
hr { border: 0; border-top: 1px solid var(--line); }
details { margin: .5rem 0; }
details pre { white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; }
.remark { text-align: center; }
@media print { details { display: none; } article { break-inside: avoid; } }
"""
HEAD: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Conversations</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Conversations</h1>
"""
FOOT: Final = "</body>\n</html>\n"


def format_head(title: str) -> str:
    """Return the beginning of the page of one conversation."""
    return HEAD.replace("<title>Conversations<", f"<title>{escape(title)}<")


def render_html_block(block: DocumentBlock) -> str:
    """Return a block as a part of the page's body."""
    match block:
        case HeadingBlock(text=text, about=about, facts=facts):
            rows = "".join(
                f"<dt>{_escape_text(name)}</dt><dd>{_escape_text(value)}</dd>"
                for name, value in facts
            )
            return (
                f'<h2 dir="auto">{_escape_text(text)}</h2>\n<div '
                f'class="about">{_escape_text(about)}'
                f"<details><summary>Details</summary><dl>{rows}</dl></details></div>\n"
            )
        case MessageBlock():
            return _render_message(block)
        case CollapsibleBlock(label=label, text=text):
            return (
                f"<details><summary>{_escape_text(label)}</summary>"
                f'<pre dir="auto">\n{_escape_text(text)}</pre></details>\n'
            )
        case NoteBlock(text=text):
            return f'<p class="remark" dir="auto">{_escape_text(text)}</p>\n'


def _render_message(said: MessageBlock) -> str:
    kind = "answer" if said.is_answer else "person"
    model = f"<span>{_escape_text(said.model)}</span>" if said.model else ""
    text = render_html(said.text, line_breaks=not said.is_answer)
    body = (
        f'<div class="plain">{_escape_text(said.text)}</div>'
        if text is None
        else _replace_unsafe(text)
    )
    return (
        f'<article class="{kind}" id="{_escape_text(said.conversation)}-{said.seq}">\n'
        f"<header><b>{_escape_text(said.who)}</b>{model}"
        f'<time datetime="{_escape_text(said.at)}">{_escape_text(said.time)}</time></header>\n'
        f'<div class="text" dir="auto">{body}</div>\n</article>\n'
    )


def _escape_text(text: str) -> str:
    return escape(_replace_unsafe(text))


def _replace_unsafe(text: str) -> str:
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)
