"""``clew skills``: folders of instructions for the model, and the trust in them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.feature_records import print_table, run_with_store
from clew.cli.output import get_outputs
from clew.errors import UsageError
from clew.features.skills import front, installing, trust
from clew.features.skills.header import normalize_name
from clew.features.skills.library import SkillLibrary, list_sources, load_library
from clew.features.skills.wording import format_review

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.config import Settings
    from clew.features.skills.review import SkillReview
    from clew.store.contract import Store

T = TypeVar("T")

_FEATURE: Final = "skills"
_BY: Final = "local"
_scope_option = click.option(
    "--scope",
    default="local",
    show_default=True,
    metavar="SCOPE",
    help="Whose workspace: local, person:telegram:42, chat:slack:C1.",
)
_NAME = click.argument("name")


def _run(
    program: CliContext,
    scope: str,
    job: Callable[[Settings, Store, SkillLibrary], Awaitable[T]],
) -> T:
    async def load_and_run(settings: Settings, store: Store) -> T:
        return await job(settings, store, await load_library(store, list_sources(settings, scope)))

    return run_with_store(program, _FEATURE, load_and_run)


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples(
        "clew skills add ~/skills/pdf", "clew skills trust pdf", "clew skills check"
    ),
)
def skills() -> None:
    """Add, check and trust skills: folders of instructions and scripts for the model."""


@skills.command("list", epilog=format_examples("clew skills list", "clew skills list --json"))
@_scope_option
@json_option
@pass_cli_context
def list_skills(program: CliContext, *, scope: str, as_json: bool) -> None:
    """List the skills, and whether they are trusted."""

    async def read(_settings: Settings, _store: Store, library: SkillLibrary) -> dict[str, Any]:
        return front.describe_library(library)

    found = _run(program, scope, read)
    if as_json:
        print_json(found)
        return
    rows = [
        (one["name"], one["state"], one["source"], one["description"]) for one in found["items"]
    ]
    print_table(("NAME", "STATE", "SOURCE", "DESCRIPTION"), rows, none="no skills yet")
    _print_problems(found["problems"])


@skills.command(epilog=format_examples("clew skills check", "clew skills check pdf --json"))
@click.argument("name", required=False)
@_scope_option
@json_option
@pass_cli_context
@click.pass_context
def check(
    ctx: click.Context, program: CliContext, *, name: str | None, scope: str, as_json: bool
) -> None:
    """
    Show what a skill holds; without a NAME, what is wrong with all of them.

    Ends with 1 if a folder cannot be used.
    """
    if name is not None:
        _print_review(_review(program, name, scope), as_json=as_json)
        return

    async def read(settings: Settings, _store: Store, library: SkillLibrary) -> dict[str, Any]:
        remarks = front.list_remarks(library, settings)
        found = [{"name": skill, "remark": remark} for skill, remark in remarks]
        return {**front.describe_library(library), "remarks": found}

    found = _run(program, scope, read)
    if as_json:
        print_json(found)
    else:
        rows = [(one["name"], one["remark"]) for one in found["remarks"]]
        print_table(("NAME", "REMARK"), rows, none=f"{len(found['items'])} skills, no remarks")
        _print_problems(found["problems"])
    ctx.exit(1 if found["problems"] else 0)


@skills.command(
    "trust", epilog=format_examples("clew skills trust pdf", "clew skills trust pdf --yes")
)
@_NAME
@click.option("--digest", metavar="DIGEST", help="Trust only these bytes, as check shows them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_scope_option
@json_option
@pass_cli_context
def trust_skill(
    program: CliContext, *, name: str, digest: str | None, yes: bool, scope: str, as_json: bool
) -> None:
    """Let the model use a skill as it is now; any change of its files ends that."""
    review = _review(program, name, scope)
    if not as_json:
        get_outputs()[0].write(f"{format_review(review)}\n")
    if not (yes or digest):
        _confirm(f"Trust {review.skill.name}?")

    async def store_trust(_settings: Settings, store: Store, library: SkillLibrary) -> None:
        found = library.get(name)
        await store.write(trust.trust, found, digest=digest or review.skill.digest, by=_BY)

    _run(program, scope, store_trust)
    if as_json:
        _print_review(_review(program, name, scope), as_json=True)
        return
    get_outputs()[0].write(f"{review.skill.name} is trusted\n")


@skills.command("untrust", epilog=format_examples("clew skills untrust pdf"))
@_NAME
@json_option
@pass_cli_context
def untrust_skill(program: CliContext, *, name: str, as_json: bool) -> None:
    """Take the trust in a skill back."""

    async def take_back(_settings: Settings, store: Store) -> None:
        await store.write(trust.untrust, normalize_name(name), by=_BY)

    run_with_store(program, _FEATURE, take_back)
    if as_json:
        print_json({"name": normalize_name(name), "state": "untrusted"})
        return
    get_outputs()[0].write(f"{name} is not trusted any more\n")


@skills.command(
    epilog=format_examples(
        "clew skills add ~/.claude/skills/pdf", "clew skills add https://example.org/skills.git"
    )
)
@click.argument("place", metavar="FOLDER_OR_URL")
@json_option
@pass_cli_context
@click.pass_context
def add(ctx: click.Context, program: CliContext, *, place: str, as_json: bool) -> None:
    """Copy the skills of a folder or a git repository; nothing of them is run, or trusted."""
    done = installing.add_skills(program.load_settings().home, place)
    if as_json:
        print_json(
            {
                "added": [{"name": one.name, "digest": one.digest} for one in done.added],
                "problems": [{"folder": name, "reason": why} for name, why in done.problems],
            }
        )
    else:
        out, notes = get_outputs()
        for one in done.added:
            out.write(f"{one.name} added, not trusted: clew skills trust {one.name}\n")
        for name, why in done.problems:
            notes.write(f"{name} left out: {why}\n")
    ctx.exit(1 if done.problems else 0)


def _review(program: CliContext, name: str, scope: str) -> SkillReview:
    async def read(settings: Settings, store: Store, library: SkillLibrary) -> SkillReview:
        return await front.review_stored(settings, store, library, name)

    return _run(program, scope, read)


def _print_review(review: SkillReview, *, as_json: bool) -> None:
    if as_json:
        print_json(review.as_dict())
        return
    get_outputs()[0].write(f"{format_review(review)}\n")


def _print_problems(problems: list[dict[str, str]]) -> None:
    _, notes = get_outputs()
    for one in problems:
        notes.write(f"{one['folder']} cannot be used: {one['reason']}\n")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            "trust needs a confirmation, and there is no terminal to ask on: add --yes"
        )
    click.confirm(question, abort=True, err=True)
