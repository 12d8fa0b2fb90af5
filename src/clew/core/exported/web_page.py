"""An export as one HTML file that needs nothing else and runs nothing."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from clew.core.exported.blocks import Folded, Remark, Said, Title

if TYPE_CHECKING:
    from clew.core.exported.blocks import Block

#: What no HTML file may hold, and what turns the direction of the text after it.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-top: 1px solid #8888; padding-top: 1rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article { margin: 1rem 0; padding: .5rem 1rem; border-radius: .5rem; background: #8881; }
article.user { background: #48f2; margin-left: 2rem; }
header, .remark, summary { font-size: .85rem; opacity: .75; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: inherit; }
pre { font-family: ui-monospace, monospace; font-size: .85rem; }
details { margin: .5rem 1rem; }
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


def html(block: Block) -> str:
    """A block as a part of the page's body."""
    match block:
        case Title(text=text, facts=facts):
            rows = "".join(
                f"<dt>{_safe(name)}</dt><dd>{_safe(value)}</dd>" for name, value in facts
            )
            return f'<h2 dir="auto">{_safe(text)}</h2>\n<dl>{rows}</dl>\n'
        case Said(who=who, seq=seq, at=at, text=text):
            return (
                f'<article class="{_safe(who.lower())}">\n'
                f"<header>{_safe(who)} · {seq} · <time>{_safe(at)}</time></header>\n"
                f'<div class="text" dir="auto">{_safe(text)}</div>\n</article>\n'
            )
        case Folded(label=label, text=text):
            return (
                f"<details><summary>{_safe(label)}</summary>"
                f'<pre dir="auto">\n{_safe(text)}</pre></details>\n'
            )
        case Remark(text=text):
            return f'<p class="remark" dir="auto">{_safe(text)}</p>\n'


def _safe(text: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))
