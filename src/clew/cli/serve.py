"""``clew serve``: the gateway, until it is told to stop."""

from __future__ import annotations

import click

from clew.cli.common import Globals, example, pass_globals, undisturbed


@click.command(
    epilog=example("clew serve", "clew --set api.port=9000 serve", "clew serve 2> clew.log")
)
@pass_globals
def serve(program: Globals) -> None:
    """
    Run the gateway: channels and API.

    Prints one line, "ready http://HOST:PORT", when it accepts requests; everything else goes to
    standard error, as JSON lines where that is no terminal. SIGTERM or Ctrl-C ends it: turns that
    are not done go on when it is started again.
    """
    settings = program.settings()
    with undisturbed():
        from clew.cli.gateway import run  # noqa: PLC0415  (help needs no engine)

    run(settings)
