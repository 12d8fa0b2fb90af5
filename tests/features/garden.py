"""A third-party plugin in one file that adds one of each kind: it waters plants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click
from pydantic import BaseModel

from clew.api.operations import HttpBinding, Operation
from clew.plugin import (
    CliEntry,
    Command,
    CommandCall,
    DoctorFinding,
    FeatureContext,
    Metric,
    Note,
    Registry,
    TurnContext,
    get_turn_context,
    hookimpl,
    integer_type,
    ok,
    setting,
    sql_check,
)
from clew.wire.methods import RpcMethod
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.store.contract import Tx

TABLES = {
    "0001_first": """
        CREATE TABLE garden (id TEXT PRIMARY KEY, plant TEXT NOT NULL);
        CREATE TABLE garden_visit (n @ID, conversation TEXT NOT NULL, seen BIGINT NOT NULL);
        CREATE INDEX garden_visit_of ON garden_visit (conversation);
    """
}
DRY = sql_check(
    "garden-dry",
    "Every plant has a name.",
    "SELECT NULL, NULL, id, 0, 'a plant without a name' FROM garden WHERE plant = ''",
    decide="name it",
)


class Crop(BaseModel):
    roses: int


seen: dict[str, int] = {"service": 0, "periodic": 0, "hook": 0}


@dataclass(frozen=True, kw_only=True, slots=True)
class GardenSettings:
    """The garden."""

    litres: int = setting(integer_type(least=1), 3, "How much a plant gets.")


def water(plant: str) -> str:
    """Water a plant."""
    context = get_turn_context()
    assert context is not None
    return f"{plant} is wet, on {context.platform}, by {context.call_key}"


def is_dry(context: TurnContext) -> bool:
    return context.attended


def tell_weather(t: Tx, context: TurnContext) -> list[Note]:
    visits = t.fetch_value("SELECT count(*) FROM garden_visit")
    return [Note(text=f"It rains in the garden, after {visits} visits.")]


async def note_visit(context: FeatureContext, conversation: str) -> None:
    sql = "INSERT INTO garden_visit (conversation, seen) VALUES ($1, $2)"
    await context.store.write(lambda t: t.execute(sql, conversation, t.now))


async def guard(context: FeatureContext) -> None:
    seen["service"] += 1
    raise RuntimeError("the guard fell asleep")


async def sweep(context: FeatureContext) -> None:
    seen["periodic"] += 1


async def harvest(call: CommandCall, argument: str) -> str:
    return f"{argument or 'roses'} harvested"


def count_hook(session_id: str) -> None:
    seen["hook"] += 1


async def get_crop(call: object, given: Params) -> Crop:
    return Crop(roses=2)


async def look_around() -> list[DoctorFinding]:
    return [ok("garden", "the plants are well")]


@click.command()
def garden() -> None:
    click.echo("two roses")


@hookimpl
def register(registry: Registry) -> None:
    settings = registry.add_settings(GardenSettings)
    registry.add_migrations(TABLES, of_conversation={"garden_visit": "conversation"}, checks=(DRY,))
    registry.add_tool(water, effect="idempotent", timeout=timedelta(seconds=5), when=is_dry)
    registry.add_instructions("garden", lambda: f"A plant gets {settings.get().litres} litres.")
    registry.add_context_note("weather", tell_weather)
    registry.add_hook("on_session_start", count_hook)
    method = RpcMethod(name="garden.crop", params=Params, result=Crop, summary="The crop.")
    http = HttpBinding(method="GET", path="/api/garden/crop", summary="Crop", answer="The crop")
    crop = Operation(definition=method, handler=get_crop, is_ordered=False, http=http)
    registry.add_operation("garden.crop", lambda: crop)
    registry.add_command(Command(name="harvest", help="harvest a plant", run=harvest))
    registry.add_cli(
        CliEntry(name="garden", module=__name__, attribute="garden", help="Show the garden.")
    )
    registry.add_channel("gate", print)
    registry.add_capability("bees", lambda: import_module("pydantic_ai.toolsets").FunctionToolset())
    registry.add_memory_provider("almanac", lambda context: cast("Any", context))
    registry.add_after_turn("visits", note_visit)
    registry.add_service("guard", guard)
    registry.add_periodic(sweep, every=timedelta(hours=1), name="sweep")
    registry.add_doctor_check("garden", look_around)
    registry.add_metric(
        Metric(name="garden_guards", kind="gauge", doc="Guards.", read=lambda: seen["service"])
    )
