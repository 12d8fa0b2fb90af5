"""S3 in running products: two that compact one session, a lock that is held, one that is broken."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from clew.core.ids import SessionId
from clew.core.session import COMPRESSION
from clew.store.transactions import locks
from clew.testing import Text
from clew.wire import methods
from clew.wire.errors import CallFailed
from clew.wire.params import CompactParams
from tests.contract.lifecycle import dying
from tests.contract.lifecycle.counting import CountedStore
from tests.contract.lifecycle.doubles import SUMMARY
from tests.contract.lifecycle.dying import filled
from tests.contract.lifecycle.product import NEW, OLD, SOON, plan, running
from tests.failing.compacting import Plays

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply
    from tests.contract.lifecycle.product import Plan

T = TypeVar("T")
P = ParamSpec("P")

#: Twenty messages are as much as a turn compacts first, where nobody holds the lock.
WINDOW = {"model.context_window": "140000"}
COMPACT = CompactParams(session_id=OLD)


def given(url: str, home: Path, **more: Any) -> Plan:
    return plan(url, home, plugins=(), own_only=True, flags=WINDOW, session_ids=(NEW,), **more)


async def test_s3_1_of_two_products_that_compact_one_session_one_moves_it(
    store_url: str, tmp_path: Path
) -> None:
    one_is_back = threading.Event()

    def summary(_: ProviderRequest) -> Reply:
        time.sleep(0.25)
        one_is_back.wait(SOON)
        return Text(SUMMARY)

    begun = given(store_url, tmp_path, model=Plays(turn=dying.answer, summary=summary))
    await filled(begun, 20)
    async with (
        running(begun) as one,
        running(replace(begun)) as other,
        one.client() as first,
        other.client() as second,
    ):
        asked = [
            asyncio.create_task(each.call(methods.COMPACT, COMPACT)) for each in (first, second)
        ]
        # The one that does not get the lock comes back at once, not when the other is done.
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=SOON)
        one_is_back.set()
        done = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in done if isinstance(each, CallFailed)]
        assert ["under way" in str(each) for each in refused] == [True]
        (moved,) = [each for each in done if not isinstance(each, BaseException)]
        assert (moved.moved, moved.session) == (True, NEW)
        assert len(begun.model.summaries) == 1
        assert await one.lineage() == [(OLD, COMPRESSION), (NEW, None)]
        holder = await one.store.read(locks.get_compression_lock_holder, SessionId(NEW))
        assert holder is None


async def test_s3_2_while_the_lock_is_held_no_program_and_no_turn_compacts(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path, model=Plays(turn=dying.answer))
    await filled(begun, 20)
    async with running(begun) as product, product.client() as client:
        session = SessionId(OLD)
        await product.store.write(locks.try_acquire_compression_lock, session, "external_holder")
        with pytest.raises(CallFailed, match="under way"):
            await client.call(methods.COMPACT, COMPACT)
        assert "under way" in await product.command(client, "/compact")
        assert await product.say(client, "and now?") == "echo: and now?"
        assert begun.model.summaries == []
        assert await product.lineage() == [(OLD, None)]
        await product.store.write(locks.release_compression_lock, session, "external_holder")
        assert (await client.call(methods.COMPACT, COMPACT)).session == NEW
        assert len(begun.model.summaries) == 1


class WithoutLocks(CountedStore):
    """A store of another version, which knows no compression lock."""

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        _refuse(job)
        return await self.inner.write(job, *args, **kwargs)

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        _refuse(job)
        return await self.inner.read(job, *args, **kwargs)


def _refuse(job: Callable[..., object]) -> None:
    if "compression_lock" in job.__name__:
        raise AttributeError(job.__name__)


async def test_s3_3_a_store_without_locks_hinders_no_compaction(
    store_url: str, tmp_path: Path
) -> None:
    begun = given(store_url, tmp_path, model=Plays(turn=dying.answer), around=WithoutLocks)
    await filled(begun, 20)
    async with running(begun) as product, product.client() as client:
        done = await client.call(methods.COMPACT, COMPACT)
        assert (done.moved, done.session, done.messages_before) == (True, NEW, 20)
        assert done.messages_after < 20
        assert len(begun.model.summaries) == 1
        assert await product.say(client, "and now?") == "echo: and now?"
        assert len(begun.model.summaries) == 1
