"""``clew memory``: the facts that are remembered of people and chats."""

from __future__ import annotations

from pathlib import Path
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
from clew.cli.feature_records import print_fields, print_table, run_in_store
from clew.cli.output import get_outputs
from clew.clock import now_millis
from clew.core.ids import IdGenerator
from clew.core.scope import LOCAL, Scope
from clew.errors import UsageError
from clew.features.memory import facts, front, importing, links, operations, writing
from clew.features.memory.markdown import write_markdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.memory.forgetting import Forgotten
    from clew.store.contract import Tx

T = TypeVar("T")

_FEATURE: Final = "memory"
_scope_option = click.option(
    "--scope",
    default="local",
    show_default=True,
    metavar="SCOPE",
    help="Whose facts: local, shared, person:telegram:42, chat:slack:C1.",
)
_FACT = click.argument("name", metavar="FACT")


def _run(program: CliContext, job: Callable[[Tx], T]) -> T:
    return run_in_store(program, _FEATURE, lambda t, _: job(t))


def _new_id() -> str:
    return writing.make_fact_id(IdGenerator(now_millis).new_operation_id())


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples(
        'clew memory add "Invoices are paid on Fridays"', "clew memory list", "clew memory forget 3"
    ),
)
def memory() -> None:
    """Show, correct, export and import what is remembered of people and chats."""


@memory.command("list", epilog=format_examples("clew memory list", "clew memory list --json"))
@_scope_option
@click.option("--scopes", is_flag=True, help="List the scopes that have facts instead.")
@json_option
@pass_cli_context
def list_facts(program: CliContext, *, scope: str, scopes: bool, as_json: bool) -> None:
    """List the facts of a scope."""
    if scopes:
        _list_scopes(program, as_json=as_json)
        return
    found = _run(program, lambda t: operations.describe_all(t, Scope(scope)))
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (str(one["number"]), one["kind"], "pinned" if one["pinned"] else "-", one["text"])
        for one in found
    ]
    print_table(("N", "KIND", "PINNED", "FACT"), rows, none=f"no facts in {scope} yet")


def _list_scopes(program: CliContext, *, as_json: bool) -> None:
    found = _run(program, facts.list_scopes)
    if as_json:
        print_json({"items": [{"scope": scope, "facts": count} for scope, count in found]})
        return
    rows = [(scope, str(count)) for scope, count in found]
    print_table(("SCOPE", "FACTS"), rows, none="no facts yet")


@memory.command(
    epilog=format_examples(
        'clew memory add "Invoices are paid on Fridays"',
        'clew memory add --scope shared --pin "The office is closed in August"',
    )
)
@click.argument("text")
@_scope_option
@click.option("--pin", is_flag=True, help="Have every session told it.")
@json_option
@pass_cli_context
def add(program: CliContext, *, text: str, scope: str, pin: bool, as_json: bool) -> None:
    """Remember a sentence."""
    given = operations.AddFactParams(text=text, pinned=pin)
    made = _run(program, lambda t: operations.add_fact(t, _new_id(), given, Scope(scope)))
    _print_fact(made, as_json=as_json)


@memory.command(epilog=format_examples("clew memory show 3", "clew memory show mem_0123 --json"))
@_FACT
@_scope_option
@json_option
@pass_cli_context
def show(program: CliContext, *, name: str, scope: str, as_json: bool) -> None:
    """Show a FACT (number or id), and where it comes from."""

    def read(t: Tx) -> tuple[dict[str, Any], str]:
        fact = _find(t, name, scope)
        told = front.format_details(t, fact, facts.list_replaced(t, fact))
        return front.describe_fact(t, fact), told

    found, told = _run(program, read)
    if as_json:
        print_json(found)
        return
    get_outputs()[0].write(f"{told}\n")


@memory.command(
    epilog=format_examples('clew memory edit 3 "Ann lives in Oslo"', "clew memory edit 3 --pin")
)
@_FACT
@click.argument("text", required=False)
@click.option("--pin/--unpin", default=None, help="Have every session told it, or no longer.")
@_scope_option
@json_option
@pass_cli_context
def edit(
    program: CliContext,
    *,
    name: str,
    text: str | None,
    pin: bool | None,
    scope: str,
    as_json: bool,
) -> None:
    """Change the text of a FACT, or pin it."""
    if text is None and pin is None:
        raise UsageError("give the new TEXT, --pin or --unpin")

    def change(t: Tx) -> dict[str, Any]:
        fact = _find(t, name, scope)
        return operations.edit_fact(t, fact.id, text, pin, viewer=LOCAL)

    _print_fact(_run(program, change), as_json=as_json)


@memory.command(epilog=format_examples("clew memory forget 3", "clew memory forget mem_0123"))
@_FACT
@_scope_option
@json_option
@pass_cli_context
def forget(program: CliContext, *, name: str, scope: str, as_json: bool) -> None:
    """Erase a FACT; open sessions go on without it once a gateway works on them."""

    def erase(t: Tx) -> Forgotten:
        return operations.forget_fact(t, _find(t, name, scope).id, viewer=LOCAL)

    done = _run(program, erase)
    if as_json:
        print_json({"remark": done.describe(), "sources": list(done.sources)})
        return
    get_outputs()[0].write(f"{done.describe()}\n")


@memory.command(
    epilog=format_examples(
        "clew memory proposed", "clew memory proposed accept 1 3", "clew memory proposed none"
    )
)
@click.argument("answer", nargs=-1)
@_scope_option
@json_option
@pass_cli_context
def proposed(program: CliContext, *, answer: tuple[str, ...], scope: str, as_json: bool) -> None:
    """List what is proposed to be remembered; `accept 1 3` keeps those, and declines the rest."""

    def run(t: Tx) -> tuple[str, list[dict[str, Any]]]:
        own = links.find_main(t, Scope(scope))
        said = front.answer_proposals(t, own, answer) if answer else ""
        return said, front.describe_proposals(t, own)

    said, waiting = _run(program, run)
    if as_json:
        print_json({"items": waiting})
    elif answer:
        get_outputs()[0].write(f"{said}\n")
    else:
        rows = [(str(one["number"]), one["kind"], one["text"]) for one in waiting]
        print_table(("N", "KIND", "FACT"), rows, none=f"nothing is proposed in {scope}")


@memory.command("export", epilog=format_examples("clew memory export > memory.md"))
@_scope_option
@pass_cli_context
def export_facts(program: CliContext, *, scope: str) -> None:
    """Write the facts of a scope as Markdown, one bullet for each."""
    found = _run(program, lambda t: facts.list_active(t, Scope(scope)))
    get_outputs()[0].write(write_markdown(scope, found))


@memory.command("import", epilog=format_examples("clew memory import MEMORY.md"))
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_scope_option
@json_option
@pass_cli_context
def import_facts(program: CliContext, *, path: Path, scope: str, as_json: bool) -> None:
    """Remember each bullet of a Markdown file; one that has an id changes that fact."""
    text = path.read_text(encoding="utf-8", errors="replace")
    done = _run(program, lambda t: importing.import_markdown(t, text, Scope(scope)))
    if as_json:
        print_json(done.as_dict())
        return
    out, notes = get_outputs()
    out.write(f"{done.added} added, {done.changed} changed, {done.known} known already\n")
    for problem in done.problems:
        notes.write(f"{problem}\n")


def _find(t: Tx, name: str, scope: str) -> facts.Fact:
    """Return a fact by its id, or by its number in a scope."""
    viewer = LOCAL if name.startswith("mem_") else Scope(scope)
    return facts.get_named(t, name, viewer=viewer)


def _print_fact(one: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(one)
        return
    print_fields(
        [
            ("number", one["number"]),
            ("scope", one["scope"]),
            ("fact", one["text"]),
            ("pinned", "yes" if one["pinned"] else "no"),
            ("source", one["source"]),
        ]
    )
