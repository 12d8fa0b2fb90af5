"""A third-party plugin in one file that adds one of each kind: it waters plants."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import click

from clew.plugin import (
    FLAG,
    CliEntry,
    Command,
    CommandCall,
    DoctorFinding,
    FeatureContext,
    Metric,
    Registry,
    hookimpl,
    integer_type,
    ok,
    setting,
    sql_check,
)

TABLES = {
    "0001_first": """
        CREATE TABLE garden (id TEXT PRIMARY KEY, plant TEXT NOT NULL);
        CREATE TABLE garden_visit (
            n @ID, conversation TEXT NOT NULL, seen BIGINT NOT NULL
        );
        CREATE INDEX garden_visit_of ON garden_visit (conversation);
    """
}
DRY = sql_check(
    "garden-dry",
    "Every plant has a name.",
    """
    SELECT CAST(NULL AS TEXT), CAST(NULL AS BIGINT), g.id, 0, 'the plant ' || g.id || ' is nameless'
    FROM garden g WHERE g.plant = ''
    """,
    decide="name it",
)
seen: dict[str, int] = {"service": 0, "periodic": 0, "hook": 0}


@dataclass(frozen=True, kw_only=True, slots=True)
class GardenSettings:
    """The garden."""

    litres: int = setting(integer_type(least=1), 3, "How much a plant gets.")
    fence: bool = setting(FLAG, True, "Whether there is a fence.")


def water(plant: str) -> str:
    """Water a plant."""
    return f"{plant} is wet"


async def note_visit(context: FeatureContext, conversation: str) -> None:
    await context.store.write(
        lambda t: t.execute(
            "INSERT INTO garden_visit (conversation, seen) VALUES ($1, $2)", conversation, t.now
        )
    )


async def guard(context: FeatureContext) -> None:
    seen["service"] += 1
    raise RuntimeError("the guard fell asleep")


async def sweep(context: FeatureContext) -> None:
    seen["periodic"] += 1


async def harvest(call: CommandCall, argument: str) -> str:
    return f"{argument or 'roses'} harvested"


async def look_around() -> list[DoctorFinding]:
    await asyncio.sleep(0)
    return [ok("garden", "the plants are well")]


def count_hook(session_id: str) -> None:
    seen["hook"] += 1


def open_door(config: object) -> object:
    return config


@click.command()
def garden() -> None:
    """Show the garden."""
    click.echo("two roses")


@hookimpl
def register(registry: Registry) -> None:
    settings = registry.add_settings(GardenSettings)
    registry.add_migrations(TABLES, of_conversation={"garden_visit": "conversation"}, checks=(DRY,))
    registry.add_tool(water, effect="idempotent", facts={"reads": "nothing"})
    registry.add_instructions("garden", lambda: f"A plant gets {settings.get().litres} litres.")
    registry.add_hook("on_session_start", count_hook)
    registry.add_command(Command(name="harvest", help="harvest a plant", run=harvest))
    registry.add_cli(
        CliEntry(name="garden", module=__name__, attribute="garden", help="Show the garden.")
    )
    registry.add_channel("gate", open_door)
    registry.add_after_turn("visits", note_visit)
    registry.add_service("guard", guard)
    registry.add_periodic(sweep, every=timedelta(hours=1), name="sweep")
    registry.add_doctor_check("garden", look_around)
    registry.add_metric(
        Metric(name="garden_guards", kind="gauge", doc="Guards.", read=lambda: seen["service"])
    )
