"""``clew setup``: from nothing to a chat."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from clew.cli.common import Globals, example, json_option, pass_globals, print_json, undisturbed

if TYPE_CHECKING:
    from clew.cli.setting_up.course import Done
    from clew.cli.setting_up.offers import Key


@click.command(
    epilog=example(
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
@click.option("--port", type=click.IntRange(1, 65535), help="Where clew serve is to listen.")
@click.option(
    "--look-at",
    multiple=True,
    metavar="URL",
    help="Look for a server here, instead of where Ollama, LM Studio and llama.cpp listen.",
)
@click.option("--no-test", is_flag=True, help="Do not ask the model for a word first.")
@click.option("--replace", is_flag=True, help="Change a config.toml that is there already.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the first that is found.")
@click.option("--no-chat", is_flag=True, help="Do not open a chat in the end.")
@json_option
@pass_globals
@click.pass_context
def setup(ctx: click.Context, program: Globals, *, as_json: bool, **said: object) -> None:
    """
    Choose a model, try it, write config.toml, and chat.

    Finds providers' keys in the environment and servers on this machine. Keys are written down as
    the place where they are, never as they are. Without a terminal, or with --yes, nothing is
    asked.
    """
    with undisturbed():
        from clew.cli.setting_up.course import LeftAsItIs, set_up  # noqa: PLC0415  (help needs no model)
        from clew.cli.setting_up.offers import LOCAL  # noqa: PLC0415
        from clew.cli.setting_up.person import Person  # noqa: PLC0415
        from clew.cli.setting_up.wishes import Wishes  # noqa: PLC0415
        from clew.cli.terminal import outputs  # noqa: PLC0415
        from clew.config import find_home  # noqa: PLC0415

    _, notes = outputs()
    is_there = sys.stdin.isatty() and not said["yes"] and not as_json
    looked_at = cast("tuple[str, ...]", said["look_at"])
    wishes = Wishes(
        model=_text(said["model"]),
        base_url=_text(said["base_url"]),
        key=_key(said["key_env"], said["key_file"]),
        port=said["port"] if isinstance(said["port"], int) else None,
        servers={url: url for url in looked_at} or LOCAL,
        test=not said["no_test"],
        replace=bool(said["replace"]),
    )
    person = Person(notes, is_there=is_there)
    try:
        done = set_up(find_home(program.home, os.environ), wishes, os.environ, person)
    except LeftAsItIs as left:
        notes.write(f"{left}\n")
        return
    if as_json:
        print_json(_shape(done))
        return
    for warning in done.warnings:
        notes.write(f"clew: warning: {warning}\n")
    notes.write(f"{_told(done)}\n")
    if not is_there or said["no_chat"]:
        notes.dim("talk to it: clew, or line by line: clew chat")
        return
    from clew.cli.opening import is_installed, open_terminal  # noqa: PLC0415  (as above)

    if is_installed() and sys.stdout.isatty():
        ctx.exit(open_terminal(program))
    from clew.cli.lines import run  # noqa: PLC0415  (as above)

    ctx.exit(run(done.settings, "main"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _key(env: object, file: object) -> Key | None:
    from clew.cli.setting_up.offers import Key  # noqa: PLC0415  (help needs no model)

    if env and file:
        raise click.UsageError("say either --key-env or --key-file")
    if isinstance(env, str):
        return Key(env=env)
    return Key(file=file.absolute()) if isinstance(file, Path) else None


def _told(done: Done) -> str:
    key = f", with the key in {done.chosen.key.told}" if done.chosen.key else ""
    answers = "answers" if done.tested else "is set; it was not asked"
    return f"{done.chosen.name} {answers}{key}; written to {done.settings.config_file}"


def _shape(done: Done) -> dict[str, object]:
    key = done.chosen.key
    place = None if key is None else {"env": key.env} if key.env else {"file": str(key.file)}
    return {
        "model": done.chosen.name,
        "base_url": done.chosen.base_url,
        "key": place,
        "tested": done.tested,
        "config": str(done.settings.config_file),
        "before": None if done.before is None else str(done.before),
        "warnings": list(done.warnings),
    }
