"""The store of the simulation beside a real one: the same jobs, in the same order and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core import ids
from tests.contract.desk import TABLES
from tests.simulation import world as worlds
from tests.simulation.disk import Call

if TYPE_CHECKING:
    from tests.contract.desk import Desk
    from tests.simulation.disk import Disk


class _Recorded:
    """One job with everything that it depends on, and what came of it."""

    def __init__(self, disk: Disk, job: Any, args: Any, kwargs: Any) -> None:
        self.job, self.args, self.kwargs = job, args, kwargs
        self.now, self.alive = disk.now(), set(disk.alive)
        self.random = ids._RANDOM.getstate()  # pyright: ignore[reportPrivateUsage]
        self.outcome = ""


def describe(outcome: object) -> str:
    """Return a result, or an exception, as a text to compare."""
    return repr(outcome)


def record(seed: int, messages: int) -> tuple[list[_Recorded], dict[str, Any]]:
    """Run a seed; return all its jobs, and every row that it leaves."""
    recorded: list[_Recorded] = []
    left: dict[str, Any] = {}
    plain, finish = Call.run, worlds.World.live

    def run(call: Any) -> tuple[Any, BaseException | None]:
        disk: Disk = call.store.disk
        one = _Recorded(disk, call.job, call.args, call.kwargs)
        recorded.append(one)
        value, error = plain(call)
        if one.outcome == "":
            one.outcome = describe(value if error is None else error)
        return value, error

    async def live(world: worlds.World) -> None:
        await finish(world)
        left.update(world.disk.run(read_tables))

    Call.run, worlds.World.live = run, live  # type: ignore[method-assign]
    try:
        worlds.run_seed(seed, worlds.Size(messages=messages))
    finally:
        Call.run, worlds.World.live = plain, finish  # type: ignore[method-assign]
    return recorded, left


def read_tables(t: Any) -> dict[str, Any]:
    """Return every row of every table."""
    return {table: sorted(t.fetch_all(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def replay(desk: Desk, *, seed: int, messages: int) -> tuple[int, list[str]]:
    """Replay a seed's jobs on a real database; return how many, and what was not the same."""
    recorded, left = record(seed, messages)
    unequal: list[str] = []
    for one in recorded:
        desk.world.now, desk.world.alive = one.now, one.alive
        ids._RANDOM.setstate(one.random)  # pyright: ignore[reportPrivateUsage]
        try:
            outcome = describe(desk.do(one.job, *one.args, **one.kwargs))
        except Exception as error:  # noqa: BLE001  (compared)
            outcome = describe(error)
        if outcome != one.outcome:
            name = getattr(one.job, "__name__", "job")
            unequal.append(f"{name}: {outcome[:300]}, simulated {one.outcome[:300]}")
    after = desk.snapshot()
    unequal += [f"rows of {name} differ" for name, rows in left.items() if rows != after[name]]
    return len(recorded), unequal
