"""``clew setup``: choose and test a model, write the settings, start a chat."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from clew.cli.common import (
    CliContext,
    fast_import,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)

if TYPE_CHECKING:
    from clew.cli.setup_wizard.flow import SetupResult
    from clew.cli.setup_wizard.prompts import Prompter
    from clew.cli.setup_wizard.providers import KeyLocation


@click.command(
    epilog=format_examples(
        "clew setup",
        "clew setup --model openai-chat:llama3 --base-url http://127.0.0.1:11434/v1",
        "clew setup --model anthropic:claude-sonnet-5 --key-env MY_KEY --json",
    )
)
@click.option("--model", metavar="NAME", help="The model: PROVIDER:MODEL, MODEL, or offline.")
@click.option("--base-url", metavar="URL", help="Where it is served, if not by its provider.")
@click.option("--key-env", metavar="NAME", help="The environment variable that holds its key.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PATH",
    help="The file that holds its key.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The address on which clew serve listens."
)
@click.option(
    "--look-at",
    multiple=True,
    metavar="URL",
    help="Look for a server here, instead of where Ollama, LM Studio and llama.cpp listen.",
)
@click.option("--no-test", is_flag=True, help="Do not send a test request to the model first.")
@click.option("--replace", is_flag=True, help="Change an existing config.toml.")
@click.option("--yes", is_flag=True, help="Ask nothing: use the first model that is found.")
@click.option("--no-chat", is_flag=True, help="Do not open a chat at the end.")
@json_option
@pass_cli_context
@click.pass_context
def setup(ctx: click.Context, program: CliContext, *, as_json: bool, **said: object) -> None:
    """
    Choose a model, try it, write config.toml, and chat.

    Finds providers' keys in the environment and servers on this machine. Keys are written down as
    the place where they are, never as they are. Without a terminal, or with --yes, nothing is
    asked.
    """
    with fast_import():
        from clew.cli.output import get_outputs  # noqa: PLC0415
        from clew.cli.setup_wizard.flow import SetupCancelled, run_setup  # noqa: PLC0415  (help needs no model)
        from clew.cli.setup_wizard.options import SetupOptions  # noqa: PLC0415
        from clew.cli.setup_wizard.prompts import Prompter  # noqa: PLC0415
        from clew.cli.setup_wizard.providers import LOCAL_SERVERS  # noqa: PLC0415
        from clew.config import find_home  # noqa: PLC0415

    _, notes = get_outputs()
    is_there = sys.stdin.isatty() and not said["yes"] and not as_json
    looked_at = cast("tuple[str, ...]", said["look_at"])
    wishes = SetupOptions(
        model=_optional_text(said["model"]),
        base_url=_optional_text(said["base_url"]),
        key=_key_location(said["key_env"], said["key_file"]),
        port=said["port"] if isinstance(said["port"], int) else None,
        servers={url: url for url in looked_at} or LOCAL_SERVERS,
        test=not said["no_test"],
        replace=bool(said["replace"]),
    )
    person = Prompter(notes, is_interactive=is_there)
    try:
        done = run_setup(find_home(program.home, os.environ), wishes, os.environ, person)
    except SetupCancelled as left:
        notes.write(f"{left}\n")
        return
    if as_json:
        print_json(_result_json(done))
        return
    for warning in done.warnings:
        notes.write(f"clew: warning: {warning}\n")
    notes.write(f"{_format_result(done)}\n")
    _offer_completion(person)
    if not is_there or said["no_chat"]:
        notes.print_dim("chat with it: clew, or line by line: clew chat")
        return
    from clew.cli.open_tui import is_tui_installed, open_tui  # noqa: PLC0415  (as above)

    if is_tui_installed() and sys.stdout.isatty():
        ctx.exit(open_tui(program))
    from clew.cli.line_chat import run_line_chat  # noqa: PLC0415  (as above)

    ctx.exit(run_line_chat(done.settings, "main"))


def _offer_completion(person: Prompter) -> None:
    """Install the completion of this person's shell, if they want it and lack it."""
    from clew.cli.shell_completion import find_missing_completion  # noqa: PLC0415  (as above)

    if not person.is_interactive or (plan := find_missing_completion(os.environ)) is None:
        return
    if person.confirm(f"Complete commands of clew with Tab in {plan.shell} ({plan.file})?"):
        plan.install()
        person.print_note(f"new shells of {plan.shell} complete clew")


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _key_location(env: object, file: object) -> KeyLocation | None:
    from clew.cli.setup_wizard.providers import KeyLocation  # noqa: PLC0415  (help needs no model)

    if env and file:
        raise click.UsageError("pass either --key-env or --key-file")
    if isinstance(env, str):
        return KeyLocation(env=env)
    return KeyLocation(file=file.absolute()) if isinstance(file, Path) else None


def _format_result(done: SetupResult) -> str:
    key = f", with the key in {done.chosen.key.description}" if done.chosen.key else ""
    answers = "answers" if done.tested else "is set; no test request was sent"
    return f"{done.chosen.name} {answers}{key}; written to {done.settings.config_file}"


def _result_json(done: SetupResult) -> dict[str, object]:
    key = done.chosen.key
    place = None if key is None else {"env": key.env} if key.env else {"file": str(key.file)}
    return {
        "model": done.chosen.name,
        "base_url": done.chosen.base_url,
        "key": place,
        "tested": done.tested,
        "config": str(done.settings.config_file),
        "before": None if done.previous_config is None else str(done.previous_config),
        "warnings": list(done.warnings),
    }
