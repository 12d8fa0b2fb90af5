"""``clew chat``: one turn, or a chat line by line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO, cast

import click

from clew.cli.common import Globals, example, json_option, pass_globals, undisturbed

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    epilog=example(
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
    help="The conversation: a NAME, made on first use, or an id.  [default: main]",
)
@click.option(
    "--approval-timeout",
    "patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With a TEXT: how long to wait for somebody to allow a tool call. Then it fails and says "
    "how to allow it.",
)
@click.argument("words", nargs=-1, metavar="[TEXT]")
@json_option
@pass_globals
@click.pass_context
def chat(
    ctx: click.Context,
    program: Globals,
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
    text = _text(words)
    if text is None and as_json:
        raise click.UsageError("--json needs a TEXT, or one piped in", ctx=ctx)
    settings = program.settings()
    if text is None:
        with undisturbed():
            from clew.cli.lines import run  # noqa: PLC0415  (help needs no engine)
        ctx.exit(run(settings, name))
    with undisturbed():
        from clew.cli.asking import ask  # noqa: PLC0415  (help needs no engine)
    ctx.exit(ask(settings, name, text, as_json=as_json, patience=patience))


def _text(words: Sequence[str]) -> str | None:
    """What is to be said; ``None`` if a person is to be asked for it."""
    if words and tuple(words) != ("-",):
        return " ".join(words)
    # It is None where a program was started without one.
    piped = cast("TextIO | None", sys.stdin)
    if piped is None:
        raise click.UsageError("there is no standard input to read from: give a TEXT")
    if not words and piped.isatty():
        return None
    return piped.buffer.read().decode("utf-8", errors="replace").rstrip("\r\n")
