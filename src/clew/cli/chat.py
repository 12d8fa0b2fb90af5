"""``clew chat``: a single turn, or a line-by-line chat."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final, TextIO, cast

import click

from clew.cli.common import CliContext, fast_import, format_examples, json_option, pass_cli_context

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The form of a session key, which nobody says as a message.
_SESSION_KEY: Final = re.compile(r"agent:[a-z0-9_-]+:[a-z]+(:\S+)+")


@click.command(
    epilog=format_examples(
        'clew chat "What did we decide yesterday?"',
        "clew chat -c work < question.txt",
        "clew chat",
    )
)
@click.option(
    "-c",
    "--conversation",
    "name",
    default="main",
    metavar="NAME|ID",
    help="The conversation: a NAME, created on first use, or an id.  [default: main]",
)
@click.option(
    "--approval-timeout",
    "patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With a TEXT: how long to wait for a tool call to be allowed. Then the command fails and "
    "says how to allow it.",
)
@click.argument("words", nargs=-1, metavar="[TEXT]")
@json_option
@pass_cli_context
@click.pass_context
def chat(
    ctx: click.Context,
    program: CliContext,
    name: str,
    words: Sequence[str],
    *,
    patience: float,
    as_json: bool,
) -> None:
    """
    Talk to the agent: one turn with TEXT or what is piped in, else a chat line by line.

    The answer goes to standard output as it is made, remarks to standard error. Ctrl-C stops the
    answer; what was said until then stays in the conversation.
    """
    text = _read_text(words)
    if text is None and as_json:
        raise click.UsageError("--json needs a TEXT, or one piped in", ctx=ctx)
    settings = program.load_settings()
    if text is None:
        with fast_import():
            from clew.cli.line_chat import run_line_chat  # noqa: PLC0415  (help needs no engine)
        ctx.exit(run_line_chat(settings, name))
    with fast_import():
        from clew.cli.one_shot import run_once  # noqa: PLC0415  (help needs no engine)
    command = program.format_command()
    ctx.exit(run_once(settings, name, text, as_json=as_json, command=command, patience=patience))


def _read_text(words: Sequence[str]) -> str | None:
    """Return the message; ``None`` if the user is to be prompted for it."""
    if words and _SESSION_KEY.fullmatch(words[0]):
        raise click.UsageError(f"{words[0]} names a conversation: clew chat -c {words[0]} [TEXT]")
    if words and tuple(words) != ("-",):
        return " ".join(words)
    # None if the program was started without standard input.
    piped = cast("TextIO | None", sys.stdin)
    if piped is None:
        raise click.UsageError("there is no standard input to read from: give a TEXT")
    if not words and piped.isatty():
        return None
    return piped.buffer.read().decode("utf-8", errors="replace").rstrip("\r\n")
