"""The safeguards against providers that fail."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TABLE = "tests/integration/test_model_failures.py::test_a_failure_that_"
_TROUBLE = "tests/integration/test_models_in_trouble.py::test_"
_RETRIES = (
    "tests/integration/test_retries.py"
    "::test_dep_11_a_process_that_continues_a_turn_continues_counting"
)
_AGAIN = "tests/integration/test_requests_made_again.py::test_"
_PATIENCE = "tests/unit/test_patience.py::test_"

FAILURES = (
    Mutation(
        name="blank-reply",
        mechanism="a blank text is not an answer, and is not stored",
        file="src/clew/agent/loop.py",
        old="        if not (isinstance(part, TextPart) and is_blank(part.content))\n",
        new="        if True\n",
        test=f"{_TABLE}passes_is_not_seen_in_the_answer[nothing: blanks]",
    ),
    Mutation(
        name="cut-reply",
        mechanism="a reply without its end is not an answer",
        file="src/clew/agent/loop.py",
        old=("        raise_if_incomplete(response)\n"),
        new="",
        test=f"{_TABLE}continues_is_reported_and_the_next_turn_works[early end]",
    ),
    Mutation(
        name="no-choice",
        mechanism="a reply without a choice counts as an empty one",
        file="src/clew/agent/openai_client.py",
        old='    if not getattr(answer, "choices", None):\n',
        new="    if False:\n",
        test=f"{_TROUBLE}replies_without_a_choice_are_met_as_empty_ones",
    ),
    Mutation(
        name="endless-reply",
        mechanism="an endless stream is ended",
        file="src/clew/agent/loop.py",
        old="deadline.reschedule(min(loop.time() + self._silence, end))",
        new="deadline.reschedule(loop.time() + self._silence)",
        test=f"{_TROUBLE}a_stream_that_does_not_end_is_given_up",
    ),
    Mutation(
        name="retract",
        mechanism="the pieces of a request that failed are taken back",
        file="src/clew/engine/turn_failover.py",
        old=("        self._log.retract_deltas(failure.text)\n"),
        new="",
        test=f"{_TROUBLE}a_client_sees_a_cut_stream_taken_back_and_the_text_once",
    ),
    Mutation(
        name="overtaken-pieces",
        mechanism="pieces of a response are not sent after its entry",
        file="src/clew/engine/event_stream.py",
        old="                return event.after < self._last_of_turn or event.turn == closed\n",
        new="                return False\n",
        test=f"{_TROUBLE}pieces_that_their_entry_has_overtaken_are_not_told",
    ),
    Mutation(
        name="wait-bound",
        mechanism="all waits of a turn share one limit",
        file="src/clew/agent/failover.py",
        old=("if wait <= self.max_wait and waited + wait <= most else None"),
        new=("if wait <= self.max_wait else None"),
        test=f"{_PATIENCE}all_waits_of_a_turn_together_are_bounded",
    ),
    Mutation(
        name="breaker",
        mechanism="a model that keeps failing is not asked for a while",
        file="src/clew/agent/failover.py",
        old=("        if self._failures[n] >= self.retry_policy.breaker_threshold:\n"),
        new="        if False:\n",
        test=f"{_TROUBLE}b177_a_stand_in_answers_and_the_first_is_asked_again_after_the_cool_down",
    ),
    Mutation(
        name="refused-elsewhere",
        mechanism="a request that one model refused is not sent to another",
        file="src/clew/engine/turn_failover.py",
        old=("        if failure.kind not in FAILOVER_KINDS:\n"),
        new="        if False:\n",
        test=f"{_TROUBLE}b175_a_refused_tool_call_compacts_nothing_and_ends_clearly[chat]",
    ),
    Mutation(
        name="unknown-window",
        mechanism="a request that overflowed counts as larger than the window",
        file="src/clew/engine/compaction_planner.py",
        old=("            window = min(window, max(most, rules.LARGE_CONTEXT))\n"),
        new="            pass\n",
        test=f"{_TROUBLE}an_overflow_compacts_once_and_repeats_the_step[chat]",
    ),
    Mutation(
        name="empty-overflow",
        mechanism="an empty reply to a long request counts as an overflow",
        file="src/clew/engine/turn_compaction.py",
        old=("        return tokens > LARGE_CONTEXT\n"),
        new="        return False\n",
        test=f"{_TROUBLE}b181_empty_replies_to_long_requests_are_met_as_an_overflow[True]",
    ),
    Mutation(
        name="unpaid",
        mechanism="empty replies are counted",
        file="src/clew/agent/loop.py",
        old=("                await self._log.store_usage(self._unstored_response)\n"),
        new="                pass\n",
        test=f"{_TROUBLE}replies_that_came_to_nothing_are_counted_too",
    ),
    Mutation(
        name="retries-of-tools",
        mechanism="a resumed run continues to count the retries of tools",
        file="src/clew/agent/journaled_toolset.py",
        old="        ctx.retries.update(self.retries)\n",
        new="",
        test=f"{_RETRIES}[sqlite-arguments]",
    ),
    Mutation(
        name="retries-of-answers",
        mechanism="a resumed run continues to count the retries of answers",
        file="src/clew/agent/loop.py",
        old=(
            "            run.ctx.state.output_retries_used = context.retries.get(OUTPUT_KEY, 0)\n"
        ),
        new="",
        test=f"{_RETRIES}[sqlite-no answer]",
    ),
    Mutation(
        name="first-instructions",
        mechanism="instructions are rendered once, also where the first request fails",
        file="src/clew/agent/session_prefix.py",
        old=("        await self.log.store_prefix(prefix)\n"),
        new="",
        test=f"{_AGAIN}each_step_of_a_turn_gives_the_request_that_was_sent_for_it[chat]",
    ),
    Mutation(
        name="results-unstored",
        mechanism="a request is stored before it is sent",
        file="src/clew/agent/loop.py",
        old=("            await self._log.store_request(node.request, self._count_retries())\n"),
        new="            pass\n",
        test=f"{_AGAIN}each_step_of_a_turn_gives_the_request_that_was_sent_for_it[chat]",
    ),
)
