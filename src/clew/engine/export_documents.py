"""Exports in the forms in which they are written: sealed lines, Markdown and HTML."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from clew.engine.exports import ConversationExporter

ExportForm = Literal["jsonl", "markdown", "html"]

_MEDIA_TYPES: Final[dict[ExportForm, tuple[str, str]]] = {
    "jsonl": ("application/x-ndjson", "jsonl"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "html": ("text/html; charset=utf-8", "html"),
}
_UNFIT: Final = re.compile(r"[^\w -]+")
_MAX_NAME: Final = 60


class ConversationFile(Record):
    """A file that has an export."""

    name: str
    media_type: str
    content: bytes


def _ignore(_: int) -> None:
    pass


async def iter_pieces(
    exports: ConversationExporter,
    chosen: Sequence[str] | None,
    form: ExportForm,
    *,
    on_conversation: Callable[[int], None] = _ignore,
) -> AsyncIterator[bytes]:
    """Yield an export of these conversations, or of all, in a form."""
    if form == "jsonl":
        async for line in exports.iter_lines(chosen, on_conversation=on_conversation):
            yield line
        return
    # Only readable forms need a parser of Markdown.
    from clew.engine.readable_export import html, markdown  # noqa: PLC0415
    from clew.engine.readable_export.document import BlockReader, HeadingBlock  # noqa: PLC0415

    is_html = form == "html"
    render = html.render_html_block if is_html else markdown.render_markdown_block
    head = html.HEAD if is_html else markdown.HEAD
    reader = BlockReader(datetime.astimezone)
    async for kind, line in exports.iter_records(chosen, on_conversation=on_conversation):
        for block in reader.read_line(kind, line):
            if is_html and head and isinstance(block, HeadingBlock) and len(chosen or ()) == 1:
                head = html.format_head(block.text)
            yield (head + render(block)).encode()
            head = ""
    yield (head + (html.FOOT if is_html else "")).encode()


async def make_file(
    exports: ConversationExporter, conversation: str, form: ExportForm, *, title: str | None
) -> ConversationFile:
    """Return the export of one conversation as a file that is named after its title."""
    media_type, suffix = _MEDIA_TYPES[form]
    name = _UNFIT.sub("", title or "").strip()[:_MAX_NAME].strip() or conversation
    pieces = [piece async for piece in iter_pieces(exports, [conversation], form)]
    return ConversationFile(
        name=f"{name}.{suffix}", media_type=media_type, content=b"".join(pieces)
    )
