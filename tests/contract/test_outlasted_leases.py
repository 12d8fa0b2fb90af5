"""A turn that outlasts its lease where nobody takes it over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.ids import TurnId
from clew.core.turn import MAX_RESUMES
from clew.errors import LeaseLost
from clew.store.transactions import turn_queries, turns
from tests.contract import acting
from tests.contract.acting import LEASE_MS, OTHER, started

if TYPE_CHECKING:
    from tests.contract.desk import Desk

T1 = TurnId("trn_1")


def test_a_turn_that_outlasts_its_lease_again_and_again_is_given_up(desk: Desk) -> None:
    begun = started(desk)
    for count in range(1, MAX_RESUMES + 1):
        assert desk.do(turns.release_expired_lease, begun.lease, T1)
        # A write of the work that was given up comes too late.
        with pytest.raises(LeaseLost):
            desk.do(acting.append, begun.lease, "ent_1")
        begun = desk.do(acting.begin)
        assert begun.turn is not None
        assert begun.turn.resumes == count


def test_work_that_another_owner_took_over_is_not_counted_by_the_first(desk: Desk) -> None:
    lost = started(desk).lease
    desk.world.now += LEASE_MS
    desk.do(acting.begin, OTHER)
    assert not desk.do(turns.release_expired_lease, lost, T1)
    assert desk.do(turn_queries.get_turn, T1).resumes == 1
