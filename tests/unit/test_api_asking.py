"""Replies to a client whose message is stored while the answer is not available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from clew.api.pending_completion import PendingCompletion
from clew.engine.request_service import make_request_key
from clew.errors import StoreUnavailable

if TYPE_CHECKING:
    from clew.engine.request_service import IdempotencyKey

KEY = make_request_key(caller="", path="/", key="k", request=b"")
NOBODY = cast("Any", None)


@pytest.mark.parametrize(("key", "again"), [(None, "false"), (KEY, "true")])
def test_an_error_after_storing_never_asks_for_a_later_repeat(
    key: IdempotencyKey | None, again: str
) -> None:
    asking = PendingCompletion(requests=NOBODY, chat_input=NOBODY, accepted=NOBODY, key=key)
    away = StoreUnavailable("it is away; nothing was stored, try again later")
    for problem in (asking.stopping_problem, asking.problem_for(away).problem):
        assert problem.status == 503
        assert problem.http_headers == {"x-should-retry": again}
        assert "the message is stored" in problem.message
        assert "nothing was stored" not in problem.message
