"""``clew export``: conversations in the forms that other programs read."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import ProgressBar
from clew.cli.record_printer import add_list_hint, open_configured_store
from clew.cli.session_export import open_export_file
from clew.config.introspection import iter_secret_texts
from clew.core.ids import ConversationId
from clew.engine.export_documents import iter_pieces
from clew.engine.exports import ConversationExporter
from clew.engine.portable_export import iter_portable_lines
from clew.errors import NotFound, UsageError
from clew.record import Record
from clew.store.transactions import conversations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config import Settings
    from clew.core.conversation import Conversation
    from clew.engine.portable_export import PortableForm
    from clew.store.contract import Store

_UNFIT: Final = re.compile(r"[^\w .,()-]+")
_MAX_NAME: Final = 80
#: Characters of an id in a file's name.
_MARK: Final = 8


class _Request(Record):
    form: str
    path: Path
    names: Sequence[str]


@click.command(
    epilog=format_examples(
        "clew export chatml conversations.jsonl",
        "clew export sharegpt training.jsonl main garden",
        "clew export markdown ~/vault/Clew",
    )
)
@click.argument("form", metavar="FORM", type=click.Choice(("chatml", "sharegpt", "markdown")))
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME|ID]...")
@click.option("--force", is_flag=True, help="Overwrite PATH if it is a file that exists.")
@json_option
@pass_cli_context
def export(
    program: CliContext,
    *,
    form: str,
    path: Path,
    names: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """
    Write all conversations, or some, for other programs.

    FORM is chatml (JSONL with OpenAI's messages), sharegpt (JSONL for fine-tuning) or markdown (a
    folder with one file each, as for Obsidian; again, it writes what has changed). Only `clew
    sessions export` writes everything that is stored, and can be verified.
    """
    if form != "markdown" and path.exists() and not force:
        raise UsageError(f"{path} exists already: name another file, or pass --force")
    request = _Request(form=form, path=path, names=names)
    count, written = asyncio.run(_export(program.load_settings(), request))
    if as_json:
        print_json({"path": str(path), "conversations": count, "written": written})
    else:
        same = f"; {count - written} had not changed" if written < count else ""
        get_outputs()[1].print_dim(f"exported {pluralize(written, 'conversation')} to {path}{same}")


async def _export(settings: Settings, request: _Request) -> tuple[int, int]:
    async with open_configured_store(settings) as store:
        exports = ConversationExporter(store, secrets=iter_secret_texts(settings))
        try:
            chosen = await exports.resolve_names(request.names) if request.names else None
        except NotFound as error:
            raise add_list_hint(error) from error
        ids = chosen or await exports.list_conversations()
        progress = ProgressBar(get_outputs()[1], "exporting", total=len(ids))
        if request.form == "markdown":
            written = await _write_folder(store, exports, request.path, ids, progress)
        else:
            written = len(ids)
            await _write_lines(exports, request, ids, progress)
        progress.clear_line()
        return len(ids), written


async def _write_lines(
    exports: ConversationExporter, request: _Request, ids: Sequence[str], progress: ProgressBar
) -> None:
    form: PortableForm = "chatml" if request.form == "chatml" else "sharegpt"
    lines = iter_portable_lines(exports, ids, form, on_conversation=progress.update)
    with open_export_file(request.path) as put:
        async for line in lines:
            put(line)


async def _write_folder(
    store: Store,
    exports: ConversationExporter,
    folder: Path,
    ids: Sequence[str],
    progress: ProgressBar,
) -> int:
    written = 0
    for done, name in enumerate(ids):
        progress.update(done)
        found = await store.read(conversations.get_conversation, ConversationId(name))
        pieces = [piece async for piece in iter_pieces(exports, [name], "markdown")]
        text = _make_front_matter(found).encode() + b"".join(pieces)
        written += _write_changed(folder, _make_file_name(found), found.id, text)
    return written


def _make_file_name(found: Conversation) -> str:
    title = " ".join(_UNFIT.sub(" ", found.title or "").split())[:_MAX_NAME].strip(" .")
    return f"{title or 'Untitled'} {found.id[-_MARK:]}.md"


def _make_front_matter(found: Conversation) -> str:
    lines = [
        f"created: {found.created_at:%Y-%m-%dT%H:%M:%S}",
        f"updated: {found.updated_at:%Y-%m-%dT%H:%M:%S}",
        f"clew: {found.id}",
    ]
    return "\n".join(["---", *lines, "---", "", ""])


def _write_changed(folder: Path, name: str, conversation: str, text: bytes) -> bool:
    """Write a file, in place of one that the conversation had under another title."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{conversation[-_MARK:]}.md"):
        if old.name == name and old.read_bytes() == text:
            return False
        if old.name != name:
            old.unlink()
    part = folder / f".{name}.{os.getpid()}.part"
    part.write_bytes(text)
    part.replace(folder / name)
    return True
