"""The safeguards of traces."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TURNS = "tests/features/test_telemetry.py::test_"

TRACING = (
    Mutation(
        name="trace-stored",
        mechanism="a resumed turn goes on in the trace that is stored with it",
        file="src/clew/features/telemetry/tracer.py",
        old="        elif turn.trace_id is not None:\n",
        new="        elif False:\n",
        test="tests/acceptance/test_telemetry.py"
        "::test_a_turn_that_was_killed_goes_on_in_the_same_trace",
    ),
    Mutation(
        name="trace-texts",
        mechanism="texts are sent only if the settings ask for them",
        file="src/clew/features/telemetry/attributes.py",
        old="    if content and one.text:\n",
        new="    if one.text:\n",
        test=f"{_TURNS}a_turn_with_a_tool_call_is_one_trace_that_continues_that_of_its_caller",
    ),
)
