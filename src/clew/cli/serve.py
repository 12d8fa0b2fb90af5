"""``clew serve``: run the gateway until it is stopped."""

from __future__ import annotations

import click

from clew.cli.common import CliContext, fast_import, format_examples, pass_cli_context


@click.command(
    epilog=format_examples("clew serve", "clew --set api.port=9000 serve", "clew serve 2> clew.log")
)
@pass_cli_context
def serve(program: CliContext) -> None:
    """
    Run the gateway: channels and API.

    Prints one line, "ready http://HOST:PORT", when it accepts requests; everything else goes to
    standard error, as JSON lines where that is no terminal. SIGTERM or Ctrl-C ends it: turns that
    are not done go on when it is started again.
    """
    settings = program.load_settings()
    with fast_import():
        from clew.cli.gateway import run_gateway  # noqa: PLC0415  (help needs no engine)

    run_gateway(settings)
