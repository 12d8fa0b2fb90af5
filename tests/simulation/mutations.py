"""The safeguards of the protocol whose absence the simulation must find."""

from __future__ import annotations

from tests.mutations.catalogue import ALL
from tests.mutations.mutation import Mutation

_TRANSACTIONS = "src/clew/store/transactions"
_TEST = "tests/simulation"
#: Of the catalogue: those that need no SQL server, no restart and no plugin to be missed.
_KNOWN = (
    "fence-numbers", "fence-hold", "fence-rises", "rotation-swap", "lease-holder-lives",
    "lease-release", "lease-holder-died", "dedupe-key", "already-consumed", "repeated-append",
    "journal-first-result", "waiting-turn", "taken-back", "warm-session", "warm-entry",
)  # fmt: skip

MUTATIONS = (
    *(mutation for mutation in ALL if mutation.name in _KNOWN),
    Mutation(
        name="once-again",
        mechanism="a call that may run once is not run again",
        file="src/clew/core/effect.py",
        old="    Effect.ONCE: ResumeAction.UNKNOWN,\n",
        new="    Effect.ONCE: ResumeAction.RUN,\n",
        test=_TEST,
    ),
    Mutation(
        name="intent-unfenced",
        mechanism="an intent is stored under the lease only",
        file=f"{_TRANSACTIONS}/leases.py",
        old="""        SELECT last_seq FROM lease
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3 @LOCK
""",
        new="""        SELECT last_seq FROM lease
        WHERE conversation_id = $1 AND $2 = $2 AND $3 = $3 @LOCK
""",
        test=_TEST,
    ),
    Mutation(
        name="event-forgotten",
        mechanism="an event that was accepted is known",
        file=f"{_TRANSACTIONS}/inbox.py",
        old="    if item.event is None:\n        return None\n    row = t.fetch_one(\n",
        new="    if True:\n        return None\n    row = t.fetch_one(\n",
        test=_TEST,
    ),
    Mutation(
        name="id-forgotten",
        mechanism="an input that is repeated is known by its id",
        file=f"{_TRANSACTIONS}/inbox.py",
        old="    if found is None:\n        return None\n    return AcceptResult(\n",
        new="    if True:\n        return None\n    return AcceptResult(\n",
        test=_TEST,
    ),
    Mutation(
        name="late-release",
        mechanism="a release names owner and fence",
        file=f"{_TRANSACTIONS}/leases.py",
        old="""        UPDATE lease SET owner = NULL, expires_at = NULL
        WHERE conversation_id = $1 AND owner = $2 AND fence = $3
""",
        new="""        UPDATE lease SET owner = NULL, expires_at = NULL
        WHERE conversation_id = $1 AND $2 = $2 AND $3 = $3
""",
        test=_TEST,
    ),
)
