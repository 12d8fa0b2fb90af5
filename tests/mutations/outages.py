"""The safeguards of several gateways, and against outages of the database."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_OUTAGES = "tests/integration/test_postgres_outages.py::test_"
_JOBS = "tests/integration/test_postgres_jobs.py::test_"
_API = "tests/integration/test_api_outages.py::test_"

OUTAGES = (
    Mutation(
        name="owners-in-doubt",
        mechanism="owners that lost their connections together with this one do not count as dead",
        file="src/clew/store/postgres/tx.py",
        old=(
            "return bool(self._fetch_rows(_ALIVE, (high, low))[0][0]) or self._link.is_liveness_uncertain\n"
        ),
        new=("return bool(self._fetch_rows(_ALIVE, (high, low))[0][0])\n"),
        test=f"{_OUTAGES}an_owner_that_lost_its_lock_with_the_server_does_not_count_as_dead",
    ),
    Mutation(
        name="found-commit-lasts",
        mechanism="a commit whose outcome was looked up waits for the standby, too",
        file="src/clew/store/postgres/retry.py",
        old=("                tx.fetch_one(FORCE_DURABLE)\n"),
        new="                pass\n",
        test=f"{_OUTAGES}a_lost_commit_is_acknowledged_only_once_a_stand_by_has_it",
    ),
    Mutation(
        name="silent-server",
        mechanism="a connection to a silent server is closed",
        file="src/clew/store/postgres/pool.py",
        old=("        link.abort()\n"),
        new="        pass\n",
        test=f"{_OUTAGES}a_server_that_fell_silent_is_not_waited_for_for_ever",
    ),
    Mutation(
        name="watched-by-the-server",
        mechanism="the server ends the transaction of a process that is paused behind a slow link",
        file="src/clew/store/postgres/pipeline.py",
        old="        yield from self._fetch_gen(flush=False)\n",
        new="        yield from self._fetch_gen(flush=True)\n",
        test=f"{_JOBS}a_lock_of_a_process_behind_a_slow_link_is_soon_free",
    ),
    Mutation(
        name="retry-after",
        mechanism="a client is asked to retry only if nothing was stored",
        file="src/clew/api/problems.py",
        old="isinstance(error, errors.StoreUnavailable) and not error.uncertain\n",
        new="isinstance(error, errors.StoreUnavailable)\n",
        test=f"{_API}a_client_is_told_to_retry_only_if_nothing_was_stored",
    ),
    Mutation(
        name="answer-kept",
        mechanism="a response is stored once the database is back",
        file="src/clew/engine/store_retry.py",
        old=("    return await retry_while_unavailable(lambda: shield_until_done(write()))\n"),
        new=("    return await shield_until_done(write())\n"),
        test=f"{_API}an_answer_made_during_an_outage_is_stored_afterwards",
    ),
)
